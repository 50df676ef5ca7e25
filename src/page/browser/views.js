/** Saved views: names that this browser keeps for the filters of a list. A view is the address of its list, without a page of it. */

const KEY = 'deferd-views'
/** Number of views that are kept; the oldest is dropped first. */
const MOST_VIEWS = 100
/** In characters. */
const LONGEST_NAME = 60
/** Parameters that name a page of a list. */
const PAGE_OF_LIST = ['after', 'before']

/** @typedef {{ readonly place: string, readonly name: string, readonly query: string }} View */

/**
 * @param {unknown} value
 * @returns {value is View}
 */
const isView = (value) =>
  typeof value === 'object' && value !== null && ['place', 'name', 'query'].every((key) => typeof Reflect.get(value, key) === 'string')

/**
 * The views of all lists; none when the browser keeps nothing, or not what this script wrote.
 * @returns {readonly View[]}
 */
function views() {
  try {
    /** @type {unknown} */
    const kept = JSON.parse(localStorage.getItem(KEY) ?? '[]')
    return Array.isArray(kept) ? kept.filter(isView) : []
  } catch {
    return []
  }
}

/**
 * Keeps the views. False when the browser refuses.
 * @param {readonly View[]} kept
 */
function keep(kept) {
  try {
    localStorage.setItem(KEY, JSON.stringify(kept.slice(-MOST_VIEWS)))
    return true
  } catch {
    return false
  }
}

/** The conditions of the list that is shown. */
function shownQuery() {
  const given = [...new URLSearchParams(location.search)]
  return new URLSearchParams(given.filter(([name, value]) => value !== '' && !PAGE_OF_LIST.includes(name))).toString()
}

/**
 * @param {string} text
 * @param {'button' | 'submit'} type
 */
function button(text, type) {
  const made = document.createElement('button')
  made.type = type
  made.textContent = text
  return made
}

/** The views of one list, below its filter. */
class ViewList {
  #box = document.createElement('details')
  #said = document.createElement('output')
  #place
  #path

  /** @param {HTMLFormElement} filter */
  constructor(filter) {
    // A field may have the name `action`, which hides the property of the form.
    this.#path = new URL(filter.getAttribute('action') ?? '', location.href).pathname
    this.#place = this.#path.slice(new URL(document.body.dataset.root ?? './', location.href).pathname.length)
    this.#box.className = 'views'
    filter.after(this.#box)
  }

  show() {
    const own = views().filter(({ place }) => place === this.#place)
    const query = shownQuery()
    const summary = document.createElement('summary')
    summary.textContent = own.length === 0 ? 'Saved views' : `Saved views (${own.length})`
    const list = document.createElement('ul')
    list.append(...own.map((view) => this.#entry(view, view.query === query)))
    this.#box.hidden = own.length === 0 && query === ''
    this.#box.replaceChildren(summary, ...(own.length === 0 ? [] : [list]), ...(query === '' ? [] : [this.#form(query)]), this.#said)
  }

  /**
   * @param {View} view
   * @param {boolean} isShown
   */
  #entry(view, isShown) {
    const link = document.createElement('a')
    link.href = `${this.#path}?${view.query}`
    link.textContent = view.name
    if (isShown) link.setAttribute('aria-current', 'page')
    const remove = button('Remove', 'button')
    remove.className = 'plain'
    remove.setAttribute('aria-label', `Remove the view ${view.name}`)
    remove.addEventListener('click', () => this.#change(without(view), `The view ${view.name} is removed.`))
    const entry = document.createElement('li')
    entry.append(link, ' ', remove)
    return entry
  }

  /** @param {string} query */
  #form(query) {
    const form = document.createElement('form')
    const label = document.createElement('label')
    const name = document.createElement('input')
    name.required = true
    name.maxLength = LONGEST_NAME
    name.autocomplete = 'off'
    label.append('Name of this view', name)
    form.append(label, button('Save', 'submit'))
    form.addEventListener('submit', (event) => {
      event.preventDefault()
      const view = { place: this.#place, name: name.value.trim(), query }
      if (view.name !== '') this.#change([...without(view), view], `The view ${view.name} is saved in this browser.`)
    })
    return form
  }

  /**
   * @param {readonly View[]} kept
   * @param {string} done
   */
  #change(kept, done) {
    this.#said.textContent = keep(kept) ? done : 'This browser keeps nothing for this page: save the address as a bookmark.'
    this.show()
  }
}

/**
 * All views but the one of this name and list.
 * @param {View} view
 */
const without = ({ place, name }) => views().filter((other) => other.place !== place || other.name !== name)

export function startViews() {
  for (const filter of document.querySelectorAll('main form.filter[method=get]:not([data-dialog])'))
    if (filter instanceof HTMLFormElement) new ViewList(filter).show()
}
