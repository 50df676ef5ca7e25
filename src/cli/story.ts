/**
 * One message on one screen: what it is, why it is still here, what was tried and what happens next.
 */
import type { Config } from '../config/options.ts'
import type { Clock, Instant } from '../mail/clock.ts'
import { queueIdOf, type DestinationName, type Recipient } from '../queue/message.ts'
import type { LiveDestination } from '../queue/operations.ts'
import type { MessageStory } from '../queue/reader.ts'
import type { AttemptRecord } from '../queue/store.ts'
import { formatDelay } from '../telemetry/delay.ts'
import { attemptJson, messageJson, shownSender } from './message-json.ts'
import { remedyFor, ruleFor } from './rule.ts'
import { nextAttemptAt, originalAddress, waitsFor, type DestinationRecords, type WaitsFor } from './standing.ts'
import { byteSize, harmless, localTime, plural, relative } from './text.ts'

export interface StoryFacts {
  readonly story: MessageStory
  readonly records: DestinationRecords
  /** Destinations in the memory of a running daemon; null when none runs. */
  readonly live: readonly LiveDestination[] | null
  readonly config: Config
  readonly clock: Clock
}

const isLive = ({ state }: Recipient): boolean => state === 'waiting' || state === 'leased' || state === 'parked'

/** The live recipient that is tried first; what the message as a whole waits for. */
function firstToBeTried({ story, records }: StoryFacts): Recipient | undefined {
  const at = (recipient: Recipient) => nextAttemptAt(recipient, story.queue, records) ?? Infinity
  return story.recipients.filter(isLive).toSorted((a, b) => at(a) - at(b) || a.id - b.id)[0]
}

/** The object that `queue show --json` prints. */
export function storyJson(facts: StoryFacts): object {
  const { story, records, config } = facts
  const addresses = new Map(story.recipients.map(({ id, address }) => [id, address]))
  const first = firstToBeTried(facts)
  const waits: WaitsFor = first === undefined ? 'nothing' : waitsFor(first, story.queue, records)
  return {
    ...messageJson(story, records),
    history: story.history.map((attempt) => attemptJson(attempt, addresses.get(attempt.recipient) ?? '')),
    rule:
      first === undefined ? null : ruleFor({ recipient: first, story, waits, next: nextAttemptAt(first, story.queue, records), config }),
    waits_for: waits,
  }
}

class Screen {
  readonly #lines: string[] = []

  line(text = ''): void {
    this.#lines.push(harmless(text).trimEnd())
  }

  fact(name: string, value: string | null | undefined, indent = 2): void {
    if (value !== null && value !== undefined && value !== '') this.line(`${' '.repeat(indent)}${name.padEnd(14)}${value}`)
  }

  toString(): string {
    return `${this.#lines.join('\n')}\n`
  }
}

const timeAndDistance = (at: Instant, clock: Clock): string => `${localTime(at, clock)} (${relative(at, clock.now())})`

/** The screen that `queue show` prints. */
export function storyText(facts: StoryFacts): string {
  const { story, clock } = facts
  const { message } = story
  const screen = new Screen()
  screen.line(`${queueIdOf(message)}  ${story.queue}${story.forcedExpire ? ', given up by an operator' : ''}`)
  screen.fact('from', message.sender === '' ? '<> (a notice or another message without return path)' : shownSender(message.sender))
  screen.fact('size', `${byteSize(message.size)} in all`)
  screen.fact('message-id', message.messageId)
  screen.fact('envid', message.envid)
  screen.fact('arrived', timeAndDistance(message.arrivedAt, clock))
  if (message.createdAt !== message.arrivedAt) screen.fact('requeued', timeAndDistance(message.createdAt, clock))
  if (story.leftAt !== undefined) screen.fact('left', timeAndDistance(story.leftAt, clock))
  if (story.warnings > 0) screen.fact('warnings', `${plural(story.warnings, 'delay warning')} sent to the sender`)
  for (const recipient of story.recipients) writeRecipient(screen, recipient, facts)
  const destinations = new Set(story.recipients.filter(isLive).map(({ destination }) => destination))
  for (const destination of destinations) writeDestination(screen, destination, facts)
  return screen.toString()
}

function writeRecipient(screen: Screen, recipient: Recipient, { story, records, config, clock }: StoryFacts): void {
  const waits = waitsFor(recipient, story.queue, records)
  const next = nextAttemptAt(recipient, story.queue, records)
  screen.line()
  screen.line(`to ${recipient.address}: ${standing(recipient, waits)}`)
  screen.fact('original', originalAddress(recipient))
  if (recipient.settledAt !== undefined) screen.fact('since', timeAndDistance(recipient.settledAt, clock))
  if (isLive(recipient)) {
    screen.fact('next attempt', next === null ? 'none' : timeAndDistance(next, clock))
    screen.fact('by rule', ruleFor({ recipient, story, waits, next, config }))
    // What is kept aside does not expire.
    if (recipient.state !== 'parked') screen.fact('given up', timeAndDistance(recipient.expiresAt, clock))
  }
  if (recipient.debt !== undefined) screen.fact('notice', `the sender is owed a ${recipient.debt} notice`)
  screen.fact('last word', recipient.last?.reason)
  screen.fact('remedy', remedyFor(waits, queueIdOf(story.message), records.get(recipient.destination)))
  const attempts = story.history.filter((attempt) => attempt.recipient === recipient.id)
  screen.line(
    `  ${plural(recipient.attempts, 'attempt')}${attempts.length < recipient.attempts ? `, ${attempts.length} of them remembered` : ''}`,
  )
  for (const attempt of attempts) writeAttempt(screen, attempt, clock)
}

const STANDINGS: Readonly<Record<WaitsFor, string>> = {
  'due-time': 'waits for its time',
  delivery: 'is being delivered now',
  probe: 'waits, because its destination does not answer',
  resume: 'waits, because its destination is suspended',
  release: 'is on hold',
  inspection: 'is set aside, because it cannot be read',
  restore: 'is in the trash',
  nothing: '',
}

const standing = (recipient: Recipient, waits: WaitsFor): string => (waits === 'nothing' ? recipient.state : STANDINGS[waits])

function writeAttempt(screen: Screen, { at, relay, outcome, status, delays }: AttemptRecord, clock: Clock): void {
  const parts = delays.map(formatDelay).join('/')
  screen.line(`    ${localTime(at, clock)}  ${outcome} ${status.status}  at ${relay ?? 'nobody'}, stage ${status.stage}, delays ${parts}`)
  screen.line(`      ${status.reply ?? status.reason}`)
}

function writeDestination(screen: Screen, name: DestinationName, { records, live, clock }: StoryFacts): void {
  const record = records.get(name)
  const now = live?.find(({ destination }) => destination === name)
  const deadUntil = now === undefined ? (record?.deadUntil ?? null) : now.deadUntil
  screen.line()
  screen.line(`destination ${name}`)
  if (record?.suspendedBy !== undefined && record.suspendedBy !== null) screen.fact('suspended', `by ${record.suspendedBy}`)
  if (deadUntil !== null) screen.fact('dead until', timeAndDistance(deadUntil, clock))
  if (now !== undefined) screen.fact('window', `${now.window} at once, ${now.inFlight} in flight, ${now.waiting} waiting for a slot`)
  screen.fact('last trouble', now?.lastReply ?? record?.reason?.reason)
  if (live === null) screen.fact('daemon', 'not running: nothing is tried until it is started')
}
