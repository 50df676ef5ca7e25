/** SQL of which each engine has its own form, because the languages differ or because a plan has to be named in another way. */
import type { DestinationName, MessageId, RecipientId } from '../../mail/message.ts'
import type { QueueTime } from '../../system/clock.ts'
import type { SearchTerm } from '../search/search-terms.ts'
import type { Add } from './read.ts'

/** Ids above `after` and up to `through`. */
export interface IdRange {
  readonly after: MessageId
  readonly through: MessageId
}

/** In the statements, `r` is a recipient and `message` a message. */
export interface Spelling {
  /** Pattern of `matches` for a filter pattern (patterns/filter-pattern.ts). */
  readonly pattern: (text: string) => string
  readonly matches: (text: string, pattern: string) => string
  readonly contains: (text: string, part: string) => string
  /** Condition for an address that earlier versions may have stored in another form than the normal one. */
  readonly isOdd: (address: string) => string
  readonly normalForm: (address: string) => string
  /** The last outcome of a recipient as JSON, and the condition that it can be decoded. */
  readonly lastOutcome: string
  readonly isReadable: string
  /** The enhanced status code at the begin of a reply, as parseReply of mail/smtp-reply.ts finds it; null for none. */
  readonly replyStatus: (reply: string) => string
  readonly among: (id: string, ids: readonly number[], add: Add) => string
  /** The messages of a range with a live recipient that meets a condition. */
  readonly withLive: (condition: string, ids: IdRange, add: Add) => string
  /** The messages in delivery, found by their leased recipients. */
  readonly leased: string
  /** The messages that wait for the time that their clients named, found by their index. */
  readonly scheduled: string
  /** Selects the ids of these messages, in a subquery that is planned by itself. */
  readonly scheduledIds: string
  /** The table of messages by an index of those outside of the ordinary queues; null without such an index. */
  readonly aside: string | null
  /** The table of messages by the index of the trash. */
  readonly trash: string
  /** End of a subquery that is planned by itself. */
  readonly fence: string
  /** Joins the message of `r`. */
  readonly ownMessage: string
  /** Joins the recipients `r` of the rows `found`. */
  readonly ownRecipients: string
  /** Row number of the first message that left at a time or later. */
  readonly firstDeparture: (since: QueueTime, add: Add) => string
  /** Number of waiting recipients whose lifetime ends before a time. The count stops at `most`, in PostgreSQL in each shard. */
  readonly expiring: (before: QueueTime, most: number, add: Add) => string
  /** Messages with an entry below an id that has all terms, the highest id first. */
  readonly messagesWith: (terms: readonly SearchTerm[], below: RecipientId, limit: number, add: Add) => string
  /** Destinations after a name with waiting or leased mail. Loose index scan: two seeks per destination, in PostgreSQL and shard. */
  readonly busyDestinations: (after: DestinationName, limit: number, add: Add) => string
}

/** Queries for the live recipients at one destination, one per state, because each has its own index. */
export interface Place {
  readonly due: string
  readonly suspect: string
  readonly leased: string
  readonly parked: string
  /** The earliest due time, as an expression. */
  readonly nextDueAt: string
}

export type PlaceOf = (add: Add) => Place
