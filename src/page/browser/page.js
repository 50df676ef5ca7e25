/** The script of the page. Every screen works without it; it adds live values, dialogs, the values of charts, keys, saved views and buttons to copy, and removes secrets. */
import { startCharts } from './charts.js'
import { addCopying } from './copy.js'
import { startDialogs } from './dialog.js'
import { startKeys } from './keys.js'
import { startLive } from './live.js'
import { startSecrets } from './secrets.js'
import { startSelection } from './selection.js'
import { startViews } from './views.js'

startSelection()
startKeys()
addCopying(document)
startCharts()
startDialogs()
startViews()
startLive()
startSecrets()
