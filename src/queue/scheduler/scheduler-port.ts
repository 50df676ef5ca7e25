/** Effects that the loops beside the scheduler request from the scheduler. All requests passed here are leased. */
import type { DeliveryRequest, DestinationName } from '../../mail/message.ts'
import type { DeliveryStatus } from '../../mail/smtp-reply.ts'
import type { Destination } from './destination.ts'

export interface SchedulerPort {
  /** Adds the requests returned by a claim to the active queue. */
  claimed(destination: Destination, requests: readonly DeliveryRequest[]): void
  /** True when this node schedules the destination, see Membership.owns. */
  schedules(name: DestinationName): boolean
  /** Starts all deliveries that the limits allow now. */
  dispatch(): void
  /** Delivers a request without regard to turns and limits. Resolves when its outcome is committed. */
  dispatchAlone(request: DeliveryRequest): Promise<void>
  /** Expires a request without an attempt. `status` applies to recipients that were never attempted. */
  settle(request: DeliveryRequest, status: DeliveryStatus): Promise<void>
  /** Gives requests back to the store without an attempt. Schedule, steps and attempt counts do not change. */
  giveBack(destination: Destination, requests: readonly DeliveryRequest[]): Promise<void>
  /** Gives all requests of a destination that wait in memory back to the store. */
  giveBackWaiting(destination: Destination): Promise<void>
}
