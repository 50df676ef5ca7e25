/**
 * Dialogs: a link or form with `data-dialog` leads to a screen with one panel. The panel is shown in a dialog over the present screen,
 * which stays as it is. Without this script the screen is loaded instead.
 */

/**
 * The document of a screen. XMLHttpRequest parses HTML without running scripts, and without text that becomes markup in this page.
 * @param {string} url
 * @returns {Promise<Document>}
 */
function load(url) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest()
    request.responseType = 'document'
    request.open('GET', url)
    request.setRequestHeader('accept', 'text/html')
    request.addEventListener('load', () => {
      if (request.responseXML instanceof Document) resolve(request.responseXML)
      else reject(new Error(`no document (${request.status})`))
    })
    request.addEventListener('error', () => reject(new Error('the server does not answer')))
    request.send()
  })
}

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
 * Shows the panel of a screen. Follows the link when the screen has none, such as the login.
 * @param {string} url
 * @param {Element | null} opener
 */
async function open(url, opener) {
  let loaded = null
  document.body.setAttribute('data-loading', '')
  try {
    loaded = await load(url)
  } catch {
    loaded = null
  }
  document.body.removeAttribute('data-loading')
  const panel = loaded?.querySelector('main .panel') ?? null
  if (panel === null) return location.assign(url)
  rebase(panel, url)
  const dialog = document.createElement('dialog')
  const heading = panel.querySelector('h1')
  if (heading !== null) {
    heading.id = 'dialog-title'
    dialog.setAttribute('aria-labelledby', heading.id)
  }
  dialog.append(document.adoptNode(panel))
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
  dialog.showModal()
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
