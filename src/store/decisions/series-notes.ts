/**
 * Counts of the transactions of mail for series (records/series): by destination, domain of the sender, node, cause and delay. Calls only
 * note; the transaction writes the sum as one row before its commit.
 */
import { domainOf } from '../../mail/address.ts'
import type { DestinationName, Message } from '../../mail/message.ts'
import { HOUR, type Duration, type QueueTime } from '../../system/clock.ts'
import { SERIES_KINDS, type SeriesDelta, type SeriesDimension, type SeriesKind } from '../records/series.ts'
import { minuteOf, type TrafficKind } from '../counts/traffic.ts'

/** Sender and destination of counted recipients. */
export interface MailPath {
  readonly sender: Message['sender']
  readonly destination: DestinationName
}

/** Recipients that a call counts. */
export interface Happened {
  readonly kind: TrafficKind
  readonly at: QueueTime
  /** Negative for mail that leaves the queue without an outcome, as in a move. */
  readonly recipients: number
  /** Absent for recipients that are counted in the traffic alone: of moves and deletions. */
  readonly path?: MailPath
  readonly cause?: string
  /** Time from the arrival to the delivery. */
  readonly delay?: Duration
}

/** Upper bounds of the delays that are counted together, in ms; the last bucket has none. */
const DELAY_BOUNDS: readonly Duration[] = [
  0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200, 14_400, 28_800, 43_200, 86_400, 172_800, 259_200,
  432_000,
].map((seconds) => seconds * 1_000)

/** Name under which mail is counted whose sender is empty or has no domain. */
const NO_DOMAIN = '<>'
/** Name of a bucket without an upper bound. */
const LONGEST = 'longest'
const NAME_LENGTH = 255

export const delayBucket = (delay: Duration): string => String(DELAY_BOUNDS.find((bound) => delay <= bound) ?? LONGEST)

/** Bounds of a bucket; a bucket without an upper bound has twice its lower one. */
export function boundsOf(bucket: string): readonly [from: Duration, to: Duration] {
  const last = DELAY_BOUNDS.at(-1) ?? 0
  if (bucket === LONGEST) return [last, 2 * last]
  const to = Number(bucket)
  return [DELAY_BOUNDS[DELAY_BOUNDS.indexOf(to) - 1] ?? 0, to]
}

/** Recipients of new mail, by destination. */
export const accepted = (message: Message, recipients: readonly { readonly destination: DestinationName }[]): readonly Happened[] =>
  [...Map.groupBy(recipients, ({ destination }) => destination)].map(([destination, those]) => ({
    kind: 'accepted',
    at: message.createdAt,
    recipients: those.length,
    path: { sender: message.sender, destination },
  }))

const isCounted = (kind: TrafficKind): kind is SeriesKind => kind !== 'deleted'

/** Names as databases take them. */
const storable = (name: string): string => name.slice(0, NAME_LENGTH).toWellFormed().replaceAll('\0', '')

/** Sums of what was noted. `node` is null for a queue without nodes. */
export function deltaOf(noted: readonly Happened[], node: string | null): SeriesDelta {
  const sums = new Map<string, [SeriesDimension, QueueTime, string, ...number[]]>()
  const add = (dimension: SeriesDimension, at: QueueTime, name: string, { kind, recipients }: Happened): void => {
    if (!isCounted(kind)) return
    const key = `${dimension} ${at} ${name}`
    const row = sums.get(key) ?? [dimension, at, storable(name), ...SERIES_KINDS.map(() => 0)]
    const n = SERIES_KINDS.indexOf(kind) + 3
    row[n] = Number(row[n]) + recipients
    sums.set(key, row)
  }
  for (const one of noted) {
    if (one.path === undefined) continue
    const minute = minuteOf(one.at)
    const hour = Math.floor(one.at / HOUR) * HOUR
    add('destination', hour, one.path.destination, one)
    add('sender_domain', hour, domainOf(one.path.sender) || NO_DOMAIN, one)
    if (node !== null) add('node', hour, node, one)
    if (one.cause !== undefined) add('cause', minute, one.cause, one)
    if (one.delay !== undefined) add('delay', minute, delayBucket(one.delay), one)
  }
  return [...sums.values()]
}
