/**
 * Dialogs: a link or form with `data-dialog` leads to a screen with one panel. The panel is shown in a dialog over the present screen,
 * which stays as it is. Without this script the screen is loaded instead.
 */

import { isLogin, load, loginLink, NoAnswer } from './loaded-screen.js'

/** Time after which a dialog whose panel is still being made is shown, in ms. The dry run of many messages takes a second or two. */
const SHOWN_AFTER = 300

/**
 * Makes relative URLs of a loaded screen relative to this one.
 * @param {Element} panel
 * @param {string} url
 */
function rebase(panel, url) {
  for (const [name, selector] of [
    ['href', 'a[href]'],
    ['action', 'form[action]'],
  ]) {
    if (name === undefined || selector === undefined) continue
    for (const element of panel.querySelectorAll(selector)) element.setAttribute(name, new URL(element.getAttribute(name) ?? '', url).href)
  }
}

/**
 * A dialog that is not shown yet. It removes itself when it is closed, and gives the focus back to its opener.
 * @param {Element | null} opener
 */
function newDialog(opener) {
  const dialog = document.createElement('dialog')
  dialog.addEventListener('close', () => {
    dialog.remove()
    if (opener instanceof HTMLElement) opener.focus()
  })
  dialog.addEventListener('click', (event) => {
    const { target } = event
    if (target instanceof Element && target.closest('[data-close]') !== null) {
      event.preventDefault()
      dialog.close()
    }
  })
  document.body.append(dialog)
  return dialog
}

/**
 * @param {HTMLDialogElement} dialog
 * @param {Element} panel
 */
function showPanel(dialog, panel) {
  const heading = panel.querySelector('h1')
  if (heading !== null) {
    heading.id = 'dialog-title'
    dialog.setAttribute('aria-labelledby', heading.id)
  }
  dialog.append(panel)
  dialog.showModal()
}

/**
 * A panel with a sentence, further elements and Cancel.
 * @param {string} sentence
 * @param {readonly HTMLElement[]} [elements]
 */
function smallPanel(sentence, elements = []) {
  const panel = document.createElement('div')
  const text = document.createElement('p')
  const buttons = document.createElement('p')
  const cancel = document.createElement('button')
  panel.className = 'panel'
  text.setAttribute('role', 'status')
  text.textContent = sentence
  buttons.className = 'buttons'
  cancel.type = 'button'
  cancel.textContent = 'Cancel'
  cancel.setAttribute('data-close', '')
  buttons.append(...elements, cancel)
  panel.append(text, buttons)
  return panel
}

/** Shown in place of a panel after the session has ended. The screen below stays. */
function endedPanel() {
  const link = loginLink()
  link.className = 'button primary'
  return smallPanel('Your session has ended: nothing was changed. After the login you are on this screen again.', [link])
}

/**
 * Shows the panel of a screen. Follows the link when the screen has none. While the server does not answer, the screen below stays, with what
 * was chosen on it.
 * @param {string} url
 * @param {Element | null} opener
 */
async function open(url, opener) {
  const dialog = newDialog(opener)
  const closed = new AbortController()
  dialog.addEventListener('close', () => closed.abort())
  const timer = setTimeout(() => {
    dialog.append(smallPanel('Loading …'))
    dialog.showModal()
  }, SHOWN_AFTER)
  let [loaded, isAnswered] = [/** @type {Document | null} */ (null), true]
  try {
    loaded = await load(url, closed.signal)
  } catch (error) {
    isAnswered = !(error instanceof NoAnswer)
  }
  clearTimeout(timer)
  if (closed.signal.aborted) return
  const panel = loaded?.querySelector('main .panel') ?? null
  // A new dialog, so that the focus goes to the first control of the panel.
  dialog.remove()
  if (!isAnswered) return showPanel(newDialog(opener), smallPanel('The server does not answer: nothing was changed. Try again later.'))
  if (loaded !== null && isLogin(loaded)) return showPanel(newDialog(opener), endedPanel())
  if (panel === null) return location.assign(url)
  rebase(panel, url)
  showPanel(newDialog(opener), document.adoptNode(panel))
}

/** Opens links and forms with `data-dialog` as dialogs. */
export function startDialogs() {
  document.addEventListener('click', (event) => {
    const { target } = event
    if (event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || !(target instanceof Element)) return
    const link = target.closest('a[data-dialog]')
    if (!(link instanceof HTMLAnchorElement)) return
    event.preventDefault()
    void open(link.href, link)
  })

  document.addEventListener('submit', (event) => {
    const { target, submitter } = event
    if (!(target instanceof HTMLFormElement) || !target.hasAttribute('data-dialog')) return
    event.preventDefault()
    const url = new URL(target.action)
    const fields = [...new FormData(target, submitter)].map(([name, value]) => [name, typeof value === 'string' ? value : ''])
    url.search = new URLSearchParams(fields).toString()
    void open(url.href, submitter)
  })
}
