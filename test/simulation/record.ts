/** Records that a simulation adds to the history of its world, beside the events of the queue and of the remote servers. */
import type { NewRecipient } from '../../src/store/new-message.ts'
import type { DestinationRecord } from '../../src/store/queue-store.ts'
import type { MessageOperation } from '../../src/store/message-operation.ts'
import type { AttemptRecord, Report, Settlement } from '../../src/store/recorded-outcomes.ts'
import type { Shard } from '../../src/store/membership/shards.ts'
import type { DestinationName, Message, MessageId, OwnerId, Recipient, RecipientId } from '../../src/mail/message.ts'
import type { AttemptResult, RecipientOutcome } from '../../src/delivery/delivery-agent.ts'
import type { DeliveryStatus } from '../../src/mail/smtp-reply.ts'
import type { Duration, QueueTime } from '../../src/system/clock.ts'
import type { LiveDestination } from '../../src/queue/scheduler/destination.ts'
import type { ListedMessage } from '../../src/store/queue-reader.ts'
import type { WorldEvent } from '../../src/testkit/index.ts'

export interface CommittedClaim {
  readonly message: MessageId
  readonly destination: DestinationName
  readonly forcedExpire: boolean
  readonly recipients: readonly { readonly id: RecipientId; readonly flushed: boolean }[]
}

export interface EntryFacts {
  readonly message: Message
  readonly recipients: readonly NewRecipient[]
  readonly hold: boolean
}

export interface NoticeEntry extends EntryFacts {
  /** Report for each recipient; null when the notice is not machine-readable. */
  readonly says:
    | readonly { readonly recipient: string; readonly action: string; readonly status: string; readonly diagnostic?: string | undefined }[]
    | null
}

/** A change of the queue that is on disk. */
export type Commit =
  | ({ readonly method: 'enqueue' } & EntryFacts)
  | { readonly method: 'claimDue' | 'claimExpired' | 'claimSuspect'; readonly requests: readonly CommittedClaim[] }
  | { readonly method: 'giveBack'; readonly recipients: readonly RecipientId[] }
  | { readonly method: 'settle'; readonly settlement: Settlement; readonly removed: boolean }
  | { readonly method: 'quarantine'; readonly message: MessageId }
  | { readonly method: 'markDelayNoticeDue'; readonly message: MessageId; readonly recipients: readonly RecipientId[] }
  | ({ readonly method: 'report'; readonly notices: readonly NoticeEntry[]; readonly entered: boolean } & Omit<Report, 'notices'>)
  /** Changes by operators, without operations that had no effect. */
  | { readonly method: 'operate'; readonly operations: readonly MessageOperation[] }
  | { readonly method: 'saveDestination'; readonly record: DestinationRecord }
  | { readonly method: 'joinProvider'; readonly destination: DestinationName; readonly provider: string | null }

export type CommitOf<M extends Commit['method']> = Extract<Commit, { readonly method: M }>

export interface OutcomeFacts extends Pick<RecipientOutcome, 'outcome' | 'softBounce'>, Pick<DeliveryStatus, 'reply' | 'stage' | 'status'> {
  readonly recipient: RecipientId
}

/** Result of a delivery. */
export interface ResultFacts extends Pick<AttemptResult, 'feedback' | 'congestion' | 'possiblySent'> {
  readonly outcomes: readonly OutcomeFacts[]
  readonly endedAt: QueueTime
}

/** The queue at one instant, as in a listing. */
export interface Look {
  readonly messages: readonly ListedMessage[]
  readonly destinations: readonly LiveDestination[]
}

/** An event as a receiver got it. Its id is the number: the rest of the id is random for a queue in a file. */
export interface ReceivedEvent {
  /** NaN for an id of another form, or of another queue than the first one. */
  readonly number: number
  readonly type: string
  readonly data: unknown
}

export interface ReceivedRequest {
  /** Null while the receiver was down. */
  readonly status: number | null
  readonly events: readonly ReceivedEvent[]
}

/** A message with what became of it. */
export interface Story {
  readonly queueId: string
  readonly hasLeft: boolean
  readonly recipients: readonly Pick<Recipient, 'id' | 'address' | 'state'>[]
  /** Attempts, oldest first. */
  readonly history: readonly Pick<AttemptRecord, 'recipient' | 'outcome'>[]
}

/** A mail in a mailbox of a remote server. */
export interface Arrived {
  readonly address: string
  readonly messageId: string
  /** SHA-256 of the content without the Received field of the relay. */
  readonly digest: string
}

export type GeneratedStep =
  | {
      readonly did: 'handed in'
      readonly mail: number
      readonly messageId: string
      readonly digest: string
      readonly sender: string
      readonly to: readonly string[]
    }
  | { readonly did: 'answered'; readonly mail: number; readonly messageId: string; readonly reply: string | null }
  | ({ readonly did: 'committed'; readonly number: number; readonly asked: QueueTime; readonly node?: OwnerId } & Commit)
  | ({ readonly did: 'began'; readonly attempt: number; readonly node?: OwnerId } & CommittedClaim)
  /** The delivery goes on under the limits of a provider. */
  | { readonly did: 'admitted'; readonly attempt: number; readonly provider: string }
  | { readonly did: 'ended'; readonly attempt: number; readonly destination: DestinationName; readonly result: ResultFacts }
  | { readonly did: 'not begun'; readonly attempt: number; readonly destination: DestinationName }
  | ({ readonly did: 'looked'; readonly leases?: readonly OwnerId[]; readonly nodes?: readonly OwnerId[] } & Look)
  | { readonly did: 'faults end' }
  /** An order of an operator has answered, or has failed. */
  | { readonly did: 'was carried out'; readonly order: string; readonly destination?: DestinationName }
  | { readonly did: 'was refused' }
  | { readonly did: 'disk full'; readonly until: number }
  | { readonly did: 'mailboxes'; readonly mails: readonly Arrived[] }
  | {
      readonly did: 'received'
      readonly events: readonly WorldEvent[]
      readonly requests: readonly ReceivedRequest[]
      readonly parked: readonly number[]
    }
  | { readonly did: 'told'; readonly events: readonly WorldEvent[]; readonly stories: readonly Story[] }
  | NodeStep

/** An event of one of several nodes. */
export type NodeStep =
  | { readonly did: 'node joined' | 'node killed' | 'node paused' | 'node continued' | 'node cut' | 'node leaves'; readonly node: OwnerId }
  | { readonly did: 'dialled' | 'sent MAIL'; readonly node: OwnerId }
  | { readonly did: 'node ended'; readonly node: OwnerId; readonly taker: OwnerId }
  | { readonly did: 'shards taken' | 'shards released'; readonly node: OwnerId; readonly shards: readonly Shard[] }
  | { readonly did: 'beat'; readonly node: OwnerId; readonly lives: boolean }
  | { readonly did: 'node fault'; readonly fault: string; readonly time?: Duration }
