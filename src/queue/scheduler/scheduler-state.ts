/** Ports and passive state of the scheduler, which exist before its loops, and the calls of the loops to the scheduler. */
import type { NoticePort } from '../../bounce/notice-port.ts'
import type { NoticeSettings } from '../../bounce/notice-writer.ts'
import type { Band } from '../../config/values/mail-classes.ts'
import type { DestinationPolicies } from '../../config/destination-policies.ts'
import type { ProviderDirectory } from '../../config/provider-directory.ts'
import type { DeliveryAgent } from '../../delivery/delivery-agent.ts'
import type { ContentId, DeliveryRequest, Message } from '../../mail/message.ts'
import type { EventRecorder } from '../../outbox/event-recorder.ts'
import type { Membership } from '../../store/membership/membership.ts'
import type { QueueStore } from '../../store/queue-store.ts'
import type { DestinationDue } from '../../store/message-operation.ts'
import type { StoreHealth } from '../../store/store-health.ts'
import type { Clock, QueueTime } from '../../system/clock.ts'
import type { TaskSet } from '../../system/task-set.ts'
import type { Events } from '../../telemetry/events.ts'
import type { AddressLimits } from './hosts/address-limits.ts'
import type { ActiveLimits, ActiveQueue } from './active-queue.ts'
import type { ArrivingMail } from './arriving-mail.ts'
import type { Destination } from './destination.ts'
import type { DestinationTable } from './destination-table.ts'
import type { SilentHosts } from './hosts/silent-host.ts'
import type { ScheduledShards } from './scheduled-shards.ts'

export interface SchedulerPorts {
  readonly store: QueueStore
  readonly agent: Pick<DeliveryAgent, 'deliver'>
  readonly clock: Clock
  readonly events: Events
  readonly recorder: EventRecorder
  readonly storeHealth: StoreHealth
  readonly membership: Membership
  readonly active: ActiveQueue
  readonly table: DestinationTable
  readonly limits: () => ActiveLimits
  readonly policies: () => DestinationPolicies
  /** Providers of destinations, from which `policies` chooses settings. */
  readonly directory: ProviderDirectory
  /** True when the scheduler fills `directory`; false when the store does, as that of a shared queue. */
  readonly fillsDirectory: boolean
  readonly noticeSettings: () => NoticeSettings
  readonly notices: Pick<NoticePort, 'noticeDue' | 'atRest'>
  /** Contents in memory, released when no recipient of their message is left there. */
  readonly contents: { release(content: ContentId): void }
  /** Returns a number in [0, 1) that depends only on the name; see Random.draw. */
  readonly draw: (key: string) => number
}

export interface SchedulerState extends SchedulerPorts {
  readonly shards: ScheduledShards
  readonly arriving: ArrivingMail
  readonly addresses: AddressLimits<Destination>
  readonly hosts: SilentHosts<Destination>
  readonly tasks: TaskSet
}

export interface AddedWorkOptions {
  /** True to open dead destinations. */
  readonly revive?: boolean
  /** Bands of the mail; all when absent. */
  readonly bands?: readonly Band[]
  /** The earliest expiry of the mail; absent when unknown. */
  readonly expiresAt?: QueueTime
  /** Time for which a message among it is scheduled; absent when none is. */
  readonly scheduled?: QueueTime | undefined
}

/** All delivery requests are leased. */
export interface SchedulerLoop {
  /** Adds the requests returned by a claim to the active queue. */
  claimed(destination: Destination, requests: readonly DeliveryRequest[]): void
  /** Schedules mail in the store that was not scheduled here: new mail without room in memory, or mail that was changed. */
  workAdded(due: readonly DestinationDue[], options?: AddedWorkOptions): void
  /** Schedules all waiting mail again. */
  scan(): Promise<void>
  /** Starts all deliveries that the limits allow now. */
  dispatch(): void
  /** Delivers a request without regard to turns and limits. Resolves when its outcome is committed. */
  dispatchAlone(request: DeliveryRequest): Promise<void>
  /** Called when a request has left memory: uses the room for other mail, and reports a message of which nothing is left. */
  left(message: Message, destination: Destination): void
  /** Reports a message of which nothing is left in memory. */
  checkRest(message: Message): void
  /** Gives requests back to the store without an attempt. Schedule, steps and attempt counts do not change. */
  giveBack(destination: Destination, requests: readonly DeliveryRequest[]): Promise<void>
}
