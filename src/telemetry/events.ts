/** Events of the queue, as plain values. The log, the metrics and the test kit use them. */
import type { SigningResult } from '../dkim/message-signing.ts'
import type { ActionName } from '../checks/action.ts'
import type { Duration, QueueTime, WallTime } from '../system/clock.ts'
import type { DeliveryStatus, SmtpReply } from '../mail/smtp-reply.ts'
import type { AttemptResult } from '../delivery/delivery-agent.ts'
import type { TlsConnection } from '../delivery/tls/tls-connection.ts'
import type { TlsPolicyFailure } from '../delivery/tls/policy-failure.ts'
import type { NoticeDue, DeliveryRequest, DestinationName, Message, MessageSummary, OwnerId, RecipientId } from '../mail/message.ts'
import type { Suspension } from '../store/destination-status.ts'
import type { DoubtResolution } from '../store/membership/writing-events.ts'

export type { DoubtResolution } from '../store/membership/writing-events.ts'
import type { AttemptRecord, Settled } from '../store/queue-store.ts'

/** Name and address of a client of the SMTP server. */
export interface ClientName {
  /** Verified host name, or `unknown`. */
  readonly name: string
  /** IP address. */
  readonly address: string
}

/** The message at the server in front of a filter, as XFORWARD described it. */
export interface UpstreamMessage {
  /** Client of that server, `unknown` in members that are not known; absent when nothing is known of it. */
  readonly client?: ClientName | undefined
  readonly queueId?: string | undefined
}

/** Origin of a content that was checked. */
export interface ContentOrigin {
  /** Null for local submissions. */
  readonly client: ClientName | null
  readonly sender: string
  readonly recipient: string
  readonly protocol: string | undefined
  readonly helo: string | undefined
}

/** Actions of access tables and policy servers that are logged; `reject_warning` is a refusal after warn_if_reject. */
export type AccessActionName = 'hold' | 'discard' | 'redirect' | 'bcc' | 'prepend' | 'warn' | 'info' | 'reject_warning'

