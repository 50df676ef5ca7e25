/**
 * Keeps the tally of a queue in SQLite. A write only records the ids of the messages it may have changed. A request for the tally
 * reads the shares of these messages again, a slice of messages at a time. A message that arrives and leaves between two requests
 * therefore costs nothing. The initial count reads the whole queue in the same slices.
 */
import type { Database } from 'better-sqlite3'
import { messageOf, recipientId, type DestinationName, type MessageId, type Placement, type RecipientId } from '../../../mail/message.ts'
import type { QueueTime } from '../../../system/clock.ts'
import { queueNameOf } from '../../decisions/queue-name.ts'
import { Tally, type Share } from '../../counts/queue-tally.ts'
import { recipientRange } from '../../sql/id-ranges.ts'
import { closedDestinations } from '../../sql/message-selection.ts'
import { sliceEnd } from '../../sql/queue-queries.ts'

/** Separator of the parts of a key. No part contains it. */
const NEXT = 'char(10)'

/** Placement, or `scheduled`. */
const QUEUE = `case when scheduled = 1 and placement = 'queued' then 'scheduled' else placement end`

/**
 * Messages of a range of ids, each with its share of the tally as a text key. The key lists placement, class, state, tried,
 * destination and number of recipients for each distinct kind of live recipient. A text is the cheapest form in which SQLite can return a
 * list of rows, and equal keys are decoded once.
 */
export const sharesBetween = `
  select id, arrived_at, group_concat(kind || recipients, ${NEXT})
  from (select message.id as id, arrived_at, count(*) as recipients,
      ${QUEUE} || ${NEXT} || coalesce(class, '') || ${NEXT} || state || ${NEXT} || (attempts > 0) || ${NEXT} || destination || ${NEXT} as kind
    from message cross join recipient on recipient.id ${recipientRange('message.id')}
    where message.id between :first and :last and settled_at is null
    group by message.id, state, destination, attempts > 0)
  group by id`

/**
 * Number of recipients read per slice, which takes a few milliseconds and delays other calls. One large message may exceed it.
 */
const SLICE = 500

export class MessageShares {
  readonly #tally = new Tally(shareOf)
  /** Highest message id that the initial count has reached. Messages with higher ids are not counted yet. */
  #through: MessageId = 0
  /** Messages changed since their share was read. All ids are at most `#through`. */
  readonly #stale = new Set<MessageId>()
  /** Messages whose share was read in the running transaction. */
  readonly #uncommitted: MessageId[] = []
  readonly #sliceEnd
  readonly #shares
  readonly #closed

  constructor(db: Database) {
    this.#sliceEnd = db
      .prepare<{ after: RecipientId; size: number }, RecipientId | null>(sliceEnd('recipient', ':after', ':size - 1'))
      .pluck()
    this.#shares = db.prepare<{ first: MessageId; last: MessageId }, [MessageId, QueueTime, string]>(sharesBetween).raw()
    this.#closed = db.prepare<[], DestinationName>(closedDestinations).pluck()
  }

  /** Records that a message may have changed. */
  changed(message: MessageId): void {
    if (message <= this.#through) this.#stale.add(message)
  }

  /** Counts one slice and returns null. Returns the tally when no message is left to be counted. */
  tally(largest: number): ReturnType<Tally['report']> | null {
    try {
      if (this.#countSlice()) return null
    } catch (error) {
      this.rolledBack()
      throw error
    }
    return this.#tally.report(new Set(this.#tally.hasUntried ? this.#closed.all() : []), largest)
  }

  committed(): void {
    this.#uncommitted.length = 0
  }

  /** Marks the shares that the rolled-back transaction read as stale. */
  rolledBack(): void {
    for (const message of this.#uncommitted.splice(0)) this.#stale.add(message)
  }

  /**
   * Counts a slice of the stale messages or, if there are none, of the initial count. Returns false when no message was left to be
   * counted.
   */
  #countSlice(): boolean {
    if (this.#stale.size === 0) return this.#walk()
    this.#readAgain()
    return true
  }

  #walk(): boolean {
    const end = this.#sliceEnd.get({ after: recipientId(this.#through + 1, 0) - 1, size: SLICE }) ?? null
    if (end === null) return false
    const last = messageOf(end)
    this.#read(this.#through + 1, last)
    this.#through = last
    return true
  }

  #readAgain(): void {
    const ids = this.#takeStale().toSorted((a, b) => a - b)
    for (const id of ids) {
      this.#tally.remove(id)
      this.#uncommitted.push(id)
    }
    const [first = 0, last = 0] = [ids[0], ids.at(-1)]
    // Reads a range of ids where that costs less than one lookup per stale message.
    if (last - first < 4 * ids.length) this.#read(first, last)
    else for (const id of ids) this.#read(id, id)
  }

  #takeStale(): readonly MessageId[] {
    const taken: MessageId[] = []
    let recipients = 0
    for (const id of this.#stale) {
      taken.push(id)
      recipients += Math.max(1, this.#tally.recipientsOf(id))
      if (recipients >= SLICE) break
    }
    for (const id of taken) this.#stale.delete(id)
    return taken
  }

  #read(first: MessageId, last: MessageId): void {
    for (const [id, arrivedAt, key] of this.#shares.all({ first, last })) {
      this.#tally.put(id, arrivedAt, key)
      this.#uncommitted.push(id)
    }
  }
}

/** Decodes a key of `sharesBetween`: a repeated sequence of placement, class, state, tried, destination and number of recipients. */
function shareOf(key: string): Share {
  const parts = key.split('\n')
  const [waiting, leased] = [new Map<DestinationName, number>(), new Map<DestinationName, number>()]
  let [recipients, isLeased, isTried] = [0, false, false]
  for (let n = 0; n < parts.length; n += 6) {
    const [state, tried, destination = '', count] = parts.slice(n + 2, n + 6)
    recipients += Number(count)
    isLeased ||= state === 'leased'
    isTried ||= tried === '1'
    const counts = state === 'waiting' ? waiting : state === 'leased' ? leased : undefined
    counts?.set(destination, (counts.get(destination) ?? 0) + Number(count))
  }
  const queue = queueNameOf({ ...placementOf(parts[0]), isActive: isLeased, isDeferred: isTried })
  return { queue: queue === 'incoming' ? 'untried' : queue, recipients, waiting, leased, class: parts[1] ?? '' }
}

/** The placement in a key, where `scheduled` stands for a message that is queued and scheduled. */
function placementOf(part: string | undefined): { readonly placement: Placement; readonly scheduled: boolean } {
  const placement = part === 'hold' || part === 'corrupt' || part === 'trash' ? part : 'queued'
  return { placement, scheduled: part === 'scheduled' }
}
