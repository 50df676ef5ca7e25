/**
 * A message as JSON: Postfix's members first and in Postfix's order (postqueue -j), then ours. Names and order are a
 * promise to programs.
 */
import type { Instant } from '../mail/clock.ts'
import { queueIdOf, type Recipient } from '../queue/message.ts'
import type { ListedMessage, MessageStory } from '../queue/reader.ts'
import type { AttemptRecord } from '../queue/store.ts'
import { delayReason, nextAttemptAt, originalAddress, type DestinationRecords } from './standing.ts'
import { epochSeconds } from './text.ts'

/** How Postfix writes the null sender in listings (`empty_address_recipient`). */
export const shownSender = (sender: string): string => (sender === '' ? 'MAILER-DAEMON' : sender)

const optionalSeconds = (at: Instant | null): number | null => (at === null ? null : epochSeconds(at))

type Queue = MessageStory['queue']

function recipientJson(recipient: Recipient, queue: Queue, records: DestinationRecords): Record<string, unknown> {
  const original = originalAddress(recipient)
  const reason = delayReason(recipient, records)
  return {
    ...(original === null ? {} : { orig_address: original }),
    address: recipient.address,
    ...(reason === null ? {} : { [recipient.state === 'bounced' ? 'bounce_reason' : 'delay_reason']: reason }),
    destination: recipient.destination,
    state: recipient.state,
    attempts: recipient.attempts,
    next_attempt_time: optionalSeconds(nextAttemptAt(recipient, queue, records)),
    last_status: recipient.last?.status ?? null,
  }
}

const earliest = (times: readonly (Instant | null)[]): Instant | null =>
  times.reduce((least, at) => (least === null || (at !== null && at < least) ? at : least), null)

const latest = (times: readonly Instant[]): Instant | null => times.reduce<Instant | null>((most, at) => Math.max(most ?? at, at), null)

/** The object that `queue list --json` and `postqueue -j` print. */
export function messageJson(listed: Omit<ListedMessage, 'queue'> & { readonly queue: Queue }, records: DestinationRecords): object {
  const { message, queue, recipients } = listed
  const live = recipients.filter(({ state }) => state === 'waiting' || state === 'leased' || state === 'parked')
  return {
    queue_name: queue,
    queue_id: queueIdOf(message),
    arrival_time: Math.floor(message.arrivedAt / 1000),
    message_size: message.size,
    forced_expire: listed.forcedExpire,
    sender: shownSender(message.sender),
    recipients: recipients.map((recipient) => recipientJson(recipient, queue, records)),
    expire_time: optionalSeconds(latest(live.map(({ expiresAt }) => expiresAt))),
    attempts: recipients.reduce((most, { attempts }) => Math.max(most, attempts), 0),
    next_attempt_time: optionalSeconds(earliest(live.map((recipient) => nextAttemptAt(recipient, queue, records)))),
  }
}

/** One entry of `history` in `queue show --json`. */
export function attemptJson(attempt: AttemptRecord, address: string): object {
  return {
    time: epochSeconds(attempt.at),
    recipient: address,
    host: attempt.relay,
    stage: attempt.status.stage,
    reply: attempt.status.reply ?? null,
    status: attempt.status.status,
    outcome: attempt.outcome,
    delays: attempt.delays.map(epochSeconds),
    reason: attempt.status.reason,
  }
}
