/** The checked rows of a list: a box for all rows of the page, their number, and the verbs, which appear with a choice. */

const boxes = () => [...document.querySelectorAll('input[name=id]')].filter((one) => one instanceof HTMLInputElement)

/** Shows what is chosen. */
function showChoice() {
  const all = boxes()
  const checked = all.filter((one) => one.checked).length
  const output = document.querySelector('.actions output.checked')
  if (output !== null) output.textContent = checked === 0 ? '' : `(${checked})`
  const box = document.querySelector('input.check-all')
  if (box instanceof HTMLInputElement) {
    box.checked = checked > 0 && checked === all.length
    box.indeterminate = checked > 0 && checked < all.length
  }
  const isAll = document.querySelector('.actions input[name=scope][value=filter]:checked') !== null
  const verbs = document.querySelector('.actions[role=group] .buttons')
  if (verbs instanceof HTMLElement) verbs.hidden = checked === 0 && !isAll
}

/** Adds the box for all rows to the heading of their boxes. */
function addBox() {
  const heading = document.querySelector('thead th.check')
  if (heading === null) return
  const box = document.createElement('input')
  box.type = 'checkbox'
  box.className = 'check-all'
  box.setAttribute('aria-label', 'Select all messages on this page')
  box.addEventListener('change', () => {
    for (const one of boxes()) one.checked = box.checked
  })
  heading.append(box)
}

/** Tells the style how high the verbs are, behind which nothing is scrolled: the window and the choice decide it. */
function measureVerbs() {
  const verbs = document.querySelector('.actions[role=group]')
  if (verbs instanceof HTMLElement) document.documentElement.style.setProperty('--bar-height', `${verbs.offsetHeight}px`)
}

/** @param {Event} event */
function onChange({ target }) {
  showChoice()
  measureVerbs()
  // The verbs, which have appeared, may be before the row.
  if (target instanceof HTMLInputElement && target.name === 'id') target.closest('tr')?.scrollIntoView({ block: 'nearest' })
}

export function startSelection() {
  if (boxes().length === 0) return
  addBox()
  document.addEventListener('change', onChange)
  showChoice()
  const verbs = document.querySelector('.actions[role=group]')
  if (verbs !== null) new ResizeObserver(measureVerbs).observe(verbs)
}
