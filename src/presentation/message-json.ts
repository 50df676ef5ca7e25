/**
 * Formats a message as JSON: first the members of Postfix in Postfix's order (postqueue -j), then those of deferd. Names and
 * order are a stable interface.
 */
import { failureClass } from '../mail/failure-class.ts'
import { hintOf } from '../mail/login-refusal.ts'
import { SECOND, type QueueTime } from '../system/clock.ts'
import type { WallView } from '../system/wall-view.ts'
import { differingOrcpt } from '../mail/envelope.ts'
import { isLive, queueIdOf } from '../mail/message.ts'
import type { TlsFacts } from '../mail/tls-facts.ts'
import type { ListedMessage, ListedRecipient, MessageDetails } from '../store/queue-reader.ts'
import type { AttemptRecord } from '../store/queue-store.ts'
import { delayReason, nextAttemptAt, type DestinationRecords } from './recipient-status.ts'

/** Sender shown in listings. The null sender is shown as in Postfix (`empty_address_recipient`). */
export const shownSender = (sender: string): string => (sender === '' ? 'MAILER-DAEMON' : sender)

type Queue = MessageDetails['queue']

/**
 * Builds a recipient's object. Absent members are undefined instead of omitted, because long listings are faster with objects of
 * one shape.
 */
function recipientJson(recipient: ListedRecipient, next: number | null, records: DestinationRecords) {
  const reason = delayReason(recipient, records) ?? undefined
  const isBounced = recipient.state === 'bounced'
  return {
    orig_address: differingOrcpt(recipient) ?? undefined,
    address: recipient.address,
    bounce_reason: isBounced ? reason : undefined,
    delay_reason: isBounced ? undefined : reason,
    destination: recipient.destination,
    state: recipient.state,
    attempts: recipient.attempts,
    next_attempt_time: next,
    last_status: recipient.last?.status ?? null,
    leased_by: recipient.node,
  }
}

/** The object of `queue list --json` and `postqueue -j`. */
export function messageJson(
  listed: Omit<ListedMessage, 'queue' | 'recipientCount'> & { readonly queue: Queue },
  records: DestinationRecords,
  wall: WallView,
) {
  const { message, queue } = listed
  const recipients: ReturnType<typeof recipientJson>[] = []
  let attempts = 0
  let expiry: QueueTime | null = null
  let earliest: QueueTime | null = null
  for (const recipient of listed.recipients) {
    const next = nextAttemptAt(recipient, queue, records)
    recipients.push(recipientJson(recipient, wall.secondsOrNull(next), records))
    attempts = Math.max(attempts, recipient.attempts)
    if (isLive(recipient)) expiry = Math.max(expiry ?? 0, recipient.expiresAt)
    if (next !== null) earliest = Math.min(earliest ?? next, next)
  }
  return {
    queue_name: queue,
    queue_id: queueIdOf(message),
    arrival_time: Math.floor(wall.seconds(message.arrivedAt)),
    message_size: message.size,
    forced_expire: listed.forcedExpire,
    sender: shownSender(message.sender),
    recipients,
    expire_time: wall.secondsOrNull(expiry),
    attempts,
    next_attempt_time: wall.secondsOrNull(earliest),
  }
}

/** One entry of `history` in `queue show --json`. */
export function attemptJson(attempt: AttemptRecord, address: string, wall: WallView) {
  return {
    time: wall.seconds(attempt.at),
    recipient: address,
    host: attempt.relay,
    stage: attempt.status.stage,
    reply: attempt.status.reply ?? null,
    status: attempt.status.status,
    class: attempt.outcome === 'delivered' ? null : failureClass(attempt.status).class,
    hint: attempt.outcome === 'delivered' ? null : hintOf(attempt.status),
    outcome: attempt.outcome,
    delays: attempt.delays.map((delay) => delay / SECOND),
    reason: attempt.status.reason,
    tls: tlsJson(attempt.status.tls),
  }
}

/** Members of `history[].tls`; null when no host was chosen. */
const tlsJson = (tls: TlsFacts | undefined) =>
  tls === undefined
    ? null
    : {
        level: tls.level,
        policy: tls.policy,
        state: tls.state,
        protocol: tls.protocol ?? null,
        cipher: tls.cipher ?? null,
        reason: tls.reason ?? null,
      }

export type MessageJson = ReturnType<typeof messageJson>
