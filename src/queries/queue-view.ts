/** The queue as the queries of the API see it. Times are of the queue's clock. */
import type { Actor } from '../store/records/audit-log.ts'
import type { NoticeSettings } from '../bounce/notice-writer.ts'
import type { DestinationPolicies } from '../config/destination-policies.ts'
import type { LoadedConfig } from '../config/load.ts'
import type { ToldAddresses } from '../mail/told-addresses.ts'
import type { NodeChangesDeps } from '../admin/queue-nodes.ts'
import type { TokenChangesDeps } from '../admin/token-changes.ts'
import type { DestinationName, OwnerId } from '../mail/message.ts'
import type { Origin } from '../queue/intake/share-key.ts'
import type { SmtpReply } from '../mail/smtp-reply.ts'
import type { AttentionFacts } from '../queue/attention.ts'
import type { Submission } from '../queue/intake/acceptor.ts'
import type { MessageReceiver } from '../queue/intake/message-receiver.ts'
import { recordsByName, type DestinationRecords } from '../presentation/recipient-status.ts'
import type { NodeSettings } from '../resources/settings-json.ts'
import type { OperationPlan } from '../queue/operation-plan.ts'
import type { AskedOperation } from '../queue/operation-request.ts'
import type { Operations } from '../queue/operations.ts'
import type { LiveStatus } from '../queue/queue-status.ts'
import type { LiveShare } from '../queue/scheduler/turns/share-activity.ts'
import type { DomainChecks } from '../relay/domain-checks.ts'
import type { OrderedRun } from '../schedules/schedule-runner.ts'
import type { DeliverySlots } from '../store/destination-status.ts'
import type { LiveDestination } from '../queue/scheduler/destination.ts'
import type { QueueReader } from '../store/queue-reader.ts'
import type { ListedNode } from '../store/membership/node-directory.ts'
import type { QueueTally } from '../store/counts/queue-tally.ts'
import type { Subscription } from '../store/outbox/subscription.ts'
import type { SubscriptionChanges } from '../subscriptions/subscription-changes.ts'
import type { EventTerms } from '../resources/event-json.ts'
import type { TestAnswerJson } from '../resources/subscription-json.ts'
import type { QuotaChanges } from '../queue/intake/quota-changes.ts'
import type { SuppressionChanges } from '../suppression/suppression-changes.ts'
import type { Suppressions } from '../suppression/suppressions.ts'
import type { Clock } from '../system/clock.ts'
import type { Random } from '../system/random.ts'
import type { RecentAttempts } from '../telemetry/last-outcomes.ts'
import type { FoundLines, LogSearch } from '../telemetry/recent-log.ts'

/** Pattern of the destinations that a client may see; null for all. */
export type Visible = string | null

/** The client of a query; `signal` aborts when it leaves. */
export interface Viewer {
  readonly visible: Visible
  readonly signal: AbortSignal
}

export interface KnownInMemory {
  readonly live: LiveDestination | undefined
  readonly recent: RecentAttempts
}

/** Lines of the log of one node. */
export interface NodeLines {
  /** 0 for a queue with one daemon, and for a node that does not answer. */
  readonly node: OwnerId
  /** Null for a queue with one daemon. */
  readonly name: string | null
  /** Null for a node that does not answer within a second. */
  readonly found: FoundLines | null
}

/** State in the memory of the nodes of a queue. */
export interface LiveQueue {
  /** Figures of all nodes, with the destinations that have the most waiting mail. */
  brief(): Promise<LiveStatus>
  /** Destinations in the memory of all nodes. */
  destinations(): Promise<readonly LiveDestination[]>
  /** The given destinations that are in the memory of their owners. */
  named(names: readonly DestinationName[]): Promise<readonly LiveDestination[]>
  /** One destination as its owner holds it; undefined when no owner answers. */
  destination(name: DestinationName): Promise<KnownInMemory | undefined>
  /** The shares with deliveries, once for each node that has some. */
  shares(): Promise<readonly LiveShare[]>
  /** Names the node that schedules a destination; null for a queue with one owner, and while no node does. */
  owners(): Promise<(destination: DestinationName) => string | null>
  /** The last warnings and errors of the log of each node. */
  log(search: LogSearch): Promise<readonly NodeLines[]>
}

