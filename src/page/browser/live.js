/**
 * Live values: replaces the texts of elements with `data-live` by members of the JSON that a stream or a repeated request brings, keeps
 * relative times current, and renews the elements with `data-renewed` from a newer print of the screen, and the parts with `data-fragment` below
 * the pointer (renewal.js). Other rows never move, appear or vanish. A hidden tab holds no connection.
 */
import { loginLink } from './loaded-screen.js'
import { liveNumber, memberAt } from './live-values.js'
import { isAiming, isAtWork, renewScreen, renewStates, watchClicks } from './renewal.js'
import { listenShared } from './shared-stream.js'
import { inPlace } from './steady.js'
import { connecting, count, rate, relative, span } from './text-forms.js'

/** Age in ms from which on the state of the relay is shown as an old one. */
const LIGHT_AGE = 30_000
/** Interval of requests without a stream, in ms. */
const POLL = 10_000
/** Interval of requests for the progress of an operation, or for counts that are not known yet, in ms. */
const PROGRESS = 1_000
/** Interval at which the elements that depend on the state are renewed, in ms. */
const STATES = 10_000
/** Time limit of a request, after which it has failed, in ms. */
const ANSWER = 10_000
/** Failures of the stream after which the page asks instead, and time until it tries the stream again, in ms. */
const FAILURES = 3
const RETRY = 15_000
/** Time without an event of the stream, which sends one each second, after which the connection counts as broken, in ms. */
const SILENCE = 5_000

const { root = './', offset = '0' } = document.body.dataset
let { livePath, liveStream, now = '0', speed = '1' } = document.body.dataset
/** Time of the browser's clock at `now`, in ms. */
let loadedAt = Date.now()
/** Time of the server's clock, which may stand or be faster than that of the browser, in ms. */
const serverTime = () => Number(now) + (Date.now() - loadedAt) * Number(speed)

/** @type {Record<string, (value: number) => string>} */
const FORMS = { count, rate, span }

/** Texts of members that are no number, or may be null; undefined for a value without the member. @type {Record<string, (value: unknown) => string | undefined>} */
const TEXTS = {
  // An instant in seconds.
  since: (at) => (at === null ? '' : typeof at === 'number' ? `for ${span(serverTime() / 1_000 - at)}` : undefined),
  connecting: (list) => (Array.isArray(list) ? connecting(list) : undefined),
}

/**
 * The text of a live element; undefined where the value does not tell it.
 * @param {unknown} value
 * @param {string} path
 * @param {string} form
 */
function liveText(value, path, form) {
  const text = TEXTS[form]
  if (text !== undefined) return text(memberAt(value, path))
  const shown = liveNumber(value, path)
  return shown === null ? undefined : (FORMS[form]?.(shown) ?? String(shown))
}

/** @param {unknown} value */
function show(value) {
  inPlace(() => showLive(value))
  showLight(value)
  showNews(value)
  renewAtEnd(value)
}

/** @param {unknown} value */
function showLive(value) {
  for (const element of document.querySelectorAll('[data-live]')) {
    if (!(element instanceof HTMLElement)) continue
    const { live = '', form = '' } = element.dataset
    if (element instanceof HTMLProgressElement) element.value = liveNumber(value, live) ?? element.value
    else {
      const text = liveText(value, live, form)
      if (text !== undefined && element.textContent !== text) element.textContent = text
    }
  }
}

const light = document.querySelector('[data-light]')
/** Time at which the state of the relay was read, in ms. */
let lightAt = Date.now()

/**
 * Shows the state of the relay, if the value has it.
 * @param {unknown} value
 */
function showLight(value) {
  const lit = memberAt(value, 'health/state')
  if (light === null || typeof lit !== 'string') return
  lightAt = Date.now()
  light.className = `light ${lit}`
  const text = light.querySelector('.text')
  if (text !== null) text.textContent = String(memberAt(value, 'health/text'))
}

/** Greys a state that was read some time ago. */
const ageLight = () => light?.classList.toggle('old', Date.now() - lightAt > LIGHT_AGE)

/**
 * Tells of records that are newer than the first one of the list. The list itself does not change under the pointer.
 * @param {unknown} value
 */
