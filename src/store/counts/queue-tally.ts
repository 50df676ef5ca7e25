/**
 * The tally of a queue: messages and recipients by queue name, the oldest arrival, and waiting recipients by destination. The
 * tally is kept up to date by adding and removing the share of one message at a time. It needs eight bytes per message, in pages
 * of typed arrays; messages with equal shares have all other data in common.
 */
import type { DestinationName, MessageId, QueueName } from '../../mail/message.ts'
import type { Duration, QueueTime } from '../../system/clock.ts'
import { Arrivals, CountedMessages } from './counted-messages.ts'
import { NO_TRAFFIC, type Traffic } from './traffic.ts'

export interface QueueCount {
  readonly queue: QueueName
  readonly messages: number
  /** Live recipients. */
  readonly recipients: number
  /** The earliest arrival. A tally rounds it down to the second. */
  readonly oldestArrival: QueueTime
}

/** Messages in the trash, and their live recipients. */
export interface TrashCount {
  readonly messages: number
  readonly recipients: number
}

/** Recipients that wait for a destination outside of the active queue, and beside them those in it. */
export interface WaitingCount {
  readonly destination: DestinationName
  readonly recipients: number
  /** Of them, those of mail that is scheduled for later; null when they are not counted. */
  readonly scheduled: number | null
  /** Recipients in the active queue, which wait for a delivery slot or are in transfer. Absent in the answer of an earlier version. */
  readonly leased?: number | undefined
}

export interface QueueTally {
  /** Queues that hold a message, unordered. Mail in the trash is not counted. */
  readonly queues: readonly QueueCount[]
  readonly trash: TrashCount
  /** Traffic since the queue was created, of the same moment as the counts. */
  readonly traffic: Traffic
  /** Destinations with the most waiting recipients, in descending order; then those that only have mail in the active queue. */
  readonly waiting: readonly WaitingCount[]
  /** Waiting recipients by class of mail, unordered, without mail that has none. */
  readonly classes: readonly { readonly class: string; readonly recipients: number }[]
}

/** Tally of a queue that never held mail. */
export const EMPTY_TALLY: QueueTally = { queues: [], trash: { messages: 0, recipients: 0 }, waiting: [], classes: [], traffic: NO_TRAFFIC }

/** Calls QueueStore.tally until every change is counted. */
export async function completeTally(tally: () => Promise<QueueTally | null>): Promise<QueueTally> {
  for (;;) {
    const counted = await tally()
    if (counted !== null) return counted
  }
}

/** Contribution of one message to the tally. */
export interface Share {
  /**
   * `untried`: queued and never attempted. The tally reports untried messages as `incoming`, or as `deferred` while one of their
   * destinations is dead or suspended.
   */
  readonly queue: Exclude<QueueName, 'incoming'> | 'trash' | 'untried'
  /** Live recipients. */
  readonly recipients: number
  /** Waiting recipients by destination. */
  readonly waiting: ReadonlyMap<DestinationName, number>
  /** Recipients in the active queue by destination. */
  readonly leased: ReadonlyMap<DestinationName, number>
  /** Class of the message; empty for none. */
  readonly class: string
}

/** Messages of one queue. The untried messages of a group have the same destinations. */
interface Group {
  readonly key: string
  readonly queue: Share['queue']
  readonly destinations: readonly DestinationName[]
  readonly arrivals: Arrivals
  messages: number
  recipients: number
}

/** Messages with the same share. */
interface Shape {
  readonly key: string
  readonly index: number
  readonly group: Group
  readonly share: Share
  messages: number
}

/** Resolution of arrival times in the tally. */
const SECOND: Duration = 1_000

export class Tally {
  readonly #shareOf: (key: string) => Share
  readonly #counted = new CountedMessages()
  readonly #groups = new Map<string, Group>()
  readonly #shapes = new Map<string, Shape>()
  /** Shapes by index. Index 0 stands for a message without a share. */
  readonly #byIndex: (Shape | undefined)[] = [undefined]
  readonly #freeIndexes: number[] = []
  readonly #waiting = new Map<DestinationName, number>()
  readonly #leased = new Map<DestinationName, number>()
  /** Of the waiting recipients, those of scheduled mail; destinations without any are absent. */
  readonly #scheduled = new Map<DestinationName, number>()
  readonly #classes = new Map<string, number>()

  /** `shareOf` decodes the key of a share. The tally calls it once per distinct key. */
  constructor(shareOf: (key: string) => Share) {
    this.#shareOf = shareOf
  }

  /** Counts a message, whose share `key` encodes, in place of its previous share. */
  put(id: MessageId, arrivedAt: QueueTime, key: string): void {
    this.remove(id)
    const second = Math.floor(arrivedAt / SECOND)
    const shape = this.#shapes.get(key) ?? this.#newShape(key)
    const { group, share } = shape
    this.#counted.set(id, shape.index, second)
    shape.messages++
    group.messages++
    group.recipients += share.recipients
    group.arrivals.add(second)
    this.#wait(share, 1)
  }

  /** Removes a message from the counts. Has no effect on a message without a share. */
  remove(id: MessageId): void {
    const counted = this.#counted.take(id)
    const shape = counted === undefined ? undefined : this.#byIndex[counted.shape]
    if (counted === undefined || shape === undefined) return
    const { group, share } = shape
    group.messages--
    group.recipients -= share.recipients
    group.arrivals.remove(counted.second)
    this.#wait(share, -1)
    if (--shape.messages === 0) this.#forget(shape)
    if (group.messages === 0) this.#groups.delete(group.key)
  }

