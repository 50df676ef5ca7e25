/** One message in JSON, with its attempts, the rule of its next attempt, where it came from, and its future. */
import { z } from 'zod'
import type { DestinationPolicies } from '../config/destination-policies.ts'
import { isLive, type Recipient } from '../mail/message.ts'
import type { TlsFacts } from '../mail/tls-facts.ts'
import { ruleFor } from '../presentation/next-attempt-reason.ts'
import { nextAttemptAt, waitsFor, type DestinationRecords } from '../presentation/recipient-status.ts'
import type { MessageDetails } from '../store/queue-reader.ts'
import type { AttemptRecord } from '../store/queue-store.ts'
import { SECOND } from '../system/clock.ts'
import type { WallView } from '../system/wall-view.ts'
import { futureShape } from './future-attempts-json.ts'
import { failure, failureJson, textOrNull, time, type Json } from './members.ts'
import { messageJson, messageShape, type MessageJson } from './message-json.ts'
import { operationShape } from './operation-json.ts'

const tlsShape = z.object({
  level: z.string(),
  policy: z.enum(['config', 'dane', 'sts', 'none']).describe('source of the level'),
  state: z.enum(['undecided', 'clear', 'encrypted', 'trusted', 'verified', 'not-offered', 'refused']),
  protocol: textOrNull,
  cipher: textOrNull,
  reason: textOrNull,
})

const tlsJson = ({ level, policy, state, protocol, cipher, reason }: TlsFacts): Json<typeof tlsShape> => ({
  level,
  policy,
  state,
  protocol: protocol ?? null,
  cipher: cipher ?? null,
  reason: reason ?? null,
})

const attemptShape = z.object({
  time,
  recipient: z.string(),
  host: textOrNull,
  stage: z.string(),
  reply: textOrNull,
  status: z.string(),
  ...failure,
  outcome: z.string(),
  delays: z.array(z.number()),
  reason: z.string(),
  tls: tlsShape.nullable().describe('TLS of the session with the host; null when no host was chosen'),
})

const attemptJson = (
  { at, relay, status, outcome, delays }: AttemptRecord,
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
  outcome,
  delays: delays.map((delay) => delay / SECOND),
  reason: status.reason,
  tls: status.tls === undefined ? null : tlsJson(status.tls),
})

const storyMembers = {
  history: z.array(attemptShape),
  rule: textOrNull,
  waits_for: z.enum(['due-time', 'schedule', 'delivery', 'probe', 'resume', 'release', 'inspection', 'restore', 'nothing']),
}

/** The members of `deferd queue show --json`, with those that only the API has. */
export const messageStoryShape = messageShape
  .extend({
    ...storyMembers,
    message_id: textOrNull.describe('Message-ID of the header'),
    client: textOrNull.describe('name and address of the client that sent the message'),
    sasl_username: textOrNull.describe('user of the login of that client'),
    operations: z.array(operationShape).describe('the last operations on the message, the newest first'),
    future: z.array(futureShape).describe('recipients that wait for attempts; with `retry_jitter`, one of the possible schedules'),
  })
  .meta({ id: 'Message' })

export type StoryJson = MessageJson & Json<z.ZodObject<typeof storyMembers>>
export type MessageStoryJson = MessageJson & Omit<Json<typeof messageStoryShape>, keyof MessageJson>

export interface StoryFacts {
  readonly story: MessageDetails
  readonly records: DestinationRecords
  readonly policies: DestinationPolicies
  readonly wall: WallView
}

/** The live recipient with the earliest next attempt. */
function firstToBeTried({ story, records }: Pick<StoryFacts, 'story' | 'records'>): Recipient | undefined {
  const at = (recipient: Recipient) => nextAttemptAt(recipient, story.queue, records) ?? Infinity
  return story.recipients.filter(isLive).toSorted((a, b) => at(a) - at(b) || a.id - b.id)[0]
}

/** The object of `queue show --json`. */
export function storyJson(facts: StoryFacts): StoryJson {
  const { story, records, policies, wall } = facts
  const addresses = new Map(story.recipients.map(({ id, address }) => [id, address]))
  const first = firstToBeTried(facts)
  const waits = first === undefined ? 'nothing' : waitsFor(first, story.queue, records)
  return {
    ...messageJson(story, records, wall),
    history: story.history.map((attempt) => attemptJson(attempt, addresses.get(attempt.recipient) ?? '', wall)),
    rule:
      first === undefined
        ? null
        : ruleFor({ recipient: first, story, waits, next: nextAttemptAt(first, story.queue, records), policies, wall }),
    waits_for: waits,
  }
}
