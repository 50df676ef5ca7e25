/** A subscription to events as JSON. Secrets are left out, and URLs are masked unless the reader may see them. */
import { maskedTarget } from '../config/values/event-tables.ts'
import type { SubscriptionView } from '../store/outbox/subscription.ts'
import { epochSeconds } from './text.ts'

const seconds = (value: number | null): number | null => (value === null ? null : epochSeconds(value))

/** The object of `deferd webhook list --json`, where `showsUrl` is set. Times of the view are of the wall clock. */
export function subscriptionJson({ name, owner, settings, progress, behind, oldestAt, parked, lost }: SubscriptionView, showsUrl = false) {
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
    oldest_time: seconds(oldestAt),
    parked,
    lost: lost.reduce((sum, { count }) => sum + count, 0),
    tries: progress.tries,
    next_try_time: seconds(progress.dueAt),
    last_answer: lastAnswer?.text ?? null,
    last_answer_ok: lastAnswer?.ok ?? null,
    last_answer_time: seconds(lastAnswer?.at ?? null),
  }
}
