/** The conditions by which operators select messages, as options of commands and as parameters of the API name them. */
import { addressPattern } from '../patterns/filter-pattern.ts'
import { conditionsIn, type QueueFilter } from '../store/queue-reader.ts'
import type { Duration, Instant } from '../system/clock.ts'

export interface MessageConditions {
  readonly sender?: string | undefined
  readonly recipient?: string | undefined
  readonly destination?: string | undefined
  readonly queue?: QueueFilter['queue'] | undefined
  readonly olderThan?: Duration | undefined
  readonly youngerThan?: Duration | undefined
  readonly attemptsOver?: number | undefined
  readonly status?: string | undefined
  readonly reply?: string | undefined
}

/** True when the filter has a condition. A filter without conditions matches all mail. */
export const isFiltered = (filter: QueueFilter): boolean => conditionsIn(filter).length > 0

const nullSender = (address: string): string => (address === '<>' || address.toLowerCase() === 'mailer-daemon' ? '' : address)

/** Pattern of an envelope sender that an operator names. */
export const senderPattern = (address: string): string => addressPattern(nullSender(address))

export const toFilter = (options: MessageConditions, now: Instant): QueueFilter => ({
  queueId: null,
  sender: options.sender === undefined ? null : senderPattern(options.sender),
  recipient: options.recipient === undefined ? null : addressPattern(options.recipient),
  destination: options.destination?.toLowerCase() ?? null,
  queue: options.queue ?? null,
  arrivedBefore: options.olderThan === undefined ? null : now - options.olderThan,
  arrivedAfter: options.youngerThan === undefined ? null : now - options.youngerThan,
  attemptsOver: options.attemptsOver ?? null,
  status: options.status ?? null,
  reply: options.reply ?? null,
})
