/**
 * What became of each recipient, gathered from the events of the queue: its acceptance, every attempt, how it ended, and
 * the notices its sender was sent.
 */
import type { AttemptResult, RecipientOutcome } from '../delivery/delivery-agent.ts'
import { SECOND, type Duration, type Instant } from '../mail/clock.ts'
import type { DeliveryStatus } from '../mail/reply.ts'
import { queueIdOf, recipientId, type Message, type RecipientId } from '../queue/message.ts'
import type { QueueEvent } from '../telemetry/events.ts'

/** One try for one recipient; the last entry is `expired` also when the lifetime ended between two tries. */
export interface Attempt {
  /** Seconds since the message was accepted. */
  readonly at: number
  readonly outcome: 'delivered' | 'deferred' | 'bounced' | 'expired'
  /** What the server said, as received; absent when none did. */
  readonly reply?: string | undefined
  /** `4.2.1`. */
  readonly status: string
  /** The host that was reached; absent when none was. */
  readonly host?: string | undefined
  readonly stage: DeliveryStatus['stage']
  /** What was met, in a sentence. */
  readonly reason: string
  readonly queueId: string
}

export type Entry =
  | { readonly kind: 'accepted'; readonly when: Instant; readonly queueId: string; readonly sender: string; readonly size: number }
  | { readonly kind: 'attempt'; readonly when: Instant; readonly queueId: string; readonly attempt: Attempt; readonly tried: boolean }
  | {
      readonly kind: 'notice'
      readonly when: Instant
      readonly queueId: string
      readonly notice: 'failure' | 'delay' | 'success'
      readonly to: 'sender' | 'postmaster'
    }
  | { readonly kind: 'operated'; readonly when: Instant; readonly queueId: string; readonly operation: string; readonly by: string }

export class Ledger {
  readonly #entries = new Map<string, Entry[]>()
  readonly #addresses = new Map<RecipientId, string>()
  /** The recipients of each message, by queue id. */
  readonly #recipients = new Map<string, readonly string[]>()
  readonly #last = new Map<RecipientId, DeliveryStatus>()
  /** Who has ended in a way that a notice of that kind tells of, since the last such notice. */
  readonly #told = new Map<string, Set<string>>()

  /** Oldest first. */
  of(address: string): readonly Entry[] {
    return this.#entries.get(address) ?? []
  }

  get addresses(): readonly string[] {
    return [...this.#entries.keys()]
  }

  hear(event: QueueEvent, when: Instant): void {
    switch (event.kind) {
      case 'accepted':
        this.#accepted(event, when)
        return
      case 'attempted':
        this.#attempted(event)
        return
      case 'expired':
        this.#expired(event, when)
        return
      case 'noticed':
        this.#noticed(event, when)
        return
      case 'operated':
        for (const address of this.#recipients.get(event.queueId) ?? []) {
          this.#note(address, { kind: 'operated', when, queueId: event.queueId, operation: event.operation, by: event.by })
        }
        return
      default:
    }
  }

  #accepted({ message, recipients }: Extract<QueueEvent, { kind: 'accepted' }>, when: Instant): void {
    const queueId = queueIdOf(message)
    this.#recipients.set(queueId, recipients)
    for (const [position, address] of recipients.entries()) {
      this.#addresses.set(recipientId(message.id, position), address)
      this.#note(address, { kind: 'accepted', when, queueId, sender: message.sender, size: message.size })
    }
  }

  #attempted({ request, result, attempts }: Extract<QueueEvent, { kind: 'attempted' }>): void {
    const { startedAt } = result.times
    for (const { recipient, outcome } of attempts) {
      const address = request.recipients.find(({ id }) => id === recipient)?.address
      const status = result.outcomes.get(recipient)
      if (address === undefined || status === undefined) continue
      this.#addresses.set(recipient, address)
      this.#last.set(recipient, status)
      const attempt = attemptOf(request.message, startedAt, outcome, status, hostOf(result))
      this.#note(address, { kind: 'attempt', when: startedAt, queueId: attempt.queueId, attempt, tried: true })
      if (outcome === 'deferred') this.#owe(attempt.queueId, 'delay', address)
      else this.#owe(attempt.queueId, outcome === 'delivered' ? 'success' : 'failure', address)
    }
  }

  /** Comes for everybody whose time is over; those whose last attempt has told it already are passed over. */
  #expired({ message, recipients }: Extract<QueueEvent, { kind: 'expired' }>, when: Instant): void {
    for (const recipient of recipients) {
      const address = this.#addresses.get(recipient)
      if (address === undefined) continue
      const queueId = queueIdOf(message)
      const last = this.of(address).findLast((entry) => entry.kind === 'attempt' && entry.queueId === queueId)
      if (last?.kind === 'attempt' && last.attempt.outcome === 'expired') continue
      const status = this.#last.get(recipient) ?? { status: '4.4.7', reason: 'never tried: the lifetime was over', stage: 'queue' as const }
      const attempt = attemptOf(message, when, 'expired', { ...status, stage: 'queue' }, undefined)
      this.#note(address, { kind: 'attempt', when, queueId, attempt, tried: false })
      this.#owe(queueId, 'failure', address)
    }
  }

  #noticed({ message, notice, to }: Extract<QueueEvent, { kind: 'noticed' }>, when: Instant): void {
    const queueId = queueIdOf(message)
    const key = `${queueId} ${notice}`
    for (const address of this.#told.get(key) ?? []) this.#note(address, { kind: 'notice', when, queueId, notice, to })
    this.#told.delete(key)
  }

  #owe(queueId: string, notice: 'failure' | 'delay' | 'success', address: string): void {
    const key = `${queueId} ${notice}`
    this.#told.set(key, (this.#told.get(key) ?? new Set()).add(address))
    // Whoever has ended needs no warning any more.
    if (notice !== 'delay') this.#told.get(`${queueId} delay`)?.delete(address)
  }

  #note(address: string, entry: Entry): void {
    const entries = this.#entries.get(address)
    if (entries === undefined) this.#entries.set(address, [entry])
    else entries.push(entry)
  }
}

function attemptOf(
  message: Message,
  when: Instant,
  outcome: Attempt['outcome'],
  { reply, status, stage, reason }: DeliveryStatus | RecipientOutcome,
  host: string | undefined,
): Attempt {
  const age: Duration = when - message.arrivedAt
  return { at: age / SECOND, outcome, reply, status, host, stage, reason, queueId: queueIdOf(message) }
}

const hostOf = ({ relay }: AttemptResult): string | undefined => relay?.replace(/\[.*$/, '')