/** An event of the relay: SMTP server, queue, destinations, store. New kinds and members may be added. */
export type QueueEvent =
  // the SMTP server
  | { readonly kind: 'connected'; readonly client: ClientName }
  | {
      readonly kind: 'disconnected'
      readonly client: ClientName
      readonly commands: Readonly<Record<string, readonly [ok: number, all: number]>>
    }
  | {
      readonly kind: 'refused'
      readonly client: ClientName
      readonly stage: string
      readonly reply: SmtpReply
      readonly queueId?: string | undefined
      readonly sender?: string | undefined
      readonly recipient?: string | undefined
      readonly protocol: string
      readonly helo: string
      /** True when another event of the message has the reason. */
      readonly isLogged?: boolean | undefined
    }
  | { readonly kind: 'client-failure'; readonly client: ClientName; readonly what: string }
  // the queue
  /** An action of header_checks, body_checks or smtp_header_checks. */
  | {
      readonly kind: 'content-checked'
      /** Whether mail arrived or was sent. */
      readonly during: 'arrival' | 'delivery'
      readonly queueId: string
      readonly action: ActionName
      readonly part: 'header' | 'body'
      /** The field or line, one character per octet. */
      readonly octets: string
      /** Text of the action; empty without one. */
      readonly text: string
      readonly from?: ContentOrigin | undefined
    }
  /** An action of an access table or of a policy server that did not refuse the recipient. */
  | {
      readonly kind: 'access-action'
      readonly client: ClientName
      readonly action: AccessActionName
      /** `<ann@example.com>: Sender address triggers HOLD action` */
      readonly text: string
      readonly sender: string
      readonly recipient: string
      readonly protocol: string
      readonly helo: string
    }
  /** A message was accepted and discarded by an action of header_checks, body_checks or an access table. */
  | {
      readonly kind: 'discarded'
      readonly queueId: string
      readonly sender: string
      readonly messageId: string | undefined
      /** Null for local submissions. */
      readonly client: ClientName | null
      readonly uid?: number | undefined
    }
  | {
      readonly kind: 'accepted'
      readonly message: MessageSummary
      readonly recipients: readonly string[]
      readonly client: ClientName | null
      readonly uid?: number | undefined
      readonly originalId?: string | undefined
      readonly saslUsername?: string | undefined
      readonly saslMethod?: string | undefined
      readonly upstream?: UpstreamMessage | undefined
    }
  | { readonly kind: 'activated'; readonly message: Message; readonly recipientCount: number }
  | {
      readonly kind: 'attempted'
      readonly request: DeliveryRequest
      readonly result: AttemptResult
      readonly attempts: readonly AttemptRecord[]
      /** State of each recipient of the request, in its order. */
      readonly settled: readonly Settled[]
    }
  /** Recipients begin to wait for a dead destination, without an attempt of their own. */
  | {
      readonly kind: 'deferred'
      readonly message: Message
      readonly destination: DestinationName
      /** Addresses. */
      readonly recipients: readonly string[]
      readonly at: QueueTime
      /** Time at which they entered the active queue; `at` when they did not. */
      readonly activatedAt: QueueTime
      /** Failure for which the destination is dead. */
      readonly siteStatus: DeliveryStatus
    }
  | {
      readonly kind: 'expired'
      readonly message: Message
      readonly forced: boolean
      readonly recipients: readonly RecipientId[]
      /** The request of mail that expires without an attempt, with the state of its recipients; null after an attempt. */
      readonly unattempted: { readonly request: DeliveryRequest; readonly settled: readonly Settled[] } | null
    }
  | { readonly kind: 'removed'; readonly message: Message }
  | { readonly kind: 'quarantined'; readonly message: Message; readonly why: string }
  | {
      readonly kind: 'notice-sent'
      readonly message: Message
      readonly notice: NoticeDue
      readonly to: 'sender' | 'postmaster'
      /** The notice, which is a message of its own. */
      readonly queued: { readonly message: MessageSummary; readonly recipients: readonly string[] }
    }
  | { readonly kind: 'notice-dropped'; readonly message: Message; readonly why: string }
  | { readonly kind: 'operated'; readonly queueId: string; readonly operation: string; readonly by: string }
  /** A message was signed with DKIM, or not, with the reason; only where a [dkim] table is configured. For metrics only. */
  | ({ readonly kind: 'signed' } & SigningResult)
  // deliveries
  | ({ readonly kind: 'tls-established'; /** `mx.example[192.0.2.1]:25` */ readonly relay: string } & TlsConnection)
  /** A host did not meet the TLS policy of a domain. With `enforced`, no mail was sent to it. */
  | ({ readonly kind: 'tls-policy-failed' } & TlsPolicyFailure)
  /** An authority gave an access token of a table `[oauth.NAME]`. */
  | {
      readonly kind: 'oauth-token'
      readonly oauth: string
      /** Null where the token is not that of a single user. */
      readonly user: string | null
      readonly lifetime: Duration
    }
  /** A request for an access token failed: for now, or because the authority refuses it. */
  | {
      readonly kind: 'oauth-failed'
      readonly oauth: string
      readonly user: string | null
      readonly result: 'temporary' | 'refused'
      /** Cause, and what to do. */
      readonly text: string
      /** True for the first failure that mail feels since a token came. Programs are told of this one only. */
      readonly isFirst: boolean
    }
  // destinations
  | {
      readonly kind: 'window'
      readonly destination: DestinationName
      readonly window: number
      readonly inFlight: number
      readonly feedback: string
    }
  | { readonly kind: 'died'; readonly destination: DestinationName; readonly until: WallTime; readonly siteStatus: DeliveryStatus }
  /** A dead destination was opened: by an answer to a delivery or, without an answer, by order of an operator. */
  | { readonly kind: 'revived'; readonly destination: DestinationName; readonly answered: boolean }
  | ({ readonly kind: 'suspended'; readonly destination: DestinationName; readonly until: WallTime | null } & Omit<Suspension, 'until'>)
  | { readonly kind: 'resumed'; readonly destination: DestinationName; readonly by: string }
  // the nodes that share the queue
  | { readonly kind: 'node-joined'; /** Number of this node. */ readonly node: OwnerId; readonly name: string }
  | { readonly kind: 'shards-taken'; /** Number of shards. */ readonly shards: number }
  | { readonly kind: 'shards-released'; readonly shards: number }
  /** Another node was silent, and this one has ended its leases and freed its shards. */
  | {
      readonly kind: 'node-taken-over'
      readonly node: OwnerId
      readonly name: string
      readonly shards: number
      /** Number of recipients that were in its active queue. */
      readonly leases: number
      /** Queue ids of messages moved to the corrupt queue, because several nodes failed while they delivered them. */
      readonly corrupt: readonly string[]
    }
  /** This node was taken over by another one. */
  | { readonly kind: 'fenced'; readonly node: OwnerId }
  /**
   * The answer to a commit was lost. The node looked it up: `committed` or `not-committed`, and then repeated; `unknown` when it could
   * not, so that clients were disconnected without a reply.
   */
  | { readonly kind: 'commit-in-doubt'; readonly resolution: DoubtResolution }
  /** Acknowledged messages are missing in the database after a failover. */
  | {
      readonly kind: 'mail-lost'
      readonly queueIds: readonly string[]
      /** Number of promotions of a standby (timeline of PostgreSQL); null where the server does not tell. */
      readonly timeline: number | null
    }
  // the daemon and its store
  | { readonly kind: 'store-unavailable'; readonly why: string }
  | { readonly kind: 'store-recovered' }
  | { readonly kind: 'note'; readonly level: 'info' | 'warning' | 'error' | 'fatal' | 'panic'; readonly text: string }

/** Receives an event and its time. Called synchronously; must not throw. */
export type Listen = (event: QueueEvent, at: WallTime) => void

/** Passes each event to all listeners, in the order of registration. An error of a listener is a bug and is not caught. */
export class Events {
  readonly #listeners: Listen[] = []
  readonly #now: () => WallTime

  /** `now` returns the time of an event, for the log. */
  constructor(now: () => WallTime) {
    this.#now = now
  }

  /** Adds a listener. */
  listen(listener: Listen): void {
    this.#listeners.push(listener)
  }

  /** Returns Events that also pass each event on to these. Its listeners go with it. */
  branch(): Events {
    const branch = new Events(this.#now)
    branch.listen((event) => this.emit(event))
    return branch
  }

  /** Passes an event to all listeners. */
  emit(event: QueueEvent): void {
    const at = this.#now()
    for (const listener of this.#listeners) listener(event, at)
  }
}
