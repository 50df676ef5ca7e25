/** Formats one message for `queue show`: its facts, the reason, the attempts so far, and the next attempt. */
import type { DeliveryStatus } from '../../mail/smtp-reply.ts'
import { failureClass } from '../../mail/failure-class.ts'
import { hintOf } from '../../mail/login-refusal.ts'
import type { Clock, QueueTime } from '../../system/clock.ts'
import { differingOrcpt } from '../../mail/envelope.ts'
import type { TlsFacts, TlsPolicySource, TlsState } from '../../mail/tls-facts.ts'
import { isLive, queueIdOf, type DestinationName, type Recipient } from '../../mail/message.ts'
import type { LiveDestination } from '../../store/destination-status.ts'
import type { AttemptRecord } from '../../store/queue-store.ts'
import { formatDelay } from '../../telemetry/kinds/delays.ts'
import { healthOf, rateText, siteReason, stateText } from '../../presentation/destination-state.ts'
import { shownSender } from '../../mail/envelope.ts'
import { remedyFor, ruleFor } from '../../presentation/next-attempt-reason.ts'
import type { StoryFacts } from '../../resources/message-story-json.ts'
import { nextAttemptAt, waitsFor, type WaitsFor } from '../../presentation/recipient-status.ts'
import { painted, roleOfDestination, roleOfQueue, type Display, type Role } from './style.ts'
import { byteSize, maskControls, localTime, plural, relative } from '../../presentation/text.ts'
import { hanging } from './wrapping.ts'

export interface StoryScreenFacts extends Omit<StoryFacts, 'wall'> {
  /** Destinations in the daemon's memory; null when no daemon runs. */
  readonly live: readonly LiveDestination[] | null
  readonly clock: Clock
}

const NAME_WIDTH = 14

/** Lines of at most the width of the display. Longer text continues at an indent. */
class Screen {
  readonly #lines: string[] = []
  readonly #display: Display

  constructor(display: Display) {
    this.#display = display
  }

  /** Adds text after `indent` blanks. Continuation lines have two blanks more. */
  line(text = '', role: Role | null = null, indent = 0): void {
    this.#add(' '.repeat(indent), text, indent + 2, role)
  }

  fact(name: string, value: string | null | undefined): void {
    if (value !== null && value !== undefined && value !== '') this.#add(`  ${name.padEnd(NAME_WIDTH)}`, value, NAME_WIDTH + 2)
  }

  #add(prefix: string, text: string, indent: number, role: Role | null = null): void {
    const { width } = this.#display
    for (const line of hanging(prefix, maskControls(text), { width, indent })) this.#lines.push(painted(line, role, this.#display))
  }

  toString(): string {
    return `${this.#lines.join('\n')}\n`
  }
}

const timeAndDistance = (at: QueueTime, clock: Clock): string => `${localTime(clock.wall.of(at), clock)} (${relative(at, clock.now())})`

/** Builds the text of `queue show`. */
export function storyText(facts: StoryScreenFacts, display: Display): string {
  const { story, clock } = facts
  const { message } = story
  const screen = new Screen(display)
  screen.line(`${queueIdOf(message)}  ${story.queue}${story.forcedExpire ? ', forced to expire' : ''}`, roleOfQueue[story.queue])
  screen.fact('from', message.sender === '' ? '<> (a notice or another message without return path)' : shownSender(message.sender))
  screen.fact('size', byteSize(message.size))
  screen.fact('message-id', message.messageId)
  screen.fact('envid', message.envid)
  screen.fact('arrived', timeAndDistance(message.arrivedAt, clock))
  if (message.createdAt !== message.arrivedAt) screen.fact('requeued', timeAndDistance(message.createdAt, clock))
  if (message.notBefore !== undefined) screen.fact('not before', timeAndDistance(message.notBefore, clock))
  if (message.expires !== undefined) screen.fact('given up at', timeAndDistance(message.expires, clock))
  if (story.leftAt !== undefined) screen.fact('left', timeAndDistance(story.leftAt, clock))
  if (story.warnings > 0) screen.fact('warnings', `${plural(story.warnings, 'delay warning')} sent to the sender`)
  for (const recipient of story.recipients) writeRecipient(screen, recipient, facts)
  const destinations = new Set(story.recipients.filter(isLive).map(({ destination }) => destination))
  for (const destination of destinations) writeDestination(screen, destination, facts)
  return screen.toString()
}

