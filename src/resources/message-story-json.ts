/** One message in JSON, with its attempts, the rule of its next attempt, where it came from, and its future. */
import { z } from 'zod'
import type { DestinationPolicies } from '../config/destination-policies.ts'
import { isLive, queueIdOf, type Recipient } from '../mail/message.ts'
import { BY_MODES } from '../mail/message-times.ts'
import { failureClass } from '../mail/failure-class.ts'
import type { TlsFacts } from '../mail/tls-facts.ts'
import { remedyFor, ruleFor } from '../presentation/next-attempt-reason.ts'
import { nextAttemptAt, waitsNow, type DestinationRecords, type LiveDestinations } from '../presentation/recipient-status.ts'
import type { MessageDetails } from '../store/queue-reader.ts'
import type { AttemptRecord } from '../store/recorded-outcomes.ts'
import { endOfAll, type Suspension } from '../store/records/suspension.ts'
import { SECOND, type Duration } from '../system/clock.ts'
import type { WallView } from '../system/wall-view.ts'
import { futureShape } from './future-attempts-json.ts'
import { count, failure, failureJson, textOrNull, time, timeOrNull, type Json } from './members.ts'
import { messageJson, messageShape, recipientShape, type MessageJson } from './message-json.ts'
import { operationShape } from './operation-json.ts'

export const tlsShape = z.object({
  level: z.string(),
  policy: z.enum(['config', 'dane', 'sts', 'none']).describe('source of the level'),
  state: z.enum(['undecided', 'clear', 'encrypted', 'trusted', 'verified', 'not-offered', 'refused']),
  protocol: textOrNull,
  cipher: textOrNull,
  reason: textOrNull,
})

export const tlsJson = ({ level, policy, state, protocol, cipher, reason }: TlsFacts): Json<typeof tlsShape> => ({
  level,
  policy,
  state,
  protocol: protocol ?? null,
  cipher: cipher ?? null,
  reason: reason ?? null,
})

const waitsForShape = z.enum(['due-time', 'schedule', 'slot', 'delivery', 'probe', 'resume', 'release', 'inspection', 'restore', 'nothing'])

const storyRecipientShape = recipientShape.extend({
  waits_for: waitsForShape,
  rule: textOrNull.describe('rule of the next attempt; for an expired recipient the limit of attempts that it has reached'),
  remedy: textOrNull.describe('what ends the wait earlier'),
  settle_time: timeOrNull.describe('time of the final state'),
  expire_time: timeOrNull.describe('null for mail that does not expire: on hold, corrupt, or settled'),
  notice_due: textOrNull.describe('kind of the notice that is due'),
  last_reply: textOrNull.describe('the last reply, or why there was none'),
  site_stage: textOrNull.describe('the stage of the attempt at which its dead destination failed as a whole; null for another wait'),
  suspended_with: textOrNull.describe('the provider with which its destination is suspended, and not itself; null for another wait'),
  also_suspended_with: textOrNull.describe('the suspended provider of its destination, which is suspended itself'),
  resume_time: timeOrNull.describe('time at which all suspensions of its destination have ended; null when an operator must end one'),
  resent_as: textOrNull.describe('queue id with which it was sent again after it had failed'),
})

const attemptShape = z.object({
  time,
  recipient: z.string(),
  host: textOrNull,
  stage: z.string(),
  reply: textOrNull,
  status: z.string(),
  ...failure,
  class_rule: textOrNull.describe('why the failure is of this class'),
  outcome: z.string(),
  delays: z.array(z.number()),
  reason: z.string(),
  tls: tlsShape.nullable().describe('TLS of the session with the host; null when no host was chosen'),
  session: textOrNull.describe('id of the dialogue with the host; null when none was kept'),
})

const attemptJson = (
  { at, relay, status, outcome, delays, session }: AttemptRecord,
  address: string,
  wall: WallView,
): Json<typeof attemptShape> => ({
  time: wall.seconds(at),
  recipient: address,
  host: relay,
  stage: status.stage,
  reply: status.reply ?? null,
  status: status.status,
  ...failureJson(outcome === 'delivered' ? null : status),
  class_rule: outcome === 'delivered' ? null : failureClass(status).rule,
  outcome,
  delays: delays.map((delay) => delay / SECOND),
  reason: status.reason,
  tls: status.tls === undefined ? null : tlsJson(status.tls),
  session: session ?? null,
})

const storyMembers = {
  history: z.array(attemptShape),
  rule: textOrNull,
  waits_for: waitsForShape,
  recipients: z.array(storyRecipientShape),
  message_id: textOrNull.describe('Message-ID of the header'),
  subject: textOrNull.optional().describe('Subject, decoded, at most 200 characters; absent without the right `content`'),
  from_header: textOrNull.optional().describe('From of the header, likewise'),
  envid: textOrNull.describe('ENVID (RFC 3461 §4.4)'),
  ret: textOrNull.describe('RET (RFC 3461 §4.3)'),
  received_time: time.describe('`arrival_time` with its fraction'),
  create_time: time.describe('time of the arrival, or of the last requeueing'),
  leave_time: timeOrNull.describe('time at which the message left the queue'),
  restore_until: timeOrNull.describe('end of the time in which a deleted message can be restored (trash_lifetime); null for other mail'),
  deliver_by: time.optional().describe('time by which the message is to be delivered (BY of RFC 2852), when its client has named one'),
  by_mode: z.enum(BY_MODES).optional().describe('what happens then: R returns the message, N reports the delay; T reports each relay'),
  warnings: count.describe('delay warnings that were sent'),
  maximum_attempts: count.nullable().describe('limit of attempts that the client has named'),
}

