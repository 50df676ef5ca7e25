/**
 * Status of the queue in one value: rates, queues, closed destinations, the last hour, and the balance. Commands, metrics and other
 * views are made from it. Pure.
 */
import type { DestinationName, QueueName } from '../mail/message.ts'
import type { TokenState } from '../oauth/access-tokens.ts'
import {
  byConnections,
  CONNECTING_SHOWN,
  isClosed,
  isRecordedClosed,
  isRefusing,
  NONE_QUEUED,
  waitingAt,
  waitingNow,
  type DeliverySlots,
  type QueuedCount,
} from '../store/destination-status.ts'
import type { LiveDestination } from './scheduler/destination.ts'
import type { SubscriptionView } from '../store/outbox/subscription.ts'
import type { DestinationRecord } from '../store/queue-store.ts'
import type { QueueReader } from '../store/queue-reader.ts'
import { balanceOf, type Balance } from '../store/counts/queue-balance.ts'
import type { QueueCount, QueueTally, TrashCount, WaitingCount } from '../store/counts/queue-tally.ts'
import { sumOfTraffic, type Traffic } from '../store/counts/traffic.ts'
import { HOUR, type Clock, type QueueTime } from '../system/clock.ts'
import type { RecentAttempts } from '../telemetry/last-outcomes.ts'
import type { Rates } from '../telemetry/meter.ts'
import type { FullQuota } from './intake/quota-reports.ts'
import type { LimitState } from './intake/queue-limits.ts'
import { scheduleStates, type Schedules, type ScheduleState } from './schedule-state.ts'

/** The part of the status that only a running daemon has. */
export interface LiveStatus {
  readonly version: string
  readonly tally: StatusTally
  readonly rates: Rates
  /** Absent in the answer of an earlier version. */
  readonly deliveries?: DeliverySlots | undefined
  readonly destinations: readonly LiveDestination[]
  /** Access tokens for next hops; absent in the answer of an earlier version. */
  readonly tokens?: readonly TokenState[] | undefined
  /** Limits of the queue with their use; absent in the answer of an earlier version. */
  readonly limits?: readonly LimitState[] | undefined
  /** Limits of quotas that are used up; absent in the answer of an earlier version. */
  readonly quotas?: readonly FullQuota[] | undefined
  /** Destinations with too many unknown recipients, at which no address is listed for now; absent in the answer of an earlier version. */
  readonly braked?: readonly DestinationName[] | undefined
  /** Recent attempts at the destinations with the most waiting recipients. */
  readonly recent: readonly (RecentAttempts & { readonly destination: DestinationName })[]
}

export interface StatusDestination {
  readonly destination: DestinationName
  readonly waiting: number
  /** Of them, recipients of mail that is scheduled for later; null when they are not counted. */
  readonly scheduled: number | null
  readonly live: LiveDestination | undefined
  readonly record: DestinationRecord | undefined
  readonly recent: RecentAttempts | undefined
}

export interface QueueStatus {
  readonly at: QueueTime
  /** Null when no daemon runs. */
  readonly running: Pick<LiveStatus, 'version' | 'rates' | 'deliveries'> | null
  readonly queues: readonly QueueCount[]
  readonly trash: TrashCount
  /** Arrival of the oldest message that is neither scheduled nor in the trash; null for an empty queue. */
  readonly oldestArrival: QueueTime | null
  readonly lastHour: Traffic
  /** Dead and suspended destinations, the largest first. */
  readonly closed: readonly StatusDestination[]
  /** Open destinations that have delivered nothing in their last attempts, the largest first; empty when no daemon runs. */
  readonly refusing: readonly StatusDestination[]
  /** Throttled destinations with a large part of the queue, the largest first; empty when no daemon runs. */
  readonly throttled: readonly StatusDestination[]
  /** The destinations with the most waiting recipients. */
  readonly largest: readonly StatusDestination[]
  /** Subscriptions to events, by name. */
  readonly subscriptions: readonly SubscriptionView[]
  /** Access tokens for next hops, by table and user; empty when no daemon runs. */
  readonly tokens: readonly TokenState[]
  /** Work at times of the calendar, by table. */
  readonly schedules: readonly ScheduleState[]
  /** Limits of the queue with their use; empty when no daemon runs, and before all mail is counted. */
  readonly limits: readonly LimitState[]
  /** Limits of quotas that are used up, the first one first. */
  readonly quotas: readonly FullQuota[]
  readonly balance: Balance
}

/** Share of the recipients that wait, and number of recipients, from which on a destination has a large part of the queue. */
const LARGE_SHARE = 0.2
const LARGE_NUMBER = 100

const WAITING: readonly QueueName[] = ['incoming', 'active', 'deferred']

function isLargePart(recipients: number, queues: readonly QueueCount[]): boolean {
  const all = queues.reduce((sum, one) => sum + (WAITING.includes(one.queue) ? one.recipients : 0), 0)
  return recipients >= LARGE_NUMBER && recipients >= LARGE_SHARE * all
}

/** Maximum number of destinations in `largest`. */
export const LARGEST = 20
/** Maximum number of destinations whose waiting recipients are counted at once. */
export const COUNTED = 250