function writeRecipient(screen: Screen, recipient: Recipient, { story, records, policies, clock }: StoryScreenFacts): void {
  const waits = waitsFor(recipient, story.queue, records)
  const next = nextAttemptAt(recipient, story.queue, records)
  screen.line()
  screen.line(`to ${recipient.address}: ${statusText(recipient, waits)}`, roleOf(recipient, waits))
  screen.fact('original', differingOrcpt(recipient))
  if (recipient.settledAt !== undefined) screen.fact('since', timeAndDistance(recipient.settledAt, clock))
  if (isLive(recipient)) {
    screen.fact('next attempt', next === null ? 'none' : timeAndDistance(next, clock))
    screen.fact('by rule', ruleFor({ recipient, story, waits, next, policies, wall: clock.wall }))
    // Held and corrupt mail does not expire.
    if (recipient.state !== 'parked') screen.fact('expires', timeAndDistance(recipient.expiresAt, clock))
  }
  if (recipient.noticeDue !== undefined) screen.fact('notice', `${recipient.noticeDue} notice to the sender is due`)
  screen.fact('last reply', recipient.last?.reply ?? recipient.last?.reason)
  screen.fact('remedy', remedyFor(waits, queueIdOf(story.message), records.get(recipient.destination)))
  const attempts = story.history.filter((attempt) => attempt.recipient === recipient.id)
  screen.line(
    `${plural(recipient.attempts, 'attempt')}${attempts.length < recipient.attempts ? `, ${attempts.length} shown` : ''}`,
    null,
    2,
  )
  for (const attempt of attempts) writeAttempt(screen, attempt, clock)
}

const STATUS_TEXTS: Readonly<Record<WaitsFor, string>> = {
  'due-time': 'waits for its next attempt',
  schedule: 'is scheduled',
  delivery: 'is in delivery',
  probe: 'waits behind a dead destination',
  resume: 'waits behind a suspended destination',
  release: 'is on hold',
  inspection: 'is corrupt: it cannot be read',
  restore: 'is in the trash',
  nothing: '',
}

function statusText({ state, node }: Recipient, waits: WaitsFor): string {
  if (waits === 'nothing') return state
  return node === undefined ? STATUS_TEXTS[waits] : `${STATUS_TEXTS[waits]}, leased by ${node}`
}

function roleOf({ state }: Recipient, waits: WaitsFor): Role | null {
  if (waits === 'nothing') return state === 'delivered' ? 'good' : 'bad'
  if (waits === 'delivery') return 'good'
  return waits === 'release' || waits === 'resume' ? 'stopped' : 'waiting'
}

function writeAttempt(screen: Screen, { at, relay, outcome, status, delays }: AttemptRecord, clock: Clock): void {
  const parts = delays.map(formatDelay).join('/')
  screen.line(
    `${localTime(clock.wall.of(at), clock)}  ${outcome} ${status.status}  at ${relay ?? 'no host'}, stage ${status.stage}, delays ${parts}`,
    null,
    4,
  )
  screen.line(status.reply ?? status.reason, null, 6)
  if (outcome !== 'delivered') writeClass(screen, status)
  if (status.tls !== undefined) screen.line(tlsText(status.tls), null, 6)
}

/** For example `class recipient: x.1.1 in reply to RCPT`, then what has to be done, if that is known. */
function writeClass(screen: Screen, status: DeliveryStatus): void {
  const { class: name, rule } = failureClass(status)
  const hint = hintOf(status)
  screen.line(`class ${name}: ${rule}`, null, 6)
  if (hint !== null) screen.line(`to do: ${hint}`, null, 6)
}

const TLS_STATES: Readonly<Record<TlsState, string>> = {
  undecided: 'not begun or broken off',
  clear: 'not used',
  encrypted: 'encrypted, certificate not verified',
  trusted: 'encrypted, certificate of a trusted CA',
  verified: 'certificate verified',
  'not-offered': 'required, but not offered',
  refused: 'refused',
}

const TLS_SOURCES: Readonly<Record<TlsPolicySource, string>> = {
  config: ' by configuration',
  dane: ' by TLSA records',
  sts: ' by the MTA-STS policy',
  none: '',
}

/** `TLS secure by the MTA-STS policy: certificate verified, TLSv1.3 with TLS_AES_256_GCM_SHA384` */
function tlsText({ level, policy, state, protocol, cipher, reason }: TlsFacts): string {
  const connection = protocol === undefined ? '' : `, ${protocol} with ${cipher ?? 'unknown cipher'}`
  return `TLS ${level}${TLS_SOURCES[policy]}: ${TLS_STATES[state]}${connection}${reason === undefined ? '' : ` (${reason})`}`
}

function writeDestination(screen: Screen, name: DestinationName, { records, live, clock }: StoryScreenFacts): void {
  const known = { record: records.get(name), live: live?.find(({ destination }) => destination === name) }
  const { deadUntil, siteStatus } = healthOf(known)
  screen.line()
  screen.line(`destination ${name}`, roleOfDestination[healthOf(known).state])
  screen.fact('state', stateText(known, clock.now()))
  if (deadUntil !== null) screen.fact('dead until', timeAndDistance(deadUntil, clock))
  if (known.live !== undefined) {
    const { window, inFlight, waiting } = known.live
    screen.fact('window', `${window} at once${rateText(known.live)}, ${inFlight} in flight, ${waiting} waiting for a slot`)
  }
  if (siteStatus !== null) screen.fact('last reply', siteReason(siteStatus))
  screen.fact('to do', hintOf(siteStatus))
  if (live === null) screen.fact('daemon', 'not running: no attempts until it is started')
}
