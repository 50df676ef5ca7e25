/** The mail of a report about the queue: what happened since the last one, what waits, and what needs an operator. Pure. */
import { HOUR, type Clock, type QueueTime } from '../system/clock.ts'
import { stateText } from '../presentation/destination-state.ts'
import { clipped, grouped, localTime, maskControls, plural, span } from '../presentation/text.ts'
import type { AttentionItem } from '../queue/attention.ts'
import type { QueueStatus, StatusDestination } from '../queue/queue-status.ts'
import { TRAFFIC_KINDS, type Traffic } from '../store/traffic.ts'

export interface Report {
  readonly subject: string
  readonly text: string
}

export interface ReportFacts {
  /** myhostname */
  readonly name: string
  readonly since: QueueTime
  readonly traffic: Traffic
  readonly status: QueueStatus
  readonly attention: readonly AttentionItem[]
}

const COUNT_WIDTH = 11
/** A line of mail has at most 998 octets (RFC 5322 §2.1.1). */
const LONGEST_LINE = 240

const row = (name: string, value: string): string => `  ${name.padEnd(16)}${value.padStart(COUNT_WIDTH)}`

/** A condition without the destinations, which have a part of their own. */
function conditionText(item: AttentionItem): string | null {
  switch (item.kind) {
    case 'dead-destination':
    case 'suspended-destination':
      return null
    case 'store-unavailable':
      return `mail is neither accepted nor delivered: ${item.why}`
    case 'oauth-failed':
      return `${plural(item.count, 'login')} at next hops without an access token: ${item.why}`
    case 'schedule-failed':
      return `${plural(item.count, 'schedule')} failed, the last: ${item.why}`
    case 'corrupt-messages':
      return `${plural(item.messages, 'message')} unreadable, in the queue corrupt`
    case 'expiring-recipients':
      return `${item.isAtLeast ? 'at least ' : ''}${plural(item.count, 'recipient')} expire within ${span(item.within)}`
    case 'notices-due':
      return `${item.isAtLeast ? 'at least ' : ''}${plural(item.messages, 'notice')} not sent yet`
    case 'warnings':
      return `${plural(item.count, 'warning')} in the log, the last: ${item.last}`
  }
}

const destinationLine = (one: StatusDestination, now: QueueTime): string =>
  `  ${one.destination}: ${plural(one.waiting, 'recipient')}, ${stateText(one, now)}`

const part = (heading: string, lines: readonly string[]): readonly string[] => (lines.length === 0 ? [] : ['', heading, ...lines])

/** Number of destinations in a report. */
const MOST_DESTINATIONS = 10

export function reportOf({ name, since, traffic, status, attention }: ReportFacts, clock: Pick<Clock, 'wall' | 'zone'>): Report {
  const { at, queues, closed, largest } = status
  const [begin, end] = [since, at].map((instant) => localTime(clock.wall.of(instant), clock))
  const waiting = queues.reduce((sum, { recipients }) => sum + recipients, 0)
  const conditions = attention.flatMap((item) => conditionText(item) ?? [])
  const open = largest.filter(({ destination }) => !closed.some((one) => one.destination === destination))
  const lines = [
    `Mail queue of ${name}, ${begin} to ${end} (${span(Math.max(HOUR / 60, at - since))})`,
    ...part(
      'Recipients',
      TRAFFIC_KINDS.map((kind) => row(kind, grouped(traffic[kind]))),
    ),
    ...part(
      'Queue',
      queues.length === 0
        ? ['  empty']
        : queues.map(({ queue, recipients, oldestArrival }) => `${row(queue, grouped(recipients))}  oldest ${span(at - oldestArrival)}`),
    ),
    ...part(
      'Needs attention',
      conditions.map((text) => `  ${text}`),
    ),
    ...part(
      'Dead and suspended destinations',
      closed.slice(0, MOST_DESTINATIONS).map((one) => destinationLine(one, at)),
    ),
    ...part(
      'Other destinations with waiting mail',
      open.slice(0, MOST_DESTINATIONS).map((one) => destinationLine(one, at)),
    ),
  ]
  const mark = conditions.length + closed.length === 0 ? '' : ', needs attention'
  return {
    subject: `Mail queue of ${name}: ${grouped(traffic.delivered)} delivered, ${grouped(waiting)} waiting${mark}`,
    text: lines.map((line) => `${clipped(maskControls(line), LONGEST_LINE)}\n`).join(''),
  }
}