/** The counts that a status shows. */
type StatusTally = Omit<QueueTally, 'classes'>

/** Computes the tally that a running daemon would keep. Reads the whole queue. */
async function tallyFrom(reader: QueueReader, now: QueueTime): Promise<StatusTally> {
  const waiting: WaitingCount[] = []
  const size = 500
  for (let after = ''; ;) {
    const page = await reader.destinationLoads({ after, limit: size })
    for (const { destination, waiting: recipients, leased } of page) waiting.push({ destination, recipients, leased, scheduled: null })
    if (page.length < size) break
    after = page.at(-1)?.destination ?? after
  }
  const [queues, trash, { total }] = [await reader.counts(), await reader.trashCount(), await reader.traffic(now)]
  return { queues, trash, traffic: total, waiting: waiting.toSorted((a, b) => b.recipients - a.recipients) }
}

/** The part of the status that is read from the store. */
export interface StoredStatus {
  readonly lastHour: Traffic
  readonly records: ReadonlyMap<DestinationName, DestinationRecord>
  /** Counts of destinations that a tally without room for all may leave out: of those with most mail, and of those that are dead or suspended. */
  readonly loads: ReadonlyMap<DestinationName, QueuedCount>
  /** Subscriptions to events. */
  readonly subscriptions: readonly SubscriptionView[]
  readonly schedules: readonly ScheduleState[]
}

interface StatusSources {
  readonly reader: QueueReader
  readonly clock: Pick<Clock, 'now' | 'wall'>
  readonly schedules: Schedules
}

/**
 * Reads the stored part. Dead and suspended destinations are counted one by one only if the tally has no room for all destinations: it has
 * those with the most waiting recipients.
 */
export async function readStored({ reader, clock, schedules }: StatusSources, tally: Pick<QueueTally, 'waiting'>): Promise<StoredStatus> {
  const now = clock.now()
  const counted = queuedIn(tally)
  const { minutes } = await reader.traffic(now - HOUR)
  const records = new Map((await reader.destinationRecords()).map((record) => [record.name, record]))
  const closed = [...records.values()].filter(isRecordedClosed).map(({ name }) => name)
  const missing = isComplete(tally) ? [] : closed.filter((name) => !counted.has(name))
  const others = await Promise.all(missing.map(async (name) => [name, await reader.destinationLoad(name)] as const))
  const loads = new Map([...counted, ...others])
  return {
    lastHour: sumOfTraffic(minutes),
    records,
    loads,
    subscriptions: await reader.allSubscriptions(),
    schedules: await scheduleStates(reader, schedules, clock),
  }
}

/** True for a tally with all destinations that have mail. */
const isComplete = ({ waiting }: Pick<QueueTally, 'waiting'>): boolean => waiting.length !== COUNTED

/** The counts of a tally, by destination. */
export const queuedIn = ({ waiting }: Pick<QueueTally, 'waiting'>): ReadonlyMap<DestinationName, QueuedCount> =>
  new Map(waiting.map(({ destination, recipients, leased }) => [destination, { waiting: recipients, leased }]))

/** The status of now; `live` is null when no daemon runs. */
export async function readStatus(sources: StatusSources, live: LiveStatus | null): Promise<QueueStatus> {
  const now = sources.clock.now()
  const tally = live?.tally ?? (await tallyFrom(sources.reader, now))
  return statusOf({ tally, live, stored: await readStored(sources, tally), now })
}

/** The status of facts that were read before. */
export function statusOf({
  tally,
  live,
  stored: { lastHour, records, loads, subscriptions, schedules },
  now,
}: {
  readonly tally: StatusTally
  readonly live: LiveStatus | null
  readonly stored: StoredStatus
  readonly now: QueueTime
}): QueueStatus {
  const inMemory = new Map(live?.destinations.map((one) => [one.destination, one]))
  const recent = new Map(live?.recent.map((one) => [one.destination, one]))
  const counted = isComplete(tally) ? queuedIn(tally) : new Map([...loads, ...queuedIn(tally)])
  const scheduled = new Map(tally.waiting.map((one) => [one.destination, one.scheduled]))
  const named = (destination: DestinationName): StatusDestination => ({
    destination,
    waiting: waitingAt(counted.get(destination) ?? NONE_QUEUED, inMemory.get(destination)),
    scheduled: scheduled.get(destination) ?? null,
    live: inMemory.get(destination),
    record: records.get(destination),
    recent: recent.get(destination),
  })
  const bySize = (a: StatusDestination, b: StatusDestination): number => b.waiting - a.waiting
  const closed = closedIn({ records, live: [...inMemory.values()] })
    .map(named)
    .toSorted(bySize)
  const refusing = (live?.destinations ?? [])
    .filter(isRefusing)
    .map(({ destination }) => named(destination))
    .toSorted(bySize)
  const busy = live?.destinations.filter(({ waiting }) => waiting > 0) ?? []
  const largest = [...new Set([...tally.waiting.slice(0, LARGEST), ...busy].map(({ destination }) => destination))]
    .map(named)
    .filter(({ waiting }) => waiting > 0)
    .toSorted(bySize)
    .slice(0, LARGEST)
  return {
    at: now,
    running: live === null ? null : { version: live.version, rates: live.rates, deliveries: live.deliveries },
    queues: tally.queues,
    trash: tally.trash,
    oldestArrival: oldestArrival(tally.queues),
    lastHour,
    closed,
    refusing,
    throttled: largest.filter(
      (one) => isLargePart(waitingNow(one), tally.queues) && one.live?.state === 'throttled' && !isRefusing(one.live),
    ),
    largest,
    subscriptions,
    tokens: live?.tokens?.toSorted(byTable) ?? [],
    schedules,
    limits: live?.limits ?? [],
    quotas: live?.quotas ?? [],
    balance: balanceOf(tally),
  }
}

