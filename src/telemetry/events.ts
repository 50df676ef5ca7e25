/**
 * What happens in a queue, as plain values. The log, the metrics, the test kit's history and the operator's page all
 * read the same events; nothing else is told anything.
 */
import type { Instant } from '../mail/clock.ts'
import type { SmtpReply } from '../mail/reply.ts'
import type { AttemptResult } from '../delivery/delivery-agent.ts'
import type { Debt, DeliveryRequest, DestinationName, Message, MessageSummary, RecipientId } from '../queue/message.ts'
import type { AttemptRecord } from '../queue/store.ts'

/** A client of the SMTP server as the log names it. */
export interface ClientName {
  readonly name: string
  readonly address: string
}

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
    }
  | { readonly kind: 'client-trouble'; readonly client: ClientName; readonly what: string }
  // the queue
  | {
      readonly kind: 'accepted'
      readonly message: MessageSummary
      readonly recipients: readonly string[]
      readonly client: ClientName | null
      readonly uid?: number | undefined
      readonly originalId?: string | undefined
      readonly saslUsername?: string | undefined
      readonly saslMethod?: string | undefined
    }
  | { readonly kind: 'activated'; readonly message: Message; readonly recipientCount: number }
  | {
      readonly kind: 'attempted'
      readonly request: DeliveryRequest
      readonly result: AttemptResult
      readonly attempts: readonly AttemptRecord[]
    }
  | { readonly kind: 'expired'; readonly message: Message; readonly forced: boolean; readonly recipients: readonly RecipientId[] }
  | { readonly kind: 'removed'; readonly message: Message }
  | { readonly kind: 'quarantined'; readonly message: Message; readonly why: string }
  | {
      readonly kind: 'noticed'
      readonly message: Message
      readonly notice: Debt
      readonly to: 'sender' | 'postmaster'
      readonly noticeId: string
    }
  | { readonly kind: 'notice-dropped'; readonly message: Message; readonly why: string }
  | { readonly kind: 'operated'; readonly queueId: string; readonly operation: string; readonly by: string }
  // destinations
  | {
      readonly kind: 'window'
      readonly destination: DestinationName
      readonly window: number
      readonly inFlight: number
      readonly feedback: string
    }
  | { readonly kind: 'died'; readonly destination: DestinationName; readonly until: Instant; readonly reason: string }
  | { readonly kind: 'revived'; readonly destination: DestinationName }
  | { readonly kind: 'suspended' | 'resumed'; readonly destination: DestinationName; readonly by: string }
  // the daemon and its store
  | { readonly kind: 'store-trouble'; readonly why: string }
  | { readonly kind: 'store-recovered' }
  | { readonly kind: 'note'; readonly level: 'info' | 'warning' | 'error' | 'fatal' | 'panic'; readonly text: string }

export type Listen = (event: QueueEvent, at: Instant) => void

/** Tells every listener, in the order they came. A listener that throws is a bug and is not hidden. */
export class Events {
  readonly #listeners: Listen[] = []
  readonly #now: () => Instant

  constructor(now: () => Instant) {
    this.#now = now
  }

  listen(listener: Listen): void {
    this.#listeners.push(listener)
  }

  emit(event: QueueEvent): void {
    const at = this.#now()
    for (const listener of this.#listeners) listener(event, at)
  }
}
