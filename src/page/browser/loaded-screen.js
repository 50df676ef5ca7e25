/** Screens that are loaded beside the one that is shown, and the login after which this one is shown again. */

/** The server cannot be reached. */
export class NoAnswer extends Error {}

/** The server answers with a failure in the place of the screen. */
class FailedScreen extends Error {}

/**
 * The document of a screen or of a failure in its place; rejects with NoAnswer, and when `signal` aborts. XMLHttpRequest parses HTML without running scripts, and without text that
 * becomes markup in this page.
 * @param {string} url
 * @param {AbortSignal} signal
 * @returns {Promise<Document>}
 */
export const load = async (url, signal) => (await asked(url, signal)).document

/**
 * The document of a screen, or of the login; rejects with FailedScreen for a failure in its place, too.
 * @param {string} url
 * @param {AbortSignal} signal
 * @returns {Promise<Document>}
 */
export async function loadAnew(url, signal) {
  const { document, status } = await asked(url, signal)
  if (status >= 400) throw new FailedScreen(`the server answers ${status}`)
  return document
}

/**
 * @param {string} url
 * @param {AbortSignal} signal
 * @returns {Promise<{ document: Document, status: number }>}
 */
function asked(url, signal) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest()
    request.responseType = 'document'
    request.open('GET', url)
    request.setRequestHeader('accept', 'text/html')
    request.addEventListener('load', () => {
      if (request.responseXML instanceof Document) resolve({ document: request.responseXML, status: request.status })
      else reject(new Error(`no document (${request.status})`))
    })
    request.addEventListener('error', () => reject(new NoAnswer('the server does not answer')))
    request.addEventListener('abort', () => reject(new Error('the dialog was closed')))
    signal.addEventListener('abort', () => request.abort())
    request.send()
  })
}

/**
 * Whether a loaded document is the login in place of the screen: the session has ended.
 * @param {Document} loaded
 */
export const isLogin = (loaded) => loaded.body.classList.contains('login')

/** A link to the login, which leads back to this screen. */
export function loginLink() {
  const link = document.createElement('a')
  const { root = './' } = document.body.dataset
  const place = location.href.slice(new URL(root, location.href).href.length)
  const query = new URLSearchParams({ ended: '1', ...(place === '' ? {} : { back: place }) })
  link.href = `${root}login?${query.toString()}`
  link.textContent = 'Log in'
  return link
}
