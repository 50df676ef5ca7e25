/** Keys of the page. `?` lists them; none works while a person types or a dialog is open. */

/** @param {EventTarget | null} target */
const isTyping = (target) =>
  target instanceof HTMLElement && (target.isContentEditable || ['INPUT', 'SELECT', 'TEXTAREA'].includes(target.tagName))

/** The links of the navigation, to which `g` and a letter lead. */
const places = () => [.../** @type {NodeListOf<HTMLAnchorElement>} */ (document.querySelectorAll('nav a[data-key]'))]

/** Time within which the letter follows `g`, in ms. */
const SEQUENCE = 1_500

let pressedAt = -SEQUENCE

const rows = () => [...document.querySelectorAll('main table.cards > tbody > tr')]

/** The row that has the focus. */
const current = () => rows().findIndex((one) => one.contains(document.activeElement))

/** @param {number} by rows down */
function move(by) {
  const all = rows()
  const link = all[Math.min(all.length - 1, Math.max(0, current() + by))]?.querySelector('a[href]')
  if (!(link instanceof HTMLElement)) return
  link.focus()
  link.scrollIntoView({ block: 'nearest' })
}

function check() {
  const box = rows()[current()]?.querySelector('input[name=id]')
  if (!(box instanceof HTMLInputElement)) return
  box.checked = !box.checked
  box.dispatchEvent(new Event('change', { bubbles: true }))
}

/** Shows the list of keys. */
function help() {
  const dialog = document.createElement('dialog')
  const panel = document.createElement('div')
  const title = document.createElement('h1')
  const list = document.createElement('dl')
  const close = document.createElement('button')
  panel.className = 'panel'
  title.id = 'keys-title'
  title.textContent = 'Keys'
  dialog.setAttribute('aria-labelledby', title.id)
  list.className = 'keys'
  const all = [
    ['/', 'search'],
    ['j, k', 'next and previous row'],
    ['x', 'check the row'],
    ['Enter', 'open the row'],
    ...places().map((link) => [`g ${link.dataset['key']}`, link.textContent]),
    ['?', 'this list'],
  ]
  for (const [key = '', about = ''] of all) {
    const pair = document.createElement('div')
    const [term, text] = [document.createElement('dt'), document.createElement('dd')]
    term.textContent = key
    text.textContent = about
    pair.append(term, text)
    list.append(pair)
  }
  close.type = 'button'
  close.textContent = 'Close'
  close.addEventListener('click', () => dialog.close())
  panel.append(title, list, close)
  dialog.append(panel)
  const opener = document.activeElement
  dialog.addEventListener('close', () => {
    dialog.remove()
    if (opener instanceof HTMLElement) opener.focus()
  })
  document.body.append(dialog)
  dialog.showModal()
}

const ACTIONS = /** @type {Readonly<Record<string, () => void>>} */ ({
  '/': () => document.getElementById('search')?.focus(),
  j: () => move(1),
  k: () => move(-1),
  x: check,
  '?': help,
  g: () => (pressedAt = performance.now()),
})

export function startKeys() {
  document.addEventListener('keydown', (event) => {
    const { key, ctrlKey, metaKey, altKey, target } = event
    const isCheck = target instanceof HTMLInputElement && target.type === 'checkbox'
    if (ctrlKey || metaKey || altKey || (isTyping(target) && !isCheck) || document.querySelector('dialog[open]') !== null) return
    const place = performance.now() - pressedAt < SEQUENCE ? places().find((link) => link.dataset['key'] === key) : undefined
    pressedAt = -SEQUENCE
    if (place === undefined && ACTIONS[key] === undefined) return
    event.preventDefault()
    if (place === undefined) ACTIONS[key]?.()
    else place.click()
  })
}
