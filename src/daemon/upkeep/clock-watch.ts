/**
 * Watches the queue's clock once a second on the monotonic clock. It logs steps of the wall clock, and saves the record from
 * which the next process continues the clock.
 */
import { MINUTE, SECOND, type Duration } from '../../system/clock.ts'
import { largestUnits } from '../../system/duration.ts'
import { every } from '../../system/periodic-task.ts'
import type { QueueClock } from '../../system/queue-clock.ts'
import { rethrowUnlessUnavailable } from '../../store/queue-store.ts'
import type { StoreUpkeep } from '../../store/store-upkeep.ts'
import type { Events } from '../../telemetry/events.ts'

interface ClockWatchDeps {
  readonly clock: QueueClock
  readonly store: Pick<StoreUpkeep, 'saveClock'>
  readonly events: Events
  /** Called after each step. */
  readonly stepped: () => void
}

/** A restart may be uncertain about this much time. */
const RECORD_INTERVAL: Duration = MINUTE

/** Starts the watch. `step` is the step of the wall clock since the last process. Its stop saves the record once more. */
export function watchClock({ clock, store, events, stepped }: ClockWatchDeps, step: Duration): { readonly stop: () => Promise<void> } {
  let isSaved = false
  const save = async (): Promise<void> => {
    isSaved = false
    await store.saveClock(clock.record())
    isSaved = true
  }
  // A record that the store could not commit is saved after a second.
  const nextSave = (took: Duration): Duration => (isSaved ? Math.max(SECOND, RECORD_INTERVAL - took) : SECOND)
  const noteStep = (by: Duration): void => {
    if (by !== 0) events.emit({ kind: 'note', level: 'warning', text: stepText(by) })
  }
  noteStep(step)
  if (step !== 0) stepped()
  const records = every(clock, nextSave, save, { immediate: true, failed: rethrowUnlessUnavailable })
  const looks = every(clock, SECOND, () => {
    const by = clock.observe()
    noteStep(by)
    if (by === 0) return
    records.wake()
    stepped()
  })
  const stop = async (): Promise<void> => {
    await Promise.all([looks.stop(), records.stop()])
    await save().catch(rethrowUnlessUnavailable)
  }
  return { stop }
}

function stepText(step: Duration): string {
  const by = largestUnits(Math.abs(step)).map(({ figure, unit }) => `${figure} ${unit}${figure === 1 ? '' : 's'}`)
  return `the wall clock was set ${step > 0 ? 'forward' : 'back'} by ${by.join(' ')}; queued mail keeps its waits and lifetimes`
}
