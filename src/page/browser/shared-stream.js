/**
 * One stream of events for all visible tabs of a browser, because a browser opens few connections to a host. The tab that holds a lock
 * opens the stream and passes its events on; when it is hidden or closed, the lock and the stream go to another tab. Where a browser
 * has no locks, such as on plain HTTP to another machine, each tab has a stream of its own.
 */

/**
 * @typedef {object} StreamListener
 * @property {(data: string) => void} event called with the data of each event
 * @property {(isClosed: boolean) => void} failure called when the stream of this tab breaks
 */

/**
 * Begins to listen. Returns the function that ends it.
 * @param {string} url of the stream
 * @param {string} name name of the events
 * @param {StreamListener} listener
 * @returns {() => void}
 */
export function listenShared(url, name, { event, failure }) {
  if (navigator.locks === undefined) return openStream(url, name, { event, failure })
  const shared = `deferd ${new URL(url, location.href).href} ${document.body.dataset['who'] ?? ''}`
  const channel = new BroadcastChannel(shared)
  const end = new AbortController()
  channel.addEventListener('message', ({ data }) => {
    if (typeof data === 'string') event(data)
  })
  const held = navigator.locks.request(
    shared,
    { signal: end.signal },
    () =>
      new Promise((release) => {
        if (end.signal.aborted) return release(undefined)
        const close = openStream(url, name, {
          event: (data) => {
            // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a BroadcastChannel has one origin
            channel.postMessage(data)
            event(data)
          },
          failure,
        })
        end.signal.addEventListener('abort', () => {
          close()
          release(undefined)
        })
      }),
  )
  // A request that has not been granted is rejected at its end.
  held.catch(() => undefined)
  return () => {
    end.abort()
    channel.close()
  }
}

/**
 * Opens a stream of this tab alone. Returns the function that closes it.
 * @param {string} url
 * @param {string} name
 * @param {StreamListener} listener
 * @returns {() => void}
 */
function openStream(url, name, { event, failure }) {
  const source = new EventSource(url)
  source.addEventListener(name, ({ data }) => event(data))
  source.addEventListener('error', () => failure(source.readyState === EventSource.CLOSED))
  return () => source.close()
}
