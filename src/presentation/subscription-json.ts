/** A subscription to events as JSON. Secrets are left out. */
import type { SubscriptionView } from '../store/outbox/subscription.ts'
import { epochSeconds } from './text.ts'

const seconds = (value: number | null): number | null => (value === null ? null : epochSeconds(value))

/** The object of `deferd webhook list --json`. Times of the view are of the wall clock. */
export function subscriptionJson({ name, owner, settings, progress, behind, oldestAt, parked, lost }: SubscriptionView) {
  const { lastAnswer } = progress
  return {
    name,
    owner,
    to: settings.to,
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
