/**
 * The QueueStore port: what the queue promises to keep. Every method is one transaction and states an intention; when
 * it resolves, the change is on disk. The port is asynchronous so that a store in another thread or on another
 * machine fits behind it. One suite, test/conformance, tells every store whether it keeps these promises.
 *
 * Rejections: a method rejects with StoreUnavailable when the store cannot commit (disk full, I/O error); nothing of
 * the call was kept then. Any other rejection is a bug.
 */
import type { Duration, Instant } from '../mail/clock.ts'
import type { DeliveryStatus } from '../mail/reply.ts'
import type { BodyId, Debt, DeliveryRequest, DestinationName, FinalState, Message, MessageId, Recipient, RecipientId } from './message.ts'

/** The store cannot commit now; the cause says why. Mail is refused and deliveries rest until it can. */
export class StoreUnavailable extends Error {
  override readonly name = 'StoreUnavailable'
}

/** A recipient of a message that is being taken in. Positions count from 0 in the order given. */
export interface NewRecipient {
  readonly address: string
  readonly notify?: Recipient['notify']
  readonly orcpt?: string | undefined
  readonly destination: DestinationName
  readonly dueAt: Instant
  readonly expiresAt: Instant
  /** Taken straight into the active queue: born with a lease, so that its delivery needs no claim. */
  readonly leased: boolean
}

/** A message on its way in. Its content is given here, or was staged before under its body id, or both in order. */
export interface NewMessage {
  readonly message: Message
  readonly recipients: readonly NewRecipient[]
  /** The content, or the rest of it after what was staged. */
  readonly content: readonly Uint8Array[]
  /** On hold from the start. */
  readonly hold?: boolean | undefined
}

/** A slice of the work at one destination. */
export interface Claim {
  readonly destination: DestinationName
  readonly now: Instant
  /** The most recipients to lease. */
  readonly limit: number
  /** The most recipients in one request. */
  readonly recipientLimit: number
}

export interface Claimed {
  /** Leased: nobody else gets them before they are settled or given back. Earliest due first. */
  readonly requests: readonly DeliveryRequest[]
  /** The earliest due time of what still waits there; null when nothing does. */
  readonly nextDueAt: Instant | null
}

/** One attempt as history remembers it; times in seconds as logged. */
export interface AttemptRecord {
  readonly recipient: RecipientId
  readonly at: Instant
  /** `mx.example[192.0.2.1]:25`, or null when nobody was reached. */
  readonly relay: string | null
  readonly outcome: 'delivered' | 'deferred' | 'bounced' | 'expired'
  readonly status: DeliveryStatus
  /** Before the queue manager, in it, setting up the connection, transmission: Postfix's delays=a/b/c/d, in ms. */
  readonly delays: readonly [Duration, Duration, Duration, Duration]
}

/** What one recipient becomes. Applies only to a recipient that is leased; anything else is left alone. */
export type Settled =
  | {
      readonly recipient: RecipientId
      readonly state: 'waiting'
      readonly dueAt: Instant
      readonly steps: number
      readonly attempts: number
      readonly last: DeliveryStatus | null
      readonly debt?: Debt | undefined
    }
  | {
      readonly recipient: RecipientId
      readonly state: FinalState
      readonly at: Instant
      readonly attempts: number
      readonly last: DeliveryStatus | null
      readonly debt?: Debt | undefined
    }

/** The outcome of one delivery request, in full. */
export interface Settlement {
  readonly message: MessageId
  readonly recipients: readonly Settled[]
  readonly attempts: readonly AttemptRecord[]
  /** When the next delay warning may be due; null when none is. Left as it is when absent. */
  readonly warnAt?: Instant | null | undefined
}

export interface SettleResult {
  /** The last recipient became final and nobody is owed a word: the message has left the queue. */
  readonly removed: boolean
  /** Some recipient of the message owes the sender a notice. */
  readonly indebted: boolean
}

/** Mail whose sender is owed a notice. */
export interface IndebtedMessage {
  readonly message: Message
  readonly warnings: number
  /** Those that owe; from claimWarnings, those that live. */
  readonly recipients: readonly Recipient[]
}

/** Pays the debts of a message: the notices enter the queue and the debts are cleared in the same transaction. */
export interface Report {
  readonly message: MessageId
  /** Exactly these debts are cleared. */
  readonly paid: readonly { readonly recipient: RecipientId; readonly debt: Debt }[]
  /** Who is named as late, with or without owing a word. */
  readonly late: readonly RecipientId[]
  readonly notices: readonly NewMessage[]
  /** Delay warnings sent so far, and when the next one may be due. */
  readonly warnings: number
  readonly warnAt: Instant | null
}

/** What must be remembered of a destination beyond the mail that waits for it. */
export interface DestinationRecord {
  readonly name: DestinationName
  readonly deadUntil: Instant | null
  /** The wait before the next probe; doubles while probes fail. */
  readonly probeInterval: Duration | null
  /** Who suspended it; null when nobody did. */
  readonly suspendedBy: string | null
  /** Why it was last throttled. */
  readonly reason: DeliveryStatus | null
}

/** An operator's change to messages as a whole. */
export type Operation =
  /** Due now; the due time it had is kept beside, so that a failure changes nothing. */
  | { readonly kind: 'flush'; readonly now: Instant }
  | { readonly kind: 'hold' }
  | { readonly kind: 'release' }
  /** A new queue entry with a fresh schedule for what is still undelivered; the arrival time is kept. */
  | { readonly kind: 'requeue'; readonly now: Instant; readonly newId: MessageId; readonly expiresAt: Instant }
  /** Return to the sender at the next activation, without another attempt. */
  | { readonly kind: 'expire' }
  /** To the trash, or for good when `purge`. */
  | { readonly kind: 'delete'; readonly now: Instant; readonly purge: boolean }
  | { readonly kind: 'restore' }

