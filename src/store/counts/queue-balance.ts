/** Balance of a queue: an account of every recipient that it ever accepted. Pure. */
import type { QueueTally } from './queue-tally.ts'

/**
 * Numbers of recipients: all that the queue ever accepted, and where they are now. `difference` is 0 unless recipients are missing
 * or counted twice.
 */
export interface Balance {
  readonly accepted: number
  readonly delivered: number
  /** Bounced and expired. */
  readonly returned: number
  /** Deleted by operators, including recipients in the trash. */
  readonly deleted: number
  /** In the queue, in any state. */
  readonly waiting: number
  readonly difference: number
}

export const BALANCE_TERMS = [
  'accepted',
  'delivered',
  'returned',
  'deleted',
  'waiting',
  'difference',
] as const satisfies readonly (keyof Balance)[]

export function balanceOf({ queues, trash, traffic }: Pick<QueueTally, 'queues' | 'trash' | 'traffic'>): Balance {
  const { accepted, delivered } = traffic
  const returned = traffic.bounced + traffic.expired
  const deleted = traffic.deleted + trash.recipients
  const waiting = queues.reduce((sum, { recipients }) => sum + recipients, 0)
  return { accepted, delivered, returned, deleted, waiting, difference: accepted - delivered - returned - deleted - waiting }
}
