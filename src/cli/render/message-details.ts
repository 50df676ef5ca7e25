/** Formats one message for `queue show`: its facts, the reason, the attempts so far, and the next attempt. */
import { nextName } from '../../presentation/expiry-words.ts'
import { shownSender } from '../../mail/envelope.ts'
import { LIVE_STATES, type DestinationName } from '../../mail/message.ts'
import type { TlsPolicySource, TlsState } from '../../mail/tls-facts.ts'
import { providerText, rateText, stateText } from '../../presentation/destination-state.ts'
import type { WaitsFor } from '../../presentation/recipient-status.ts'
import { byteSize, instantOf, localTime, maskControls, plural, relative } from '../../presentation/text.ts'
import type { DestinationJson } from '../../resources/destination-json.ts'
import type { StoryJson } from '../../resources/message-story-json.ts'
import { SECOND, type Clock } from '../../system/clock.ts'
import { formatDelay } from '../../telemetry/kinds/delays.ts'
import { painted, roleOfDestination, roleOfQueue, type Display, type Role } from './style.ts'
import { hanging } from './wrapping.ts'

type StoryRecipient = StoryJson['recipients'][number]
type Attempt = StoryJson['history'][number]

/** True for a recipient that is not in a final state. */
export const isLive = ({ state }: StoryRecipient): boolean => state === 'scheduled' || LIVE_STATES.some((one) => one === state)

/** The queue with the name that deferd has for it; Postfix has none for scheduled mail. */
export const queueOf = ({ queue_name: queue, scheduled }: StoryJson) => (scheduled === true && queue === 'deferred' ? 'scheduled' : queue)