function showNews(value) {
  const news = document.querySelector('[data-newest]')
  const newest = memberAt(value, 'records/0/id')
  if (news instanceof HTMLElement && (typeof newest === 'number' || typeof newest === 'string'))
    news.hidden = String(newest) === news.dataset['newest']
}

/** A part of the screen that is replaced when what it waits for has come. */
const waitsFor = () => document.querySelector('[data-state=running], [data-state=counting]')

/**
 * Renews the page of an operation when it has ended, a page without counts when these are known, and that of an empty queue when mail has
 * come. It waits for a person who is at work on the screen.
 * @param {unknown} value
 */
function renewAtEnd(value) {
  const queues = memberAt(value, 'queues')
  const hasMail = document.querySelector('[data-state=empty]') !== null && Array.isArray(queues) && queues.length > 0
  const state = waitsFor()?.getAttribute('data-state')
  const ended = memberAt(value, 'state')
  const hasEnded = state === 'counting' || (state === 'running' && typeof ended === 'string' && ended !== 'running')
  if ((hasMail || hasEnded) && !isRenewing && !isAtWork()) void renew()
}

let isRenewing = false

async function renew() {
  isRenewing = true
  try {
    const result = await renewScreen()
    if (result === 'ended') return sessionEnded()
    if (result === 'later') return
    ;({ livePath, liveStream, now = '0', speed = '1' } = document.body.dataset)
    loadedAt = Date.now()
    if (livePath === undefined) endLive()
    else update()
  } catch {
    // The server does not answer, or with a failure: the next value comes with another try.
  } finally {
    isRenewing = false
  }
}

/** Time at which the states were renewed, in ms. */
let renewedAt = Date.now()
/** The last live value. @type {unknown} */
let lastValue

/** Renews what depends on the state and is older than STATES, unless a person is at work on the screen. */
async function renewOld() {
  if (isRenewing || !isActive() || livePath === undefined || Date.now() - renewedAt < STATES || isAtWork() || isAiming()) return
  isRenewing = true
  try {
    if ((await renewStates()) === 'ended') return sessionEnded()
    renewedAt = Date.now()
    // The stream may be newer than the print.
    if (lastValue !== undefined) show(lastValue)
  } catch {
    // The line in the foot tells that the server does not answer, or that it fails.
    renewedAt = Date.now()
  } finally {
    isRenewing = false
  }
}

/** Ends the live values of a screen that has none any more. */
function endLive() {
  stopAsking()
  closeStream()
  if (line instanceof HTMLElement) line.hidden = true
}

/** Tells that the session has ended. The screen stays. */
function sessionEnded() {
  endLive()
  hasEnded = true
  document.body.classList.add('stale')
  const notice = document.createElement('p')
  notice.className = 'news'
  notice.setAttribute('role', 'alert')
  notice.append('Your session has ended, and these values are not current. ', loginLink())
  document.querySelector('#main')?.prepend(notice)
}

/** Shows the time that has passed. A time becomes no narrower, so that the columns of tables stay where they are, and lines do not join. */
function showTimes() {
  const changed = [...document.querySelectorAll('time[data-relative]')].flatMap((element) => {
    if (!(element instanceof HTMLTimeElement)) return []
    const text = relative((Date.parse(element.dateTime) - serverTime()) / 1_000, element.dataset['relative'])
    return element.textContent === text ? [] : [{ element, text, width: element.getBoundingClientRect().width }]
  })
  if (changed.length === 0) return
  inPlace(() => {
    for (const { element, text, width } of changed) {
      element.textContent = text
      element.style.display = 'inline-block'
      element.style.minWidth = `${width}px`
    }
  })
}

const line = document.querySelector('footer .live')
const state = document.querySelector('[data-live-state]')
const button = document.querySelector('[data-pause]')

/** Time of the last value, for the line in the foot. */
let last = serverTime()
/** Time of the last value before the stream broke; null while it has not. */
/** @type {string | null} */
let brokenAt = null
/** Time of the last event of the stream, or of its begin, in ms. */
let heardAt = 0
let isPaused = false
/** True after the session has ended. */
let hasEnded = false
let failures = 0
/** Increases when the source of the values changes. Answers to requests of a former source are ignored. */
let turn = 0
/** Ends the stream; null without one. */
/** @type {(() => void) | null} */
let endStream = null
/** @type {number | undefined} */
let timer