/** The members of `deferd queue show --json`, with those that only the API has. */
export const messageStoryShape = messageShape
  .extend({
    ...storyMembers,
    client: textOrNull.describe('name and address of the client that sent the message'),
    sasl_username: textOrNull.describe('user of the login of that client'),
    operations: z.array(operationShape).describe('the last operations on the message, the newest first'),
    future: z.array(futureShape).describe('recipients that wait for attempts; with `retry_jitter`, one of the possible schedules'),
  })
  .meta({ id: 'Message' })

type Story = Json<z.ZodObject<typeof storyMembers>>
type StoryRecipient = Story['recipients'][number] & MessageJson['recipients'][number]

export interface StoryJson extends Omit<MessageJson, 'recipients'>, Omit<Story, 'recipients'> {
  readonly recipients: readonly StoryRecipient[]
}

export interface MessageStoryJson extends StoryJson, Omit<Json<typeof messageStoryShape>, keyof StoryJson> {}

interface StoryFacts {
  readonly story: MessageDetails
  readonly records: DestinationRecords
  readonly live: LiveDestinations
  readonly policies: DestinationPolicies
  readonly wall: WallView
  /** Time that deleted mail is kept. */
  readonly trashLifetime: Duration
  /** Whether the reader has the right `content`. */
  readonly content: boolean
}

/** The live recipient with the earliest next attempt. */
function firstToBeTried({ story, records }: Pick<StoryFacts, 'story' | 'records'>): Recipient | undefined {
  const at = (recipient: Recipient) => nextAttemptAt(recipient, story.queue, records) ?? Infinity
  return story.recipients.filter(isLive).toSorted((a, b) => at(a) - at(b) || a.id - b.id)[0]
}

/** The suspension that ends the wait of a recipient; null for another wait. */
const suspensionMembers = (suspension: Suspension | null, wall: WallView) => ({
  suspended_with: suspension?.provider ?? null,
  also_suspended_with: suspension?.also?.provider ?? null,
  resume_time: suspension === null ? null : wall.secondsOrNull(endOfAll(suspension)),
})

/** The wait of a recipient, and its end. */
function recipientWaits(recipient: Recipient, { story, records, live, policies, wall }: StoryFacts) {
  const waits = waitsNow(recipient, story, { records, live })
  const next = nextAttemptAt(recipient, story.queue, records)
  const record = records.get(recipient.destination)
  return {
    waits_for: waits,
    rule: ruleFor({ recipient, story, waits, next, policies, live: live.get(recipient.destination), record }),
    remedy: remedyFor({ waits, queueId: queueIdOf(story.message), record, forcedExpire: story.forcedExpire }),
    settle_time: wall.secondsOrNull(recipient.settledAt),
    // Held and corrupt mail does not expire.
    expire_time: isLive(recipient) && recipient.state !== 'parked' ? wall.seconds(recipient.expiresAt) : null,
    notice_due: recipient.noticeDue ?? null,
    last_reply: recipient.last?.reply ?? recipient.last?.reason ?? null,
    site_stage: waits === 'probe' ? (record?.siteStatus?.stage ?? null) : null,
    ...suspensionMembers(waits === 'resume' ? (record?.suspension ?? null) : null, wall),
    resent_as: recipient.resentAs ?? null,
  }
}

/** The object of `queue show --json`. */
export function storyJson(facts: StoryFacts): StoryJson {
  const { story, records, wall } = facts
  const addresses = new Map(story.recipients.map(({ id, address }) => [id, address]))
  const first = firstToBeTried(facts)
  const { recipients, ...message } = messageJson(story, records, wall)
  const { messageId, subject, fromHeader, envid, ret, arrivedAt, createdAt, deliverBy, byMode } = story.message
  const shown = story.recipients.map((recipient) => recipientWaits(recipient, facts))
  const { rule = null, waits_for = 'nothing' } =
    (first === undefined ? shown.find((one) => one.rule !== null) : shown[story.recipients.indexOf(first)]) ?? {}
  return {
    ...message,
    recipients: recipients.flatMap((one, n) => {
      const waits = shown[n]
      return waits === undefined ? [] : [{ ...one, ...waits }]
    }),
    history: story.history.map((attempt) => attemptJson(attempt, addresses.get(attempt.recipient) ?? '', wall)),
    rule,
    waits_for,
    message_id: messageId ?? null,
    subject: facts.content ? (subject ?? null) : undefined,
    from_header: facts.content ? (fromHeader === undefined || fromHeader === '' ? null : fromHeader) : undefined,
    envid: envid ?? null,
    ret: ret ?? null,
    received_time: wall.seconds(arrivedAt),
    create_time: wall.seconds(createdAt),
    leave_time: wall.secondsOrNull(story.leftAt),
    restore_until: story.deletedAt === undefined ? null : wall.seconds(story.deletedAt + facts.trashLifetime),
    deliver_by: deliverBy === undefined ? undefined : wall.seconds(deliverBy),
    by_mode: byMode,
    warnings: story.warnings,
    maximum_attempts: story.message.maxAttempts ?? null,
  }
}