/** Arrival of the oldest message that is not scheduled; null for an empty queue. */
export const oldestArrival = (queues: readonly QueueCount[]): QueueTime | null =>
  queues
    .filter(({ queue }) => queue !== 'scheduled')
    .reduce<QueueTime | null>((min, { oldestArrival: at }) => (min === null || at < min ? at : min), null)

const byTable = (a: TokenState, b: TokenState): number => (a.name === b.name ? compare(a.user, b.user) : compare(a.name, b.name))

const compare = (a: string, b: string): number => (a < b ? -1 : Number(a > b))

/** Each limit of a key once, with the first time of several nodes. */
function mergedQuotas(all: readonly FullQuota[]): readonly FullQuota[] {
  const inOrder = all.toSorted((a, b) => a.since - b.since)
  return inOrder.filter((one, n) => inOrder.findIndex((other) => isSameLimit(one, other)) === n)
}

const isSameLimit = (a: FullQuota, b: FullQuota): boolean => a.quota === b.quota && a.key === b.key && a.limit === b.limit

/** One state of each login on several nodes: one that fails, else the token that ends first. */
function mergedTokens(all: readonly TokenState[]): readonly TokenState[] {
  const urgency = ({ failedSince, left }: TokenState): number => (failedSince === null ? (left ?? 0) : -1)
  const worst = new Map<string, TokenState>()
  for (const one of all.toSorted((a, b) => urgency(b) - urgency(a))) worst.set(JSON.stringify([one.name, one.user]), one)
  return [...worst.values()]
}

/** The slots of several nodes together. */
function mergedSlots(all: readonly DeliverySlots[]): DeliverySlots {
  const counts = new Map<string, number>()
  for (const { connecting } of all) for (const { address, count } of connecting) counts.set(address, (counts.get(address) ?? 0) + count)
  const connecting = Array.from(counts, ([address, count]) => ({ address, count })).toSorted(byConnections)
  return {
    inFlight: all.reduce((sum, one) => sum + one.inFlight, 0),
    limit: all.reduce((sum, one) => sum + one.limit, 0),
    connecting: connecting.slice(0, CONNECTING_SHOWN),
  }
}

/** Destinations that are dead or suspended: in the memory of a daemon, else as recorded. */
function closedIn({
  records,
  live,
}: {
  readonly records: StoredStatus['records']
  readonly live: readonly LiveDestination[]
}): readonly DestinationName[] {
  const inMemory = new Set(live.map(({ destination }) => destination))
  return [
    ...live.filter(isClosed).map(({ destination }) => destination),
    ...[...records.values()].filter((one) => isRecordedClosed(one) && !inMemory.has(one.name)).map(({ name }) => name),
  ]
}

/** Destinations that were closed when they were recorded, and are not among those of `live`: they may be open again. */
export function unconfirmedClosed({ records }: Pick<StoredStatus, 'records'>, { destinations }: Pick<LiveStatus, 'destinations'>) {
  const known = new Set(destinations.map(({ destination }) => destination))
  return [...records.values()].filter((one) => isRecordedClosed(one) && !known.has(one.name)).map(({ name }) => name)
}

/** One status of several nodes: the sums of their rates, and the destinations of all. */
export function mergedStatus(all: readonly LiveStatus[]): LiveStatus | null {
  const [first] = all
  if (first === undefined) return null
  const ownRecent = all.flatMap(({ destinations, recent }) => {
    const own = new Set(destinations.map(({ destination }) => destination))
    return recent.filter(({ destination }) => own.has(destination))
  })
  const rates = (name: keyof LiveStatus['rates']) => sumOfTraffic(all.map((one) => one.rates[name]))
  return {
    version: first.version,
    tally: first.tally,
    rates: { last10s: rates('last10s'), last5min: rates('last5min') },
    deliveries: mergedSlots(all.flatMap(({ deliveries }) => deliveries ?? [])),
    destinations: all.flatMap(({ destinations }) => destinations),
    tokens: mergedTokens(all.flatMap(({ tokens = [] }) => tokens)),
    limits: first.limits,
    quotas: mergedQuotas(all.flatMap(({ quotas = [] }) => quotas)),
    braked: [...new Set(all.flatMap(({ braked = [] }) => braked))],
    recent: ownRecent,
  }
}
