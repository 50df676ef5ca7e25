/**
 * Replaces what a screen waited for by the same screen as it is now. The document is not loaded again, and nothing is replaced below a
 * finger or while another screen is being loaded, so that no click is lost.
 */
import { addCharts } from './charts.js'
import { isLogin, load } from './loaded-screen.js'

/** Time limit of the request, and time after which a click that led nowhere is forgotten, in ms. */
const LIMIT = 10_000

let isPressed = false
let leftAt = -LIMIT

/** Whether a person is at work on the screen: a dialog is open or being loaded, a field has the focus, or a click is on its way. */
export const isAtWork = () =>
  isPressed ||
  performance.now() - leftAt < LIMIT ||
  document.querySelector('dialog') !== null ||
  document.activeElement?.matches('input, select, textarea') === true

/** Watches for clicks. */
export function watchClicks() {
  for (const name of ['pointerdown', 'pointerup', 'pointercancel'])
    document.addEventListener(name, () => (isPressed = name === 'pointerdown'), true)
  document.addEventListener('click', (event) => {
    const { target } = event
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.shiftKey || !(target instanceof Element)) return
    if (target.closest('a[href]:not([data-dialog], [download], [href^="#"])') !== null) leftAt = performance.now()
  })
  document.addEventListener('submit', (event) => {
    if (!event.defaultPrevented) leftAt = performance.now()
  })
  window.addEventListener('pagehide', () => (leftAt = Infinity))
  window.addEventListener('pageshow', () => (leftAt = -LIMIT))
}

/** Elements that are replaced: the named parts of both documents, or all of their main parts. */
function pairs(/** @type {Document} */ loaded) {
  const parts = [...document.querySelectorAll('[data-fragment]')].flatMap((old) => {
    const fresh = loaded.querySelector(`[data-fragment="${old.getAttribute('data-fragment') ?? ''}"]`)
    return fresh === null ? [] : [{ old, fresh }]
  })
  const [old, fresh] = [document.querySelector('#main'), loaded.querySelector('#main')]
  return parts.length > 0 || old === null || fresh === null ? parts : [{ old, fresh }]
}

/** The link that has the focus, to find it again. */
const focusedLink = () => document.activeElement?.getAttribute('href') ?? null

/**
 * Replaces the parts, the title, the time, and the sources of live values. Returns whether the session goes on.
 * @returns {Promise<'renewed' | 'later' | 'ended'>}
 */
export async function renewScreen() {
  const loaded = await load(location.href, AbortSignal.timeout(LIMIT))
  if (isLogin(loaded)) return 'ended'
  if (isAtWork()) return 'later'
  const focused = focusedLink()
  for (const { old, fresh } of pairs(loaded)) {
    old.replaceWith(document.adoptNode(fresh))
    addCharts(fresh)
  }
  document.title = loaded.title
  for (const name of ['livePath', 'liveStream', 'now', 'speed']) {
    const value = loaded.body.dataset[name]
    if (value === undefined) delete document.body.dataset[name]
    else document.body.dataset[name] = value
  }
  const again = focused === null ? null : document.querySelector(`#main a[href="${CSS.escape(focused)}"]`)
  if (document.activeElement === document.body && again instanceof HTMLElement) again.focus()
  return 'renewed'
}