interface StoryScreenFacts {
  /** The destinations of live recipients, as far as something is known of them. */
  readonly destinations: ReadonlyMap<DestinationName, DestinationJson>
  readonly isRunning: boolean
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

const timeAndDistance = (seconds: number, clock: Clock): string =>
  `${localTime(instantOf(seconds), clock)} (${relative(instantOf(seconds), clock.wall.now())})`

/** Builds the text of `queue show`. */
export function storyText(story: StoryJson, facts: StoryScreenFacts, display: Display): string {
  const { clock } = facts
  const { queue_id: id, sender, received_time: arrived, create_time: created, leave_time: left } = story
  const queue = queueOf(story)
  const screen = new Screen(display)
  screen.line(`${id}  ${queue}${story.forced_expire ? ', forced to expire' : ''}`, roleOfQueue[queue])
  screen.fact('from', sender === shownSender('') ? '<> (a notice or another message without return path)' : sender)
  screen.fact('from header', story.from_header)
  screen.fact('subject', story.subject)
  screen.fact('size', byteSize(story.message_size))
  screen.fact('message-id', story.message_id)
  screen.fact('envid', story.envid)
  screen.fact('class', story.class)
  screen.fact('share', story.share)
  screen.fact('arrived', timeAndDistance(arrived, clock))
  if (created !== arrived) screen.fact('requeued', timeAndDistance(created, clock))
  if (story.not_before !== undefined) screen.fact('not before', timeAndDistance(story.not_before, clock))
  if (story.expires !== undefined) screen.fact('given up at', timeAndDistance(story.expires, clock))
  if (story.deliver_by !== undefined) screen.fact('deliver by', `${timeAndDistance(story.deliver_by, clock)}, mode ${story.by_mode ?? ''}`)
  if (story.maximum_attempts !== null) screen.fact('attempts', `at most ${story.maximum_attempts}, as the client asked`)
  if (left !== null) screen.fact('left', timeAndDistance(left, clock))
  if (story.restore_until !== null) screen.fact('restorable', `until ${timeAndDistance(story.restore_until, clock)}`)
  if (story.warnings > 0) screen.fact('warnings', `${plural(story.warnings, 'delay warning')} sent to the sender`)
  for (const recipient of story.recipients) writeRecipient(screen, recipient, story, clock)
  const destinations = new Set(story.recipients.filter(isLive).map(({ destination }) => destination))
  for (const destination of destinations) writeDestination(screen, destination, facts)
  return screen.toString()
}

function writeRecipient(screen: Screen, recipient: StoryRecipient, { history, forced_expire: isForced }: StoryJson, clock: Clock): void {
  const {
    address,
    next_attempt_time: next,
    settle_time: settled,
    expire_time: expires,
    notice_due: notice,
    resent_as: resentAs,
  } = recipient
  screen.line()
  screen.line(`to ${address}: ${statusText(recipient)}`, roleOf(recipient))
  screen.fact('original', recipient.orig_address)
  if (settled !== null) screen.fact('since', timeAndDistance(settled, clock))
  if (resentAs !== null) screen.fact('sent again as', resentAs)
  if (isLive(recipient)) {
    screen.fact(nextName(isForced), next === null ? 'none' : timeAndDistance(next, clock))
  }
  screen.fact('by rule', recipient.rule)
  if (isLive(recipient)) {
    if (expires !== null) screen.fact('expires', timeAndDistance(expires, clock))
  }
  if (notice !== null) screen.fact('notice', `${notice} notice to the sender is due`)
  screen.fact('last reply', recipient.last_reply)
  screen.fact('remedy', recipient.remedy)
  const attempts = history.filter((attempt) => attempt.recipient === address)
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
  slot: 'waits for a delivery slot',
  delivery: 'is in delivery',
  probe: 'waits behind a dead destination',
  resume: 'waits behind a suspended destination',
  release: 'is on hold',
  inspection: 'is corrupt: it cannot be read',
  restore: 'is in the trash',
  nothing: '',
}

function statusText({ state, waits_for: waits, leased_by: node }: StoryRecipient): string {
  if (waits === 'nothing') return state
  return node === undefined ? STATUS_TEXTS[waits] : `${STATUS_TEXTS[waits]}, leased by ${node}`
}

function roleOf({ state, waits_for: waits }: StoryRecipient): Role | null {
  if (waits === 'nothing') return state === 'delivered' ? 'good' : 'bad'
  if (waits === 'delivery') return 'good'
  return waits === 'release' || waits === 'resume' ? 'stopped' : 'waiting'
}

function writeAttempt(screen: Screen, attempt: Attempt, clock: Clock): void {
  const { time, host, outcome, status, stage, reply, reason, class: name, class_rule: rule, hint, tls, session } = attempt
  const parts = attempt.delays.map((delay) => formatDelay(delay * SECOND)).join('/')
  screen.line(
    `${localTime(instantOf(time), clock)}  ${outcome} ${status}  at ${host ?? 'no host'}, stage ${stage}, delays ${parts}`,
    null,
    4,
  )
  screen.line(reply ?? reason, null, 6)
  if (name !== null) screen.line(`class ${name}: ${rule}`, null, 6)
  if (hint !== null) screen.line(`to do: ${hint}`, null, 6)
  const below = [...(tls === null ? [] : [tlsText(tls)]), ...(session === null ? [] : [`dialogue ${session}`])].join('; ')
  if (below !== '') screen.line(below, null, 6)
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
function tlsText({ level, policy, state, protocol, cipher, reason }: NonNullable<Attempt['tls']>): string {
  const connection = protocol === null ? '' : `, ${protocol} with ${cipher ?? 'unknown cipher'}`
  return `TLS ${level}${TLS_SOURCES[policy]}: ${TLS_STATES[state]}${connection}${reason === null ? '' : ` (${reason})`}`
}

function writeDestination(screen: Screen, name: DestinationName, { destinations, isRunning, clock }: StoryScreenFacts): void {
  const one = destinations.get(name)
  screen.line()
  screen.line(`destination ${name}`, roleOfDestination[one?.state ?? 'open'])
  screen.fact('state', one === undefined ? 'open' : stateText(one, clock.wall.now()))
  if (one !== undefined) {
    const { window, in_flight: inFlight, slot_waiting: waiting, dead_until: deadUntil } = one
    if (deadUntil !== null) screen.fact('dead until', timeAndDistance(deadUntil, clock))
    screen.fact('provider', providerText(one))
    if (window !== null)
      screen.fact('window', `${window} at once${rateText(one.message_rate)}, ${inFlight} in flight, ${waiting} waiting for a slot`)
    screen.fact('blocked', one.blocked_by)
    screen.fact('last reply', one.site_reason)
    screen.fact('to do', one.hint)
  }
  if (!isRunning) screen.fact('daemon', 'not running: no attempts until it is started')
}
