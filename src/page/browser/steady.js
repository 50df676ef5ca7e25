/**
 * Keeps what a person looks at in its place in the window, while elements of the screen are replaced by higher or lower ones. Rows and items
 * become no lower, and the screen is scrolled by what has grown above the pointer.
 */

/** Place of the pointer in the window, in px; null while no pointer is over the page. @type {{ readonly x: number, readonly y: number } | null} */
let pointer = null

/** Watches the pointer, and the width of the window, with which heights change. */
export function watchPlaces() {
  document.addEventListener('pointermove', ({ clientX: x, clientY: y }) => (pointer = { x, y }), { capture: true, passive: true })
  document.documentElement.addEventListener('pointerleave', () => (pointer = null))
  window.addEventListener('resize', () => {
    for (const element of document.querySelectorAll('[data-renewed][style], [data-fragment][style]')) element.removeAttribute('style')
  })
}

/** Distance of the pointer from the top of the window, in px; -Infinity while no pointer is over the page. */
export const pointerTop = () => pointer?.y ?? -Infinity

/** The element below the pointer, or with the focus, or else the first of the elements in the window that may be renewed; null for none. */
function lookedAt() {
  const main = document.querySelector('#main')
  const inMain = (/** @type {Element | null} */ one) => (one !== null && one !== main && main?.contains(one) === true ? one : null)
  const below = pointer === null ? null : inMain(document.elementFromPoint(pointer.x, pointer.y))
  const first = [...document.querySelectorAll('[data-renewed]')].find((one) => one.getBoundingClientRect().top >= 0)
  return below ?? inMain(document.activeElement) ?? first ?? null
}

/** An element and those around it, with their distances from the top of the window. */
function placesOf(/** @type {Element | null} */ element) {
  const places = []
  for (let one = element; one !== null && one.id !== 'main'; one = one.parentElement)
    places.push({ element: one, top: one.getBoundingClientRect().top })
  return places
}

const heightOf = (/** @type {Element} */ element) => element.getBoundingClientRect().height

/**
 * Keeps an element from being lower than it was.
 * @param {Element} element
 * @param {number} height in px
 */
function keepHeight(element, height) {
  if (!(element instanceof HTMLElement) || heightOf(element) >= height) return
  element.style.boxSizing = 'border-box'
  // The height of a row is its least one.
  if (element.matches('tr')) element.style.height = `${height}px`
  else element.style.minHeight = `${height}px`
}

/**
 * Changes a row without making it lower.
 * @param {Element} row
 * @param {() => void} change
 */
export function withHeight(row, change) {
  const height = heightOf(row)
  change()
  keepHeight(row, height)
}

/** The markup of an element without the height that is kept for it. */
export function markupOf(/** @type {Element} */ element) {
  if (!element.hasAttribute('style')) return element.outerHTML
  const copy = element.cloneNode(true)
  if (copy instanceof Element) copy.removeAttribute('style')
  return copy instanceof Element ? copy.outerHTML : ''
}

/**
 * Makes a change that may move elements, and scrolls the screen so that what a person looks at stays where it is.
 * @param {() => void} change
 */
export function inPlace(change) {
  steadily(
    () => (change(), []),
    () => undefined,
  )
}

/**
 * Replaces elements.
 * @param {() => { old: Element, fresh: Element }[]} change makes other changes of the screen and returns the elements to replace
 * @param {(pair: { old: Element, fresh: Element }) => void} replace
 */
export function steadily(change, replace) {
  const places = placesOf(lookedAt())
  const pairs = change().map((pair) => ({ ...pair, height: heightOf(pair.old) }))
  for (const pair of pairs) {
    replace(pair)
    if (pair.fresh.matches('tr, li')) keepHeight(pair.fresh, pair.height)
  }
  for (const { element, top } of places) {
    const shown = element.isConnected ? element : pairs.find(({ old }) => old === element)?.fresh
    if (shown === undefined) continue
    const moved = () => shown.getBoundingClientRect().top - top
    // A call ends a scrolling that is under way.
    if (Math.abs(moved()) >= 1) scrollBy({ top: moved(), behavior: 'instant' })
    // Above the top of the screen is nothing to scroll to.
    if (moved() <= -1) for (const { fresh, height } of pairs) keepHeight(fresh, height)
    return
  }
}