/**
 * Shows the state of the connection.
 * @param {string} text
 * @param {{ readonly isBad?: boolean, readonly isStale?: boolean }} [marks] `isStale` marks all values as outdated
 */
function report(text, { isBad = false, isStale = false } = {}) {
  if (state !== null && state.textContent !== text) state.textContent = text
  line?.classList.toggle('bad', isBad)
  document.body.classList.toggle('stale', isStale)
}

/** The time of the last value in the zone of the page. */
const lastTime = () => new Date(last + Number(offset) * 60_000).toISOString().slice(11, 16)

/** @param {unknown} value */
function received(value) {
  last = serverTime()
  lastValue = value
  show(value)
}

/** Tells that the values are old, and why. */
const outdated = (/** @type {string} */ why) => report(`not live since ${brokenAt ?? lastTime()}: ${why}`, { isBad: true, isStale: true })

/** @param {number} mine the turn in which the page asks */
async function ask(mine) {
  try {
    const response = await fetch(root + livePath, { headers: { accept: 'application/json' }, signal: AbortSignal.timeout(ANSWER) })
    if (mine !== turn) return
    if (response.status === 401) return sessionEnded()
    if (!response.ok) return outdated(`the server answers ${response.status}`)
    const value = await response.json()
    if (mine !== turn) return
    received(value)
    if (liveStream === undefined) report('live')
    else report(`not live since ${brokenAt ?? lastTime()}: asks every 10 s`, { isBad: true })
  } catch {
    if (mine === turn) outdated('the server does not answer')
  }
}

/** @param {number} [delay] */
function askAgain(delay) {
  const mine = turn
  timer = setTimeout(
    () => {
      void ask(mine).then(() => {
        if (mine === turn && livePath !== undefined) askAgain()
      })
    },
    delay ?? (waitsFor() === null ? POLL : PROGRESS),
  )
}

/** @param {number} [delay] time until the first request without a stream */
function listen(delay) {
  if (liveStream === undefined) return askAgain(delay)
  heardAt = Date.now()
  endStream = listenShared(root + liveStream, 'now', { event: heard, failure: broken })
}

/** @param {string} data of an event */
function heard(data) {
  heardAt = Date.now()
  failures = 0
  brokenAt = null
  stopAsking()
  received(JSON.parse(data))
  report('live')
}

/** @param {boolean} isClosed true when the browser does not connect again by itself */
function broken(isClosed) {
  failures++
  brokenAt ??= lastTime()
  if (failures < FAILURES && !isClosed) return report('connects again …', { isBad: true, isStale: true })
  askInstead()
}

function closeStream() {
  endStream?.()
  endStream = null
}

/** Asks at intervals, and tries the stream again later. */
function askInstead() {
  closeStream()
  stopAsking()
  askAgain(0)
  const mine = turn
  setTimeout(() => {
    if (mine === turn && endStream === null) listen()
  }, RETRY)
}

/** Ends the requests, and ignores the answer to one that is under way. */
function stopAsking() {
  turn++
  clearTimeout(timer)
  timer = undefined
}

const isActive = () => !isPaused && !hasEnded && document.visibilityState === 'visible'

/** @param {number} [delay] */
function update(delay) {
  stopAsking()
  closeStream()
  failures = 0
  if (isActive()) listen(delay)
  else if (isPaused) report(`paused at ${lastTime()}`)
}

/** Breaks a stream that is silent, such as one behind a proxy that has stopped. */
function watchStream() {
  if (endStream === null || failures > 0 || Date.now() - heardAt < SILENCE) return
  failures = FAILURES
  brokenAt ??= lastTime()
  // The request may have no answer either.
  report('connects again …', { isBad: true, isStale: true })
  askInstead()
}

/** Keeps the values of the screen current, if it has a source of them. */
export function startLive() {
  watchClicks()
  setInterval(() => {
    ageLight()
    // A screen without live values stands as of the time in its foot, and so do its times.
    if (isPaused || livePath === undefined) return
    showTimes()
    watchStream()
    void renewOld()
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
