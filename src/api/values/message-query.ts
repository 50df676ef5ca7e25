/** Query parameters that select messages. They have the names of the options of `deferd queue list`. */
import { z } from 'zod'
import { HTTP_PROBLEMS, Problem } from '../../http/problem-details.ts'
import { toFilter, type MessageConditions } from '../../queue/message-filter.ts'
import { matchesPattern, STATUS_PATTERN } from '../../patterns/filter-pattern.ts'
import { exactDestination, type QueueFilter } from '../../store/queue-reader.ts'
import type { Instant } from '../../system/clock.ts'
import { parseDuration } from '../../system/duration.ts'
import { wholeNumber } from './cursor.ts'

/** A time with its unit, in milliseconds. */
export const durationText = z
  .string()
  .refine((text) => parseDuration(text) !== undefined, 'expected a time such as 30m, 2h or 1d')
  .transform((text) => parseDuration(text) ?? 0)

const text = z.string().min(1).max(1_000)

/** Conditions on messages. */
export const conditionShape = z.strictObject({
  sender: text.optional().describe('envelope sender; * matches any text, <> is the null sender'),
  recipient: text.optional().describe('a recipient without a final outcome; * matches any text'),
  destination: text.optional().describe('destination of a recipient; * matches any text'),
  queue: z.enum(['incoming', 'active', 'deferred', 'hold', 'corrupt', 'trash']).optional().describe('queue that holds the message'),
  older_than: durationText.optional().describe('arrived longer ago than this: 30m, 2h, 1d'),
  younger_than: durationText.optional().describe('arrived less long ago than this'),
  attempts_over: wholeNumber(0, 1_000_000_000).optional().describe('more attempts for a recipient than this number'),
  status: text
    .regex(STATUS_PATTERN, 'expected a code such as 4.7.0, or a pattern such as 4.7.*')
    .optional()
    .describe('enhanced status code of the last attempt of a recipient: 4.7.0; * matches any text'),
  reply: text.optional().describe('text in the last reply or reason of a recipient'),
})
export type MessageQuery = z.output<typeof conditionShape>

export function conditionsOf({
  sender,
  recipient,
  destination,
  queue,
  older_than: olderThan,
  younger_than: youngerThan,
  attempts_over: attemptsOver,
  status,
  reply,
  ...rest
}: MessageQuery): MessageConditions {
  // A new condition does not compile before it is passed on.
  const none: Readonly<Record<string, never>> = rest
  return { ...none, sender, recipient, destination, queue, olderThan, youngerThan, attemptsOver, status, reply }
}

/** True for a destination that a client may see. `pattern` is null for all. */
export const maySee = (pattern: string | null, destination: string): boolean => pattern === null || matchesPattern(pattern, destination)

/**
 * The filter of a query, limited to the destinations that the client may see. Throws Problem for a destination outside of them, and for a
 * pattern of destinations in the query of a limited client.
 */
export function filterOf(query: MessageQuery, visible: string | null, now: Instant): QueueFilter {
  const filter = toFilter(conditionsOf(query), now)
  if (visible === null) return filter
  if (filter.destination === null || filter.destination === visible) return { ...filter, destination: visible }
  const exact = exactDestination(filter)
  if (exact !== null && maySee(visible, exact)) return filter
  throw new Problem(HTTP_PROBLEMS.notPermitted, `the token is limited to the destinations ${visible}: name one of them, or none`)
}
