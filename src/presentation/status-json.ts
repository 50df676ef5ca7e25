/** Formats the status of a queue as JSON. */
import { hintOf } from '../mail/login-refusal.ts'
import type { QueueStatus, StatusDestination } from '../queue/queue-status.ts'
import { healthOf } from './destination-state.ts'
import { tokenStateJson } from './oauth-json.ts'
import { subscriptionJson } from './subscription-json.ts'
import type { WallView } from '../system/wall-view.ts'

const destinationJson = (one: StatusDestination, wall: WallView) => {
  const { state, deadUntil, suspension, siteStatus } = healthOf(one)
  return {
    destination: one.destination,
    state,
    waiting: one.waiting,
    window: one.live?.window ?? null,
    in_flight: one.live?.inFlight ?? null,
    next_due_time: wall.secondsOrNull(one.live?.nextDueAt),
    dead_until: wall.secondsOrNull(deadUntil),
    suspended_by: suspension?.by ?? null,
    suspended_until: wall.secondsOrNull(suspension?.until),
    suspend_reason: suspension?.reason ?? null,
    last_reply: siteStatus === null ? null : (siteStatus.reply ?? siteStatus.reason),
    hint: hintOf(siteStatus),
    last_outcomes: one.recent?.outcomes ?? null,
    last_causes: one.recent?.causes ?? null,
  }
}

export const statusJson = (status: QueueStatus, wall: WallView) => {
  const { at, running, queues, trash, oldestArrival, lastHour, closed, largest, subscriptions, tokens, balance } = status
  return {
    time: wall.seconds(at),
    running: running !== null,
    version: running?.version ?? null,
    rates: running === null ? null : { last_10s: running.rates.last10s, last_5min: running.rates.last5min },
    last_hour: lastHour,
    queues: queues.map(({ queue, messages, recipients, oldestArrival: oldest }) => ({
      queue_name: queue,
      messages,
      recipients,
      oldest_arrival_time: Math.floor(wall.seconds(oldest)),
    })),
    trash,
    oldest_arrival_time: oldestArrival === null ? null : Math.floor(wall.seconds(oldestArrival)),
    closed_destinations: closed.map((one) => destinationJson(one, wall)),
    largest_destinations: largest.map((one) => destinationJson(one, wall)),
    subscriptions: subscriptions.map((one) => subscriptionJson(one, wall)),
    oauth: tokens.map((one) => ({ oauth: one.name, ...tokenStateJson(one) })),
    balance,
  }
}

export type StatusJson = ReturnType<typeof statusJson>
