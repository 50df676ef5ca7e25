/** The script of the page. Every screen works without it; it adds live values, dialogs, the values of charts, keys and buttons to copy. */
import { startCharts } from './charts.js'
import { startCopying } from './copy.js'
import { startDialogs } from './dialog.js'
import { startKeys } from './keys.js'
import { startLive } from './live.js'
import { startSelection } from './selection.js'

startSelection()
startKeys()
startCopying()
startCharts()
startDialogs()
startLive()
