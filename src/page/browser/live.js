/**
 * Live values: replaces the texts of elements with `data-live` by members of the JSON that a stream or a repeated request brings, and
 * keeps relative times current. Elements never move, appear or vanish. A hidden tab holds no connection.
 */
import { count, rate, relative } from './text-forms.js'

/** Interval of requests without a stream, in ms. */
const POLL = 10_000
/** Interval of requests for the progress of an operation, in ms. */
const PROGRESS = 1_000
/** Failures of the stream after which the page asks instead, and time until it tries the stream again, in ms. */
const FAILURES = 3
const RETRY = 15_000

const { root = './', now = '0', livePath, liveStream } = document.body.dataset
/** Clock of the server minus that of the browser, in ms. */
const ahead = Number(now) - Date.now()

/** @type {Record<string, (value: number) => string>} */
const FORMS = { count, rate }

/**
 * The member of a value at a path. A segment names a member, or the entry of a list by its queue or destination.
 * @param {unknown} value
 * @param {string} path
 * @returns {unknown}
 */
function memberAt(value, path) {
  /** @type {unknown} */
  let found = value
  for (const segment of path.split('/').map(decodeURIComponent)) {
    if (Array.isArray(found)) found = found.find((one) => one.queue_name === segment || one.destination === segment)
    else if (typeof found === 'object' && found !== null) found = Reflect.get(found, segment)
    else return undefined
  }
  return found
}

/** @param {unknown} value */
function show(value) {
  for (const element of document.querySelectorAll('[data-live]')) {
    if (!(element instanceof HTMLElement)) continue
    const { live = '', form = '' } = element.dataset
    const member = memberAt(value, live)
    // A queue or destination without mail is absent from the lists.
    const shown = member === undefined && /^(?:queues|largest_destinations)\//.test(live) ? 0 : member
    if (typeof shown !== 'number') continue
    if (element instanceof HTMLProgressElement) element.value = shown
    else {
      const text = FORMS[form]?.(shown) ?? String(shown)
      if (element.textContent !== text) element.textContent = text
    }
  }
  reloadAtEnd(value)
}

/**
 * Loads the page of an operation again when it has ended.
 * @param {unknown} value
 */
function reloadAtEnd(value) {
  const panel = document.querySelector('[data-state=running]')
  const state = memberAt(value, 'state')
  if (panel !== null && typeof state === 'string' && state !== 'running') location.reload()
}

function showTimes() {
  for (const element of document.querySelectorAll('time[data-relative]')) {
    if (!(element instanceof HTMLTimeElement)) continue
    const seconds = (Date.parse(element.dateTime) - Date.now() - ahead) / 1_000
    const text = relative(seconds, element.dataset['relative'])
    if (element.textContent !== text) element.textContent = text
  }
}

const line = document.querySelector('footer .live')
const state = document.querySelector('[data-live-state]')
const button = document.querySelector('[data-pause]')

/** Time of the last value, for the line in the foot. */
let last = new Date()
let isPaused = false
let failures = 0
/** @type {EventSource | null} */
let source = null
/** @type {number | undefined} */
let timer

/**
 * @param {string} text
 * @param {boolean} [isBad]
 */
function report(text, isBad = false) {
  if (state !== null && state.textContent !== text) state.textContent = text
  line?.classList.toggle('bad', isBad)
}

/** @param {unknown} value */
function received(value) {
  last = new Date()
  show(value)
}

async function ask() {
  try {
    const response = await fetch(root + livePath, { headers: { accept: 'application/json' } })
    if (response.status === 401) location.reload()
    if (!response.ok) throw new Error(response.statusText)
    received(await response.json())
    if (liveStream === undefined) report('live')
    else report(`not live since ${last.toTimeString().slice(0, 5)}: asks every 10 s`, true)
  } catch {
    report(`not live since ${last.toTimeString().slice(0, 5)}: the server does not answer`, true)
  }
}

/** @param {number} [delay] */
function askAgain(delay) {
  const isRunning = document.querySelector('[data-state=running]') !== null
  timer = setTimeout(
    () => {
      void ask().then(() => {
        if (isActive()) askAgain()
      })
    },
    delay ?? (isRunning ? PROGRESS : POLL),
  )
}

/** @param {number} [delay] time until the first request without a stream */
function listen(delay) {
  if (liveStream === undefined) return askAgain(delay)
  source = new EventSource(root + liveStream)
  source.addEventListener('now', (event) => {
    failures = 0
    stopAsking()
    received(JSON.parse(event.data))
    report('live')
  })
  source.addEventListener('error', () => {
    failures++
    if (failures < FAILURES && source?.readyState !== EventSource.CLOSED) return report('connects again …', true)
    source?.close()
    source = null
    if (!isActive()) return
    stopAsking()
    askAgain(0)
    setTimeout(() => {
      if (isActive() && source === null) listen()
    }, RETRY)
  })
}

function stopAsking() {
  clearTimeout(timer)
  timer = undefined
}

const isActive = () => !isPaused && document.visibilityState === 'visible'

/** @param {number} [delay] */
function update(delay) {
  stopAsking()
  source?.close()
  source = null
  failures = 0
  if (isActive()) listen(delay)
  else if (isPaused) report(`paused at ${last.toTimeString().slice(0, 5)}`)
}

/** Keeps the values of the screen current, if it has a source of them. */
export function startLive() {
  setInterval(() => {
    if (!isPaused) showTimes()
  }, 1_000)

  if (livePath !== undefined && line instanceof HTMLElement) {
    line.hidden = false
    button?.addEventListener('click', () => {
      isPaused = !isPaused
      button.setAttribute('aria-pressed', String(isPaused))
      button.textContent = isPaused ? 'Resume' : 'Pause'
      update()
    })
    document.addEventListener('visibilitychange', () => update(0))
    update()
  }
}
