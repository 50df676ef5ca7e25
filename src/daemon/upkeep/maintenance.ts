/**
 * Periodic maintenance, every minute on the monotonic clock: the safety scan, and pruning of history, trash, dialogues and checks of domains. Due times do
 * not depend on it.
 */
import type { Config } from '../../config/options.ts'
import { HOUR, MINUTE, type Clock, type Duration } from '../../system/clock.ts'
import { every, type PeriodicTask } from '../../system/periodic-task.ts'
import type { Scheduler } from '../../queue/scheduler/scheduler.ts'
import { rethrowUnlessUnavailable } from '../../store/queue-store.ts'
import { CHECKS_KEPT_FOR } from '../../store/records/domain-check.ts'
import type { Records } from '../../store/records/records.ts'
import type { StoreUpkeep } from '../../store/store-upkeep.ts'
import type { Events } from '../../telemetry/events.ts'

interface MaintenanceDeps {
  readonly config: () => Config
  readonly clock: Clock
  readonly store: Pick<StoreUpkeep, 'prune'>
  readonly records: Pick<Records, 'sessions' | 'domainChecks'>
  readonly scheduler: Pick<Scheduler, 'scan'>
  readonly events: Events
}

const INTERVAL: Duration = MINUTE
/** Requests with an idempotency key are kept for this time. */
const REQUESTS_KEPT_FOR: Duration = 24 * HOUR

/** A failed run is repeated after a minute. StoreHealth waits for the store that caused the failure. */
export function maintain(deps: MaintenanceDeps): PeriodicTask {
  const { config, clock, scheduler, events } = deps
  let lastScan = clock.monotonic()
  const run = async (stopping: AbortSignal): Promise<void> => {
    if (clock.monotonic() - lastScan >= config().queue_run_delay) {
      lastScan = clock.monotonic()
      await scheduler.scan()
    }
    await prune(deps, stopping)
  }
  const failed = (error: unknown): void => {
    rethrowUnlessUnavailable(error)
    events.emit({ kind: 'note', level: 'warning', text: `maintenance postponed by a minute: ${error.message}` })
  }
  return every(clock, INTERVAL, run, { failed })
}

/** Prunes in slices, one transaction each, so that mail does not wait. */
async function prune({ config, clock, store, records }: MaintenanceDeps, stopping: AbortSignal): Promise<void> {
  const { history_retention, history_limit, trash_lifetime, session_retention, session_transcript_limit } = config()
  const limits = {
    historyBefore: clock.now() - history_retention,
    historyCount: history_limit,
    trashBefore: clock.now() - trash_lifetime,
    requestsBefore: clock.now() - REQUESTS_KEPT_FOR,
  }
  for (let { more } = await store.prune(limits); more && !stopping.aborted;) ({ more } = await store.prune(limits))
  const sessions = { before: clock.now() - Math.min(session_retention, history_retention), limit: session_transcript_limit }
  while (!stopping.aborted && (await records.sessions.prune(sessions)));
  await records.domainChecks.prune(clock.now() - CHECKS_KEPT_FOR)
}
