/** The mail of a report about the queue: what happened since the last one, what waits, and what needs an operator. Pure. */
import { MINUTE, type Clock, type WallTime } from '../system/clock.ts'
import { loggedNotes } from '../presentation/attention-text.ts'
import { stateText } from '../presentation/destination-state.ts'
import { clipped, grouped, instantOf, localTime, maskControls, plural, span } from '../presentation/text.ts'
import type { AttentionItem } from '../queue/attention.ts'
import type { StatusDestinationJson } from '../resources/destination-json.ts'
import type { StatusJson } from '../resources/status-json.ts'
import { TRAFFIC_KINDS, type Traffic } from '../store/counts/traffic.ts'

export interface Report {
  readonly subject: string
  readonly text: string
}

export interface ReportFacts {
  /** myhostname */
  readonly name: string
  readonly since: WallTime
  readonly traffic: Traffic
  readonly status: StatusJson
  readonly attention: readonly AttentionItem[]
}

const COUNT_WIDTH = 11
/** A line of mail has at most 998 octets (RFC 5322 §2.1.1). */
const LONGEST_LINE = 240

const row = (name: string, value: string): string => `  ${name.padEnd(16)}${value.padStart(COUNT_WIDTH)}`

function conditionText(item: AttentionItem): string {
  switch (item.kind) {
    case 'store-unavailable':
      return `mail is neither accepted nor delivered: ${item.why}`
    case 'oauth-failed':
      return `${plural(item.count, 'login')} at next hops without an access token: ${item.why}`
    case 'schedule-failed':
      return `${plural(item.count, 'schedule')} failed, the last: ${item.why}`
    case 'limits':
    case 'quotas':
      return item.why
    case 'listings-stopped':
      return `suppression list: ${item.why}`
    case 'corrupt-messages':
      return `${plural(item.messages, 'message')} unreadable, in the queue corrupt`
    case 'expiring-recipients':
      return `${item.isAtLeast ? 'at least ' : ''}${plural(item.count, 'recipient')} ${item.count === 1 ? 'expires' : 'expire'} within ${span(item.within)}`
    case 'notices-due':
      return `${item.isAtLeast ? 'at least ' : ''}${plural(item.messages, 'notice')} not sent yet`
    case 'warnings':
      return `${loggedNotes(item.count, undefined)}, the last: ${item.last}`
  }
}

const destinationLine = (one: StatusDestinationJson, now: WallTime): string =>
  `  ${one.destination}: ${plural(one.waiting, 'recipient')}, ${stateText(one, now)}`

const part = (heading: string, lines: readonly string[]): readonly string[] => (lines.length === 0 ? [] : ['', heading, ...lines])

/** Number of destinations in a report. */
const MOST_DESTINATIONS = 10

export function reportOf({ name, since, traffic, status, attention }: ReportFacts, clock: Pick<Clock, 'zone'>): Report {
  const { queues, troubles, closed_destinations: closed, refusing_destinations: refusing, largest_destinations: largest } = status
  const at = instantOf(status.time)
  const waiting = queues.reduce((sum, { recipients }) => sum + recipients, 0)
  const conditions = attention.map(conditionText)
  const troubled = new Set([...closed, ...refusing].map(({ destination }) => destination))
  const open = largest.filter(({ destination }) => !troubled.has(destination))
  const counts = queues.map(
    (one) => `${row(one.queue_name, grouped(one.recipients))}  oldest ${span(at - instantOf(one.oldest_arrival_time))}`,
  )
  const lines = [
    `Mail queue of ${name}, ${localTime(since, clock)} to ${localTime(at, clock)} (${span(Math.max(MINUTE, at - since))})`,
    ...part(
      'Recipients',
      TRAFFIC_KINDS.map((kind) => row(kind, grouped(traffic[kind]))),
    ),
    ...part('Queue', counts.length === 0 ? ['  empty'] : counts),
    ...part(
      'Needs attention',
      conditions.map((text) => `  ${text}`),
    ),
    ...part(
      'Destinations that need attention',
      troubles.slice(0, MOST_DESTINATIONS).map(({ text }) => `  ${text}`),
    ),
    ...part(
      'Other destinations with waiting mail',
      open.slice(0, MOST_DESTINATIONS).map((one) => destinationLine(one, at)),
    ),
  ]
  const mark = conditions.length + troubles.length === 0 ? '' : ', needs attention'
  return {
    subject: `Mail queue of ${name}: ${grouped(traffic.delivered)} delivered, ${grouped(waiting)} waiting${mark}`,
    text: lines.map((line) => `${clipped(maskControls(line), LONGEST_LINE)}\n`).join(''),
  }
}