/** What is to be done to which message. */
export interface MessageOperation {
  readonly message: MessageId
  readonly operation: Operation
}

export interface OperationResult {
  /** False when there is no such message or it is already so. */
  readonly changed: boolean
  /** Destinations whose waiting mail changed, with the earliest due time there now. */
  readonly woken: readonly DestinationDue[]
}

export interface DestinationDue {
  readonly destination: DestinationName
  readonly dueAt: Instant
}

/** A recipient that is to wait at another destination, or for another time. */
export interface Move {
  readonly recipient: RecipientId
  readonly destination: DestinationName
  readonly expiresAt: Instant
}

/** Names a line of the audit log; rises. */
export type AuditId = number

/** A line of the audit log: an operator's action that changed the queue. */
export interface AuditRecord {
  readonly at: Instant
  readonly who: string
  readonly action: string
  readonly arguments: string
  readonly changed: number
}

export interface QueueStore {
  /** A message id that was never given out before. Memory only: an id that no message takes is simply lost. */
  nextId(): MessageId

  /**
   * Keeps a part of a long content before its message exists; `from` counts the 64 kB chunks kept so far, so every part
   * but the last is whole chunks. What never becomes a message is swept at the next open.
   */
  stage(body: BodyId, from: number, chunks: readonly Uint8Array[]): Promise<void>
  /** Forgets a staged content whose message was given up. */
  unstage(body: BodyId): Promise<void>
  /** Durable before it resolves, as a whole: message, recipients, schedule and content. Only then may smtpd answer 250. */
  enqueue(entry: NewMessage): Promise<void>
  /** The n-th 64 kB of a content, or undefined after the last one. The bytes are the caller's own. */
  readBody(body: BodyId, index: number): Promise<Uint8Array | undefined>

  /** Leases waiting recipients of a destination that are due, earliest first. */
  claimDue(claim: Claim): Promise<Claimed>
  /**
   * Leases one due recipient that was in flight at two crashes (`starts` = 2). claimDue passes such mail over: it is
   * tried one at a time, so that a third crash convicts the right message. What has three starts becomes corrupt at open.
   */
  claimSuspect(now: Instant): Promise<DeliveryRequest | undefined>
  /** Leases waiting recipients whose lifetime is over, wherever they wait but at these destinations; earliest expiry first. */
  claimExpired(now: Instant, limit: number, except?: readonly DestinationName[]): Promise<readonly DeliveryRequest[]>
  /** Gives leased recipients back untried; due time, steps and attempts stay. */
  giveBack(recipients: readonly RecipientId[]): Promise<void>
  /** Records outcomes and the debts that follow from them, and lets go of the leases. Settling twice changes nothing. */
  settle(settlement: Settlement): Promise<SettleResult>
  /** The message cannot be read: it is set aside, nobody is told, the queue goes on. */
  quarantine(message: MessageId, why: string): Promise<void>

  /** Messages whose sender is owed a notice, in the order of their ids, after `after`. */
  indebted(after: MessageId, limit: number): Promise<readonly IndebtedMessage[]>
  /**
   * One message with the recipients that owe a word; undefined when none does (any more). When a delay warning is among
   * the debts, its other live recipients come too: they may have to be named in it.
   */
  debtsOf(message: MessageId): Promise<IndebtedMessage | undefined>
  /** Messages whose delay warning time has come, with their live recipients; the caller reports or postpones them. */
  claimWarnings(now: Instant, limit: number): Promise<readonly IndebtedMessage[]>
  /** Looks at the message again for a delay warning at `warnAt`. */
  postponeWarning(message: MessageId, warnAt: Instant | null): Promise<void>
  /** Marks live recipients as owing a delay warning. */
  oweDelay(message: MessageId, recipients: readonly RecipientId[]): Promise<void>
  /**
   * `entered`: the notices were taken in; not when they have become untrue, because one of the debts is gone or somebody
   * is late no more. Then nothing has changed. `removed`: the message has left.
   */
  report(report: Report): Promise<{ readonly removed: boolean; readonly entered: boolean }>

  /** Every destination with waiting mail and the earliest due time there: one loose index scan. */
  destinationsDue(): Promise<readonly DestinationDue[]>
  /** The earliest expiry of anything that waits, and the earliest delay warning. */
  nextDeadlines(): Promise<{ readonly expiresAt: Instant | null; readonly warnAt: Instant | null }>
  destinations(): Promise<readonly DestinationRecord[]>
  /** Remembers a destination, or forgets it when nothing about it is out of the ordinary. */
  saveDestination(record: DestinationRecord): Promise<void>

  /**
   * Applies an operator's changes to messages, all of them in one commit, and says in their order what became of each.
   * A message may be in delivery: an outcome in flight is recorded first. How many were changed is added to a line of
   * the audit log in the same commit.
   */
  operate(operations: readonly MessageOperation[], auditedAs?: AuditId): Promise<readonly OperationResult[]>
  /** Lets waiting and parked recipients wait elsewhere or for another time; those in delivery are left alone. */
  move(moves: readonly Move[]): Promise<readonly DestinationDue[]>
  audit(record: AuditRecord): Promise<AuditId>

  /** Drops history and trash that are past keeping, a slice at a time; says whether more is left. */
  prune(limits: {
    readonly historyBefore: Instant
    readonly historyCount: number
    readonly trashBefore: Instant
  }): Promise<{ readonly more: boolean }>
  /** Resolves when a commit would succeed: writes and syncs a heartbeat. */
  ping(): Promise<void>
  /** Free bytes where the queue is kept; Infinity when that means nothing. */
  freeSpace(): Promise<number>
  close(): Promise<void>
}