/** The nodes that share the queue, as one of them sees and changes them. */
export interface SharedNodes extends NodeChangesDeps {
  /** The number of the node that answers. */
  readonly me: OwnerId
  /** The nodes that this one has seen without a beat for node_lease, as of its last beat. */
  readonly silent: () => readonly Pick<ListedNode, 'id' | 'name'>[]
  /** Names of the draining nodes when no node is active, as of the last beat of this one; empty otherwise. */
  readonly drained: () => readonly string[]
  /** Names of the nodes that did not answer a question of the last seconds, of whose memory answers have nothing. */
  readonly unanswered: () => readonly string[]
  /** Delivery slots of the nodes that answer within a second. */
  readonly slots: () => Promise<ReadonlyMap<OwnerId, DeliverySlots>>
  /** The settings of the nodes that answer within a second. */
  readonly settings: () => Promise<ReadonlyMap<OwnerId, NodeSettings>>
}

/** Entry of new mail. */
interface SubmissionPort {
  /** Begins a message, as Acceptor.open. */
  open(submission: Submission): MessageReceiver
  /** The reply when mail of this size, which is held back or not, cannot be queued now; undefined when it can be queued. */
  refusal(size: number, origin: Origin, isHeld: boolean): Promise<SmtpReply | undefined>
  destinationOf(address: string, sender: string): DestinationName
  /** The entry of the suppression list that concerns a recipient. */
  readonly suppressed: Suppressions['find']
  readonly reportSuppressed: Suppressions['report']
}

/** Changes of subscriptions to events. */
interface SubscriptionPort extends Pick<SubscriptionChanges, 'add' | 'remove' | 'changeSecret' | 'replay'> {
  /** Sends a test event. Throws while this node sends no events. */
  test(subscription: Subscription): Promise<TestAnswerJson>
}

/** `slow`: commits take long. */
export interface RelayHealth {
  readonly state: 'good' | 'slow' | 'failing'
  readonly text: string
}

export interface QueueView {
  readonly reader: QueueReader
  readonly clock: Clock
  readonly live: LiveQueue
  /** Null for a queue in a folder, which has one daemon. */
  readonly nodes: () => SharedNodes | null
  /** Operations on messages and destinations. Throws while the queue is being opened. */
  readonly operations: () => Operations
  /** Changes of subscriptions to events. Throws while the queue is being opened. */
  readonly subscriptions: () => SubscriptionPort
  /** The tokens of programs. Throws while the queue is being opened. */
  readonly tokens: () => TokenChangesDeps
  /** Changes of the counts of quotas. Throws while the queue is being opened. */
  readonly quotaChanges: () => QuotaChanges
  /** Changes of the suppression list. Throws while the queue is being opened. */
  readonly suppressionChanges: () => SuppressionChanges
  /** Source of new secrets. */
  readonly random: Random
  /** The effect that an operation would have now. */
  readonly plan: (asked: AskedOperation) => Promise<OperationPlan>
  readonly submissions: () => SubmissionPort
  readonly policies: () => DestinationPolicies
  readonly notices: () => Pick<NoticeSettings, 'rules' | 'warningAges'>
  /** The named draws of the retry schedule; see Random.draw. */
  readonly draw: (key: string) => number
  readonly loaded: () => LoadedConfig
  /** Addresses in events. */
  readonly addresses: ToldAddresses
  /** Whether the relay accepts and delivers mail, and how long a commit takes; at most some seconds old. */
  readonly health: () => Promise<RelayHealth>
  /** Counts of the queue, with at most `largest` destinations. */
  readonly tally: (largest: number) => Promise<QueueTally>
  /** Facts that may need an operator's attention: those of the store and of this node. */
  readonly attention: () => Promise<AttentionFacts>
  /** Makes a run of a schedule. Throws while the queue is being opened. */
  readonly runSchedule: (name: string, actor: Actor) => Promise<OrderedRun>
  /** Checks of domains. Throws while the queue is being opened. */
  readonly domainChecks: () => Pick<DomainChecks, 'order'>
  /** Adds a listener, called when more events may be read. Returns a function that removes it. */
  readonly onEvents: (listener: () => void) => () => void
}

/** The time of the wall clock, in seconds. */
export const asOf = ({ clock }: Pick<QueueView, 'clock'>): number => clock.wall.seconds(clock.now())

/** Form in which the events of the queue are told. */
export const eventTerms = ({ clock, addresses }: Pick<QueueView, 'clock' | 'addresses'>): EventTerms => ({ wall: clock.wall, addresses })

/** Recorded states of destinations. */
export const recordsOf = async ({ reader }: Pick<QueueView, 'reader'>): Promise<DestinationRecords> =>
  recordsByName(await reader.destinationRecords())
