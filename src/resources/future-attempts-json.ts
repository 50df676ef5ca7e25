/**
 * The coming attempts of a recipient if all of them fail temporarily, planned with the policy, the step and the random draws of the queue;
 * and the delay warnings in between. Pure.
 */
import { z } from 'zod'
import { noticeDueFor } from '../bounce/notice.ts'
import { isOverdue, warningTimes } from '../bounce/warning-times.ts'
import type { NoticeSettings } from '../bounce/notice-writer.ts'
import type { DestinationPolicies } from '../config/destination-policies.ts'
import { startOf, isLive, type Recipient } from '../mail/message.ts'
import { attemptLimit } from '../queue/scheduler/due/attempt-limit.ts'
import { plannedAttempts } from '../planner/schedule.ts'
import { isRecordedClosed } from '../store/destination-status.ts'
import type { MessageDetails } from '../store/queue-reader.ts'
import type { QueueTime } from '../system/clock.ts'
import type { WallView } from '../system/wall-view.ts'
import { nextAttemptAt, type DestinationRecords } from '../presentation/recipient-status.ts'
import { count, textOrNull, time, type Json } from './members.ts'

interface FutureFacts {
  readonly story: MessageDetails
  readonly records: DestinationRecords
  readonly policies: DestinationPolicies
  readonly notices: Pick<NoticeSettings, 'rules' | 'warningAges'>
  /** Named draws of the scheduler; see Random.draw. */
  readonly draw: (key: string) => number
  readonly now: QueueTime
  readonly wall: WallView
}

/** Per recipient: a policy may plan many attempts in the lifetime of a message. */
const MOST_ATTEMPTS = 500

export const futureShape = z.object({
  recipient: z.string(),
  attempts: z.array(time).describe('coming attempts while the recipient stays deferred; at most 500'),
  planned: count.describe('all coming attempts'),
  warnings: z.array(time).describe('delay warnings to the sender, each at the first failed attempt from its time on'),
  expire_time: time.describe('time at which the sender gets the message back'),
  limit: textOrNull.describe('limit of attempts that returns it then; null when the end of the lifetime does'),
})

export type FutureJson = Json<typeof futureShape>

/**
 * Times at which the sender is warned, ascending: at a closed destination and from a reported deliver-by time on, the times of the
 * warnings, or now when they have passed; else the first attempts that fail then. `attempts` are the coming ones. A warning stands for all that
 * are due at its time.
 */
function warningsAfter(attempts: readonly QueueTime[], { destination }: Recipient, facts: FutureFacts): readonly QueueTime[] {
  const { story, records, notices, now } = facts
  const isClosed = isRecordedClosed(records.get(destination))
  const times = warningTimes(notices.warningAges, story.message)
    .slice(story.warnings)
    .map((at) => (isClosed || isOverdue(story.message, at) ? Math.max(at, now) : (attempts.find((one) => one >= at) ?? Infinity)))
  return [...new Set(times)]
}

/** Null without coming attempts. */
function futureOf(recipient: Recipient, facts: FutureFacts): FutureJson | null {
  const { story, records, policies, notices, draw, now, wall } = facts
  const next = isLive(recipient) ? nextAttemptAt(recipient, story.queue, records) : null
  if (next === null || story.forcedExpire) return null
  const { message } = story
  const { settings, retry } = policies.forMail(recipient.destination, message)
  const limit = attemptLimit(settings, message)
  const ages = plannedAttempts({
    policy: retry,
    lifetime: recipient.expiresAt - startOf(message),
    attempts: limit?.steps ?? 0,
    jitter: settings.retry_jitter,
    draw: (what, step) => draw(`${what} ${message.id} ${recipient.destination} ${step}`),
    // An attempt that is due starts now, at the earliest.
    from: { step: recipient.steps + 1, age: Math.max(next, now) - startOf(message) },
  })
  const attempts = ages.map((age) => startOf(message) + age)
  const last = attempts.at(-1) ?? startOf(message)
  const isLimited = limit !== null && last < recipient.expiresAt
  const end = isLimited ? last : recipient.expiresAt
  const isWarned = noticeDueFor({ outcome: 'deferred', notify: recipient.notify, sender: message.sender }, notices.rules) === 'delay'
  const warnings = isWarned ? warningsAfter(attempts, recipient, facts).filter((at) => at < end) : []
  return {
    recipient: recipient.address,
    attempts: attempts.slice(0, MOST_ATTEMPTS).map((at) => wall.seconds(at)),
    planned: attempts.length,
    warnings: warnings.map((at) => wall.seconds(at)),
    expire_time: wall.seconds(end),
    limit: isLimited ? limit.rule : null,
  }
}

/** The future of each recipient with planned attempts. */
export const futureJson = (facts: FutureFacts): readonly FutureJson[] =>
  facts.story.recipients.map((recipient) => futureOf(recipient, facts)).filter((future) => future !== null)
