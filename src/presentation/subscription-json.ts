/** A subscription to events as JSON, without secrets. URLs are masked unless the reader may see them. */
import { maskedTarget } from '../config/values/event-tables.ts'
import type { SubscriptionView } from '../store/outbox/subscription.ts'
import type { WallView } from '../system/wall-view.ts'

/** The object of `deferd webhook list --json`. `showsUrl` leaves the URL unmasked. */
export function subscriptionJson(subscription: SubscriptionView, wall: WallView, showsUrl = false) {
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
    lost: lost.reduce((sum, { count }) => sum + count, 0),
    tries: progress.tries,
    next_try_time: wall.secondsOrNull(progress.dueAt),
    last_answer: lastAnswer?.text ?? null,
    last_answer_ok: lastAnswer?.ok ?? null,
    last_answer_time: wall.secondsOrNull(lastAnswer?.at),
  }
}
