/** Assertions about recipients: the matchers of the test kit, with their texts. */
import { z } from 'zod'
import { Problem } from '../http/problem-details.ts'
import { matchers, type MatcherResult } from '../testkit/results/matchers.ts'
import type { Recipient } from '../testkit/results/recipient.ts'
import { LAB_PROBLEMS } from './lab-problems.ts'
import { time } from './lab-route.ts'

const kinds = z.array(z.enum(['failure', 'delay', 'success'])).max(1_000)

interface Matcher<Args> {
  readonly node: keyof typeof matchers
  readonly args: z.ZodType<Args>
  readonly find: (state: { readonly isNot: boolean }, recipient: Recipient, args: Args) => MatcherResult
}

const matcher = <Args>(node: keyof typeof matchers, args: z.ZodType<Args>, find: Matcher<Args>['find']): Matcher<Args> => ({
  node,
  args,
  find,
})

const none = z.strictObject({}).default({})

const text = z.string().max(1_000)

/** An object without the members that are undefined. */
const present = <T extends object>(members: T): { [K in keyof T]: Exclude<T[K], undefined> } =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as { [K in keyof T]: Exclude<T[K], undefined> }

const MATCHERS = {
  was_delivered: matcher('toHaveBeenDelivered', none, (state, one) => matchers.toHaveBeenDelivered.call(state, one)),
  was_delivered_once: matcher('toHaveBeenDeliveredOnce', none, (state, one) => matchers.toHaveBeenDeliveredOnce.call(state, one)),
  has_bounced: matcher(
    'toHaveBounced',
    z.strictObject({ status: text.optional(), reply: text.optional() }).default({}),
    (state, one, expected) => matchers.toHaveBounced.call(state, one, present(expected)),
  ),
  has_expired: matcher('toHaveExpired', none, (state, one) => matchers.toHaveExpired.call(state, one)),
  was_delayed: matcher('toHaveBeenDelayed', none, (state, one) => matchers.toHaveBeenDelayed.call(state, one)),
  was_deferred: matcher('toHaveBeenDeferred', z.strictObject({ times: z.int().min(0).optional() }).default({}), (state, one, { times }) =>
    matchers.toHaveBeenDeferred.call(state, one, times),
  ),
  was_suppressed: matcher(
    'toHaveBeenSuppressed',
    z.strictObject({ times: z.int().min(0).optional() }).default({}),
    (state, one, { times }) => matchers.toHaveBeenSuppressed.call(state, one, times),
  ),
  has_started_within: matcher('toHaveStartedWithin', z.strictObject({ time }), (state, one, expected) =>
    matchers.toHaveStartedWithin.call(state, one, expected.time),
  ),
  was_attempted_at: matcher('toHaveAttemptedAt', z.array(z.number()).max(100_000), (state, one, times) =>
    matchers.toHaveAttemptedAt.call(state, one, times),
  ),
  caused_notices: matcher('toHaveCausedNotices', kinds, (state, one, expected) => matchers.toHaveCausedNotices.call(state, one, expected)),
} as const

const assertionOf = <Args>(name: string, { node, args, find }: Matcher<Args>) =>
  z
    .strictObject({
      recipient: z.string().min(1).max(1_000),
      matcher: z.enum([name, node]),
      args,
      not: z.boolean().default(false),
    })
    .transform(({ recipient, args: expected, not }): Assertion => ({
      recipient,
      isNot: not,
      find: (one) => find({ isNot: not }, one, expected),
    }))

interface Assertion {
  readonly recipient: string
  readonly isNot: boolean
  readonly find: (recipient: Recipient) => MatcherResult
}

const {
  was_delivered,
  was_delivered_once,
  has_bounced,
  has_expired,
  was_delayed,
  was_deferred,
  was_suppressed,
  has_started_within,
  was_attempted_at,
  caused_notices,
} = MATCHERS

export const assertionShape = z.discriminatedUnion('matcher', [
  assertionOf('was_delivered', was_delivered),
  assertionOf('was_delivered_once', was_delivered_once),
  assertionOf('has_bounced', has_bounced),
  assertionOf('has_expired', has_expired),
  assertionOf('was_delayed', was_delayed),
  assertionOf('was_deferred', was_deferred),
  assertionOf('was_suppressed', was_suppressed),
  assertionOf('has_started_within', has_started_within),
  assertionOf('was_attempted_at', was_attempted_at),
  assertionOf('caused_notices', caused_notices),
])

export const findingShape = z
  .object({
    holds: z.boolean(),
    message: z.string().nullable().describe('the text of the matcher, with the timeline; null when the assertion holds'),
  })
  .meta({ id: 'Finding' })

/** Examines an assertion. Throws Problem for one that states nothing. */
export function findingOf(
  { recipient, isNot, find }: Assertion,
  recipientOf: (address: string) => Recipient,
): z.output<typeof findingShape> {
  let result: MatcherResult
  try {
    result = find(recipientOf(recipient))
  } catch (error) {
    // The matchers throw a TypeError for a vacuous assertion only: their arguments have been checked.
    if (error instanceof TypeError) throw new Problem(LAB_PROBLEMS.vacuous, error.message, { cause: error })
    throw error
  }
  const holds = result.pass !== isNot
  return { holds, message: holds ? null : result.message() }
}
