/** The script of the page. Every screen works without it; it adds live values, dialogs, the values of charts and the key `/`. */
import { startCharts } from './charts.js'
import { startDialogs } from './dialog.js'
import { startLive } from './live.js'

/** @param {EventTarget | null} target */
const isTyping = (target) =>
  target instanceof HTMLElement && (target.isContentEditable || ['INPUT', 'SELECT', 'TEXTAREA'].includes(target.tagName))

document.addEventListener('keydown', (event) => {
  if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return
  if (document.querySelector('dialog[open]') !== null) return
  event.preventDefault()
  document.getElementById('search')?.focus()
})

/** Counts the checked messages beside the choice of the scope. */
function countChecked() {
  const checked = document.querySelectorAll('input[name=id]:checked').length
  const output = document.querySelector('.actions output.checked')
  if (output !== null) output.textContent = checked === 0 ? '' : `(${checked})`
}

document.addEventListener('change', countChecked)
countChecked()
startCharts()
startDialogs()
startLive()
