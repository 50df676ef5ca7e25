/**
 * Replaces what a screen waited for by the same screen as it is now. The document is not loaded again, and nothing is replaced below a
 * finger or while another screen is being loaded, so that no click is lost.
 */
import { addCharts } from './charts.js'
import { addCopying } from './copy.js'
import { isLogin, loadAnew } from './loaded-screen.js'
import { markupOf, pointerTop, steadily, watchPlaces, withHeight } from './steady.js'

/** Time limit of the request, and time after which a click that led nowhere is forgotten, in ms. */
const LIMIT = 10_000

/** Time without a movement of the pointer after which no element is aimed at, in ms. */
const STILL = 1_000

let isPressed = false
let movedAt = -STILL
let leftAt = -LIMIT

/** Whether a person is at work on the screen: a dialog is open or being loaded, a field has the focus, or a click is on its way. */
export const isAtWork = () =>
  isPressed ||
  performance.now() - leftAt < LIMIT ||
  document.querySelector('dialog') !== null ||
  document.activeElement?.matches('input, select, textarea') === true

/** Whether the pointer moves: what is below it must not move. */
export const isAiming = () => performance.now() - movedAt < STILL

/** Watches for clicks, and for the pointer on its way to one. */
export function watchClicks() {
  watchPlaces()
  document.addEventListener('pointermove', () => (movedAt = performance.now()), { capture: true, passive: true })
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

/** The named parts of both documents. */
const partsOf = (/** @type {Document} */ loaded) =>
  [...document.querySelectorAll('[data-fragment]')].flatMap((old) => {
    const fresh = loaded.querySelector(`[data-fragment="${old.getAttribute('data-fragment') ?? ''}"]`)
    return fresh === null ? [] : [{ old, fresh }]
  })

/** Elements that are replaced: the named parts of both documents, or all of their main parts. */
function pairs(/** @type {Document} */ loaded) {
  const parts = partsOf(loaded)
  const [old, fresh] = [document.querySelector('#main'), loaded.querySelector('#main')]
  return parts.length > 0 || old === null || fresh === null ? parts : [{ old, fresh }]
}

/** True for an element whose text is selected, or in which a text was opened. */
const isInUse = (/** @type {Element} */ element) =>
  element.querySelector('details[open], [aria-expanded=true]') !== null ||
  (getSelection()?.isCollapsed === false && getSelection()?.containsNode(element, true) === true)

/** A row that the newer print has no more keeps its place, and says nothing but the numbers that the next live value has. */
function clear(/** @type {Element} */ row) {
  withHeight(row, () => {
    for (const cell of row.querySelectorAll('td')) {
      const number = cell.querySelector('[data-live]')
      if (number === null) cell.textContent = '–'
      else {
        number.textContent = '–'
        cell.replaceChildren(number)
      }
    }
  })
}

/** An item that stays while its list is renewed has the time of its last print, and its times stand. */
function date(/** @type {Element} */ item) {
  if (item.classList.contains('former')) return
  item.classList.add('former')
  for (const time of item.querySelectorAll('[data-relative]')) time.removeAttribute('data-relative')
  const print = item.closest('section')?.querySelector('.heading .aside')?.textContent?.trim() ?? ''
  item.querySelector('.what')?.append(' ', Object.assign(document.createElement('span'), { className: 'faint', textContent: print }))
}

/**
 * True for a part of the screen that may change its height: nothing that is below the pointer, has the focus or is in use moves, nor what
 * is in the window below a part above it.
 */
function mayGrow(/** @type {Element} */ part) {
  const { top, bottom } = part.getBoundingClientRect()
  return top > pointerTop() && bottom > 0 && !part.contains(document.activeElement) && !isInUse(part)
}

/** The parts of the screen whose rows come and go, where these may. */
const renewedParts = (/** @type {Document} */ loaded) =>
  partsOf(loaded).filter(({ old, fresh }) => !old.matches('[data-renewed]') && fresh.outerHTML !== markupOf(old) && mayGrow(old))

/** True for a print without its counts, which tells nothing of the rows and items that it lacks. */
const isCounting = (/** @type {Document} */ print) => print.querySelector('[data-state=counting]') !== null

/** The elements of which a newer print of the screen has others, by their names. Rows and items keep their places. */
const renewedElements = (/** @type {Document} */ loaded) =>
  [...document.querySelectorAll('[data-renewed]')].flatMap((old) => {
    const fresh = loaded.querySelector(`[data-renewed="${CSS.escape(old.getAttribute('data-renewed') ?? '')}"]`)
    if (fresh?.outerHTML === markupOf(old)) return []
    if (fresh !== null && !isInUse(old)) return [{ old, fresh }]
    if (isCounting(loaded)) return []
    if (old.matches('.attention > li')) date(old)
    else if (fresh === null && old.matches('tr')) clear(old)
    return []
  })

/** The names of the items that need attention. */
const itemsOf = (/** @type {Document} */ one) =>
  [...one.querySelectorAll('.attention > li')].map((item) => item.getAttribute('data-renewed'))

/** Tells of items that the screen lacks, or that the newer print has no more. */
function announceItems(/** @type {Document} */ loaded) {
  const notice = document.querySelector('[data-changed]')
  if (isCounting(loaded)) return
  const [shown, fresh] = [itemsOf(document), itemsOf(loaded)]
  if (notice instanceof HTMLElement) notice.hidden = shown.length === fresh.length && shown.every((name) => fresh.includes(name))
}

/** The links of the screen to the same place, in order. */
const linksTo = (/** @type {string} */ href) => [...document.querySelectorAll(`#main a[href="${CSS.escape(href)}"]`)]

/** The link that has the focus, by its place and its position among the links to there, to find it again. */
function focusedLink() {
  const link = document.activeElement
  const href = link?.getAttribute('href') ?? null
  return link === null || href === null ? null : { href, position: linksTo(href).indexOf(link) }
}

/**
 * Loads the screen and replaces elements of it. Returns null when the session has ended, and false while a person is at work. Rejects without a
 * change when the server does not answer, or answers with a failure.
 * @param {(loaded: Document) => { old: Element, fresh: Element }[]} those
 * @param {typeof steadily} inOrder
 * @returns {Promise<Document | false | null>}
 */
async function replaced(those, inOrder) {
  const loaded = await loadAnew(location.href, AbortSignal.timeout(LIMIT))
  if (isLogin(loaded)) return null
  if (isAtWork()) return false
  const focused = focusedLink()
  inOrder(
    () => those(loaded),
    ({ old, fresh }) => {
      old.replaceWith(document.adoptNode(fresh))
      addCharts(fresh)
      addCopying(fresh)
    },
  )
  const again = focused === null ? null : linksTo(focused.href)[focused.position]
  if (document.activeElement === document.body && again instanceof HTMLElement) again.focus()
  return loaded
}

/**
 * Replaces what depends on the state: sentences, the rows of tables in their places, and the parts whose rows come and go. Returns whether the session goes on.
 * @returns {Promise<'renewed' | 'later' | 'ended'>}
 */
export async function renewStates() {
  const loaded = await replaced((print) => {
    announceItems(print)
    return [...renewedElements(print), ...renewedParts(print)]
  }, steadily)
  return loaded === null ? 'ended' : loaded === false ? 'later' : 'renewed'
}

/**
 * Replaces the parts, the title, the time, and the sources of live values. Returns whether the session goes on.
 * @returns {Promise<'renewed' | 'later' | 'ended'>}
 */
export async function renewScreen() {
  const loaded = await replaced(pairs, (change, replace) => change().forEach(replace))
  if (loaded === null) return 'ended'
  if (loaded === false) return 'later'
  document.title = loaded.title
  const [foot, freshFoot] = [document.querySelector('footer'), loaded.querySelector('footer')]
  // The foot of a screen without live values has its time.
  if (loaded.body.dataset['livePath'] === undefined && foot !== null && freshFoot !== null) foot.replaceWith(document.adoptNode(freshFoot))
  for (const name of ['livePath', 'liveStream', 'now', 'speed']) {
    const value = loaded.body.dataset[name]
    if (value === undefined) delete document.body.dataset[name]
    else document.body.dataset[name] = value
  }
  return 'renewed'
}
