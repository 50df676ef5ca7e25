/** What a simulation writes into the history of its world, beside what the queue and the far side tell. */
import type { DestinationRecord, MessageOperation, NewRecipient, Report, Settlement } from '../../src/queue/store.ts'
import type { DestinationName, Message, MessageId, RecipientId } from '../../src/queue/message.ts'
import type { AttemptResult, RecipientOutcome } from '../../src/delivery/delivery-agent.ts'
import type { Instant } from '../../src/mail/clock.ts'
import type { LiveDestination } from '../../src/queue/operations.ts'
import type { ListedMessage } from '../../src/queue/reader.ts'

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
  /** What it says of each recipient; null when it is no notice that a program can read. */
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
  | { readonly method: 'oweDelay'; readonly message: MessageId; readonly recipients: readonly RecipientId[] }
  | ({ readonly method: 'report'; readonly notices: readonly NoticeEntry[]; readonly entered: boolean } & Omit<Report, 'notices'>)
  /** What operators changed; what was so already is left out. */
  | { readonly method: 'operate'; readonly operations: readonly MessageOperation[] }
  | { readonly method: 'saveDestination'; readonly record: DestinationRecord }

export type CommitOf<M extends Commit['method']> = Extract<Commit, { readonly method: M }>

export interface OutcomeFacts extends Pick<RecipientOutcome, 'outcome' | 'reply' | 'stage' | 'status' | 'softBounce'> {
  readonly recipient: RecipientId
}

/** What a delivery ended with. */
export interface ResultFacts extends Pick<AttemptResult, 'feedback' | 'congestion' | 'possiblySent'> {
  readonly outcomes: readonly OutcomeFacts[]
  readonly endedAt: Instant
}

/** The queue as an operator sees it at one moment. */
export interface Look {
  readonly messages: readonly ListedMessage[]
  readonly destinations: readonly LiveDestination[]
}

/** A mail in a mailbox of the far side. */
export interface Arrived {
  readonly address: string
  readonly messageId: string
  /** SHA-256 of the content without the trace header of the relay. */
  readonly digest: string
}

export type Deed =
  | {
      readonly did: 'handed in'
      readonly mail: number
      readonly messageId: string
      readonly digest: string
      readonly sender: string
      readonly to: readonly string[]
    }
  | { readonly did: 'answered'; readonly mail: number; readonly messageId: string; readonly reply: string | null }
  | ({ readonly did: 'committed'; readonly number: number; readonly asked: Instant } & Commit)
  | ({ readonly did: 'began'; readonly attempt: number } & CommittedClaim)
  | { readonly did: 'ended'; readonly attempt: number; readonly destination: DestinationName; readonly result: ResultFacts }
  | ({ readonly did: 'looked' } & Look)
  | { readonly did: 'faults end' }
  | { readonly did: 'disk full'; readonly until: number }
  | { readonly did: 'mailboxes'; readonly mails: readonly Arrived[] }
