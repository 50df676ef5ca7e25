/** Balance of a queue: an account of every recipient that it ever accepted. Pure. */
import type { QueueTally } from './queue-tally.ts'

/** Where every recipient is that the queue ever accepted. `difference` is 0 unless recipients are missing or counted twice. */
export interface Balance {
  readonly accepted: number
  readonly delivered: number
  /** Bounced and expired. */
  readonly returned: number
  /** Deleted by operators; those in the trash included. */
  readonly deleted: number
  /** In the queue. */
  readonly waiting: number
  readonly difference: number
}

export function balanceOf({ queues, trash, traffic }: Pick<QueueTally, 'queues' | 'trash' | 'traffic'>): Balance {
  const { accepted, delivered } = traffic
  const returned = traffic.bounced + traffic.expired
  const deleted = traffic.deleted + trash.recipients
  const waiting = queues.reduce((sum, { recipients }) => sum + recipients, 0)
  return { accepted, delivered, returned, deleted, waiting, difference: accepted - delivered - returned - deleted - waiting }
}
