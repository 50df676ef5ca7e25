/** Subscriptions to events in JSON, without secrets. URLs are masked unless the reader may see them. */
import { z } from 'zod'
import { EVENT_FORMATS, maskedTarget } from '../config/values/tables/event-tables.ts'
import { EVENT_TYPES } from '../events/event-types.ts'
import type { SubscriptionView } from '../store/outbox/subscription.ts'
import type { WallView } from '../system/wall-view.ts'
import { count, textOrNull, time, timeOrNull, type Json } from './members.ts'

export const subscriptionShape = z
  .object({
    name: z.string(),
    owner: z.enum(['configuration', 'command']),
    to: z.string().describe('target; empty for events that are only read'),
    types: z.array(z.string()).describe('patterns of types; empty for all'),
    destinations: z.array(z.string()),
    senders: z.array(z.string()),
    format: z.enum(EVENT_FORMATS),
    batch: count,
    state: z.enum(['active', 'disabled']),
    why: textOrNull.describe('why it is disabled'),
    behind: count.describe('kept events after its position, of any type'),
    oldest_time: timeOrNull.describe('time of the first of them'),
    parked: count.describe('events that the target refused'),
    lost: count.describe('deleted events of which it was not told yet'),
    tries: count.describe('failed tries of the next event'),
    next_try_time: timeOrNull,
    last_answer: textOrNull,
    last_answer_ok: z.boolean().nullable(),
    last_answer_time: timeOrNull,
  })
  .meta({ id: 'Subscription' })

export type SubscriptionJson = Json<typeof subscriptionShape>

/** `showsUrl` leaves the URL unmasked. */
export function subscriptionJson(subscription: SubscriptionView, wall: WallView, showsUrl = false): SubscriptionJson {
  const { name, owner, settings, progress, behind, oldestAt, parked, lost } = subscription
  const { lastAnswer } = progress
  return {
    name,
    owner,
    to: showsUrl ? settings.to : maskedTarget(settings.to),
    types: settings.types,
    destinations: settings.destinations,
    senders: settings.senders,
    format: settings.format,
    batch: settings.batch,
    state: progress.state,
    why: progress.why,
    behind,
    oldest_time: wall.secondsOrNull(oldestAt),
    parked,
    lost: lost.reduce((sum, one) => sum + one.count, 0),
    tries: progress.tries,
    next_try_time: wall.secondsOrNull(progress.dueAt),
    last_answer: lastAnswer?.text ?? null,
    last_answer_ok: lastAnswer?.ok ?? null,
    last_answer_time: wall.secondsOrNull(lastAnswer?.at),
  }
}

export const keptTypes = z.array(z.enum(EVENT_TYPES)).describe('types that somebody has subscribed to; others are not kept')

export const subscriptionListShape = z
  .object({ subscriptions: z.array(subscriptionShape), kept_types: keptTypes, as_of: time })
  .meta({ id: 'Subscriptions' })

export type SubscriptionListJson = Json<typeof subscriptionListShape>

/** Events that a replay sends. */
export const replayKinds = z.enum(['waiting', 'parked', 'since', 'one'])

export const replayShape = z
  .object({
    name: z.string(),
    replay: replayKinds,
    events: count.describe('events that are sent, or would be, before the filter of the subscription'),
    command: z.string().describe('the same as arguments of `deferd`'),
    dry_run: z.boolean(),
    subscription: subscriptionShape.describe('before the replay'),
    as_of: time,
  })
  .meta({ id: 'Replay' })

export type ReplayJson = Json<typeof replayShape>

export const testAnswerShape = z
  .object({
    to: z.string().describe('the target, without the path and query of a URL'),
    taken: z.boolean().describe('true for an answer of 200 to 299'),
    answer: z.string().describe('code and text of the answer, or why there is none'),
    time: time.describe('time at which the event was sent, in seconds since 1970'),
    took: z.number().describe('seconds until the answer'),
  })
  .meta({ id: 'TestAnswer' })

/** The answer of a target to a test event. */
export type TestAnswerJson = Json<typeof testAnswerShape>
