/** Effects that the other parts of this folder request from the scheduler. All delivery requests passed here are leased. */
import type { DeliveryRequest, DestinationName, Message } from '../../mail/message.ts'
import type { DeliveryStatus } from '../../mail/smtp-reply.ts'
import type { DestinationDue } from '../../store/queue-store.ts'
import type { QueueTime } from '../../system/clock.ts'
import type { Destination } from './destination.ts'

export interface AddedWorkOptions {
  /** True to open dead destinations. */
  readonly revive?: boolean
  /** The earliest expiry of the mail; absent when unknown. */
  readonly expiresAt?: QueueTime
}

export interface SchedulerPort {
  /** Adds the requests returned by a claim to the active queue. */
  claimed(destination: Destination, requests: readonly DeliveryRequest[]): void
  /** Tracks a claim until its mail is in memory. */
  claiming<T>(claim: Promise<T>): Promise<T>
  /** Tracks a claim of mail that is not attempted, until that is settled or given back. */
  claimingExpired<T>(claim: Promise<T>): Promise<T>
  /** True when this node schedules the destination, see Membership.owns. */
  schedules(name: DestinationName): boolean
  /** Schedules mail in the store that was not scheduled here: new mail without room in memory, or mail that was changed. */
  workAdded(due: readonly DestinationDue[], options?: AddedWorkOptions): void
  /** Schedules all waiting mail again. */
  scan(): Promise<void>
  /** Starts all deliveries that the limits allow now. */
  dispatch(): void
  /** Delivers a request without regard to turns and limits. Resolves when its outcome is committed. */
  dispatchAlone(request: DeliveryRequest): Promise<void>
  /** Expires a request without an attempt. `status` applies to recipients that were never attempted. */
  settle(request: DeliveryRequest, status: DeliveryStatus): Promise<void>
  /** Called when a request has left memory: uses the room for other mail, and reports a message of which nothing is left. */
  left(message: Message, destination: Destination): void
  /** Gives requests back to the store without an attempt. Schedule, steps and attempt counts do not change. */
  giveBack(destination: Destination, requests: readonly DeliveryRequest[]): Promise<void>
  /** Gives all requests of a destination that wait in memory back to the store. */
  giveBackWaiting(destination: Destination): Promise<void>
}
