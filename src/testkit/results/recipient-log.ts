/**
 * Record of each recipient, built from the events of the queue: acceptance, attempts, outcome, operations, and the notices to the
 * sender.
 */
import type { AttemptResult } from '../../delivery/delivery-agent.ts'
import { SECOND, type Duration, type QueueTime } from '../../system/clock.ts'
import type { DeliveryStatus, Stage } from '../../mail/smtp-reply.ts'
import type { TlsFacts } from '../../mail/tls-facts.ts'
import { queueIdOf, recipientId, type Message, type RecipientId } from '../../mail/message.ts'
import { onEvents, type EventOf } from '../../telemetry/events.ts'

/** One attempt for one recipient. An expiry between two attempts is an entry with outcome `expired` and stage `queue`. */
export interface Attempt {
  /** Start of the attempt, in seconds since the acceptance of the message. */
  readonly at: number
  readonly outcome: 'delivered' | 'deferred' | 'bounced' | 'expired'
  /** Reply of the server, verbatim; absent if there was none. */
  readonly reply?: string | undefined
  /** Enhanced status code (RFC 3463): `4.2.1`. */
  readonly status: string
  /** Name of the connected host; absent if no connection was made. */
  readonly host?: string | undefined
  /** Stage of the session to which `reply` or `reason` belongs. */
  readonly stage: Stage
  /** Reason, as written to the log. */
  readonly reason: string
  /** TLS of the attempt: level, policy, state and reason; absent when no host was tried. */
  readonly tls?: TlsFacts | undefined
  readonly queueId: string
}

/** One event about a recipient. `when` is of the relay's clock, which does not follow a step of the wall clock. */
export type Entry =
  | { readonly kind: 'accepted'; readonly when: QueueTime; readonly queueId: string; readonly sender: string; readonly size: number }
  | {
      readonly kind: 'attempt'
      readonly when: QueueTime
      readonly queueId: string
      readonly attempt: Attempt
      readonly tried: boolean
    }
  | {
      readonly kind: 'notice'
      readonly when: QueueTime
      readonly queueId: string
      readonly notice: 'failure' | 'delay' | 'success'
      readonly to: 'sender' | 'postmaster'
    }
  /** It was refused, because it is on the suppression list. */
  | { readonly kind: 'suppressed'; readonly when: QueueTime; readonly queueId: null; readonly scope: string; readonly reason: string }
  | { readonly kind: 'operated'; readonly when: QueueTime; readonly queueId: string; readonly operation: string; readonly by: string }

/** Collects entries by recipient address. */
export class RecipientLog {
  readonly #entries = new Map<string, Entry[]>()
  readonly #addresses = new Map<RecipientId, string>()
  /** The recipients of each message, by queue id. */
  readonly #recipients = new Map<string, readonly string[]>()
  readonly #last = new Map<RecipientId, DeliveryStatus>()
  /** Recipients that the next notice will list, by queue id and kind of notice. */
  readonly #noticesDue = new Map<string, Set<string>>()

  /** Entries of an address, oldest first. */
  of(address: string): readonly Entry[] {
    return this.#entries.get(address) ?? []
  }

  get addresses(): readonly string[] {
    return [...this.#entries].filter(([, entries]) => entries.some(({ kind }) => kind !== 'suppressed')).map(([address]) => address)
  }

  readonly onEvent = onEvents<QueueTime>({
    accepted: (event, when) => this.#accepted(event, when),
    attempted: (event) => this.#attempted(event),
    expired: (event, when) => this.#expired(event, when),
    'notice-sent': (event, when) => this.#noticed(event, when),
    suppressed: ({ recipient, scope, reason, action }, when) => {
      if (action === 'refused') this.#note(recipient, { kind: 'suppressed', when, queueId: null, scope, reason })
    },
    operated: ({ queueId, operation, by }, when) => {
      for (const address of this.#recipients.get(queueId) ?? []) this.#note(address, { kind: 'operated', when, queueId, operation, by })
    },
  })

  #accepted({ message, recipients }: EventOf<'accepted'>, when: QueueTime): void {
    const queueId = queueIdOf(message)
    this.#recipients.set(queueId, recipients)
    for (const [position, address] of recipients.entries()) {
      this.#addresses.set(recipientId(message.id, position), address)
      this.#note(address, { kind: 'accepted', when, queueId, sender: message.sender, size: message.size })
    }
  }

  #attempted({ request, result, attempts }: EventOf<'attempted'>): void {
    const { startedAt: when } = result.times
    for (const { recipient, outcome } of attempts) {
      const address = request.recipients.find(({ id }) => id === recipient)?.address
      const status = result.outcomes.get(recipient)?.status
      if (address === undefined || status === undefined) continue
      this.#addresses.set(recipient, address)
      this.#last.set(recipient, status)
      const attempt = attemptOf(request.message, status, { when, outcome, host: hostOf(result) })
      this.#note(address, { kind: 'attempt', when, queueId: attempt.queueId, attempt, tried: true })
      if (outcome === 'deferred') this.#markDue(attempt.queueId, 'delay', address)
      else this.#markDue(attempt.queueId, outcome === 'delivered' ? 'success' : 'failure', address)
    }
  }

  /** Records expiries. A recipient whose last attempt already ended as `expired` is skipped. */
  #expired({ message, recipients }: EventOf<'expired'>, when: QueueTime): void {
    for (const recipient of recipients) {
      const address = this.#addresses.get(recipient)
      if (address === undefined) continue
      const queueId = queueIdOf(message)
      const last = this.of(address).findLast((entry) => entry.kind === 'attempt' && entry.queueId === queueId)
      if (last?.kind === 'attempt' && last.attempt.outcome === 'expired') continue
      const status = this.#last.get(recipient) ?? { status: '4.4.7', reason: 'expired before the first attempt', stage: 'queue' as const }
      const attempt = attemptOf(message, { ...status, stage: 'queue' }, { when, outcome: 'expired', host: undefined })
      this.#note(address, { kind: 'attempt', when, queueId, attempt, tried: false })
      this.#markDue(queueId, 'failure', address)
    }
  }

  #noticed({ message, notice, to }: EventOf<'notice-sent'>, when: QueueTime): void {
    const queueId = queueIdOf(message)
    const key = `${queueId} ${notice}`
    for (const address of this.#noticesDue.get(key) ?? []) this.#note(address, { kind: 'notice', when, queueId, notice, to })
    this.#noticesDue.delete(key)
  }

  #markDue(queueId: string, notice: 'failure' | 'delay' | 'success', address: string): void {
    const key = `${queueId} ${notice}`
    this.#noticesDue.set(key, (this.#noticesDue.get(key) ?? new Set()).add(address))
    // A delay warning does not list a recipient in a final state.
    if (notice !== 'delay') this.#noticesDue.get(`${queueId} delay`)?.delete(address)
  }

  #note(address: string, entry: Entry): void {
    const entries = this.#entries.get(address)
    if (entries === undefined) this.#entries.set(address, [entry])
    else entries.push(entry)
  }
}

function attemptOf(
  message: Message,
  { reply, status, stage, reason, tls }: DeliveryStatus,
  { when, outcome, host }: Pick<Attempt, 'outcome' | 'host'> & { readonly when: QueueTime },
): Attempt {
  const age: Duration = when - message.arrivedAt
  return { at: age / SECOND, outcome, reply, status, host, stage, reason, tls, queueId: queueIdOf(message) }
}

const hostOf = ({ relay }: AttemptResult): string | undefined => relay?.replace(/\[.*$/, '')