  /** Number of live recipients counted for a message; 0 for a message without a share. */
  recipientsOf(id: MessageId): number {
    return this.#byIndex[this.#counted.shapeOf(id)]?.share.recipients ?? 0
  }

  /** Whether any message is untried. If so, the result of `report` depends on the closed destinations. */
  get hasUntried(): boolean {
    for (const { queue } of this.#groups.values()) if (queue === 'untried') return true
    return false
  }

  /** Current counts, with at most `largest` destinations in `waiting`. `closed` has the destinations that are dead or suspended. */
  report(closed: ReadonlySet<DestinationName>, largest: number): Omit<QueueTally, 'traffic'> {
    const queues = new Map<QueueName, QueueCount>()
    const trash = { messages: 0, recipients: 0 }
    for (const group of this.#groups.values()) {
      const { messages, recipients, arrivals } = group
      if (group.queue === 'trash') {
        trash.messages += messages
        trash.recipients += recipients
        continue
      }
      const queue = queueNameOf(group.queue, group.destinations, closed)
      queues.set(queue, addCounts(queues.get(queue), { queue, messages, recipients, oldestArrival: arrivals.oldest * SECOND }))
    }
    return { queues: [...queues.values()], trash, waiting: this.#atDestinations(largest), classes: this.#ofClasses() }
  }

  #atDestinations(most: number): QueueTally['waiting'] {
    const largest = largestOf(this.#waiting, most).map(({ destination, count }) => ({
      destination,
      recipients: count,
      leased: this.#leased.get(destination) ?? 0,
      scheduled: this.#scheduled.get(destination) ?? 0,
    }))
    const room = most - largest.length
    if (room === 0) return largest
    const others = [...this.#leased].filter(([destination]) => !this.#waiting.has(destination))
    const inMemory = largestOf(others, room).map(({ destination, count }) => ({ destination, recipients: 0, leased: count, scheduled: 0 }))
    return [...largest, ...inMemory]
  }

  /** Adds the waiting recipients of a message, and those in the active queue, or with -1 takes them away. */
  #wait({ waiting, leased, queue, class: name }: Share, sign: 1 | -1): void {
    for (const [destination, recipients] of leased) add(this.#leased, destination, sign * recipients)
    for (const [destination, recipients] of waiting) {
      add(this.#waiting, destination, sign * recipients)
      if (queue === 'scheduled') add(this.#scheduled, destination, sign * recipients)
      if (name !== '') add(this.#classes, name, sign * recipients)
    }
  }

  #ofClasses(): QueueTally['classes'] {
    return [...this.#classes].map(([name, recipients]) => ({ class: name, recipients }))
  }

  #newShape(key: string): Shape {
    const share = this.#shareOf(key)
    const index = this.#freeIndexes.pop() ?? this.#byIndex.length
    const shape = { key, index, group: this.#groupOf(share), share, messages: 0 }
    this.#shapes.set(key, shape)
    this.#byIndex[index] = shape
    return shape
  }

  #forget({ key, index }: Shape): void {
    this.#shapes.delete(key)
    this.#byIndex[index] = undefined
    this.#freeIndexes.push(index)
  }

  #groupOf({ queue, waiting }: Share): Group {
    const destinations = queue === 'untried' ? [...waiting.keys()] : []
    const key = [queue, ...destinations].join('\n')
    const known = this.#groups.get(key)
    if (known !== undefined) return known
    const group = { key, queue, destinations, arrivals: new Arrivals(), messages: 0, recipients: 0 }
    this.#groups.set(key, group)
    return group
  }
}

/** Changes a count, which is forgotten at 0. */
function add(counts: Map<string, number>, name: string, change: number): void {
  const sum = (counts.get(name) ?? 0) + change
  if (sum === 0) counts.delete(name)
  else counts.set(name, sum)
}

function queueNameOf(
  queue: Exclude<Group['queue'], 'trash'>,
  destinations: readonly DestinationName[],
  closed: ReadonlySet<DestinationName>,
): QueueName {
  if (queue !== 'untried') return queue
  return destinations.some((name) => closed.has(name)) ? 'deferred' : 'incoming'
}

/** Adds up two counts of one queue. */
export const addCounts = (one: QueueCount | undefined, { queue, messages, recipients, oldestArrival }: QueueCount): QueueCount => ({
  queue,
  messages: messages + (one?.messages ?? 0),
  recipients: recipients + (one?.recipients ?? 0),
  oldestArrival: Math.min(oldestArrival, one?.oldestArrival ?? Infinity),
})

/** Selects the largest entries without sorting all of them. */
function largestOf(counts: Iterable<readonly [DestinationName, number]>, most: number) {
  const largest: { readonly destination: DestinationName; readonly count: number }[] = []
  for (const [destination, count] of counts) {
    if (largest.length >= most && count <= (largest.at(-1)?.count ?? Infinity)) continue
    let [place, end] = [0, largest.length]
    while (place < end) {
      const middle = (place + end) >> 1
      if ((largest[middle]?.count ?? 0) < count) end = middle
      else place = middle + 1
    }
    largest.splice(place, 0, { destination, count })
    if (largest.length > most) largest.pop()
  }
  return largest
}
