/** Periodic tasks on mail that has left the queue: limits of kept contents, and erasures whose process ended. */
import type { Config } from '../../config/options.ts'
import { HOUR, SECOND, type Clock, type Duration } from '../../system/clock.ts'
import { every, type PeriodicTask } from '../../system/periodic-task.ts'
import type { Erasing } from '../../queue/erasing.ts'
import type { DepartedMail } from '../../store/returned-mail.ts'
import { rethrowUnlessUnavailable } from '../../store/queue-store.ts'

/** The contents of a mass bounce may exceed the limit for this time. */
const INTERVAL: Duration = 5 * SECOND
/** Without a retention, the pauses double up to this one. */
const LONGEST_PAUSE: Duration = HOUR

interface ReturnedContentDeps {
  readonly config: () => Pick<Config, 'returned_content_retention' | 'returned_content_limit'>
  readonly clock: Clock
  readonly store: Pick<DepartedMail, 'dropKept'>
}

/**
 * Without a retention, deletes what is left of an earlier one: settlements that were under way at a reload, and nodes that reload later, still
 * keep contents.
 */
export function limitReturnedContent({ config, clock, store }: ReturnedContentDeps): PeriodicTask {
  let pause = INTERVAL
  let pausedUntil = 0
  const run = async (stopping: AbortSignal): Promise<void> => {
    const { returned_content_retention: retention, returned_content_limit: bytes } = config()
    const isOff = retention === 0
    if (isOff && clock.monotonic() < pausedUntil) return
    const limits = isOff ? { until: Number.MAX_SAFE_INTEGER, bytes: 0 } : { until: clock.now(), bytes }
    for (let more = true; more && !stopping.aborted;) ({ more } = await store.dropKept(limits))
    pause = isOff ? Math.min(2 * pause, LONGEST_PAUSE) : INTERVAL
    pausedUntil = isOff ? clock.monotonic() + pause : 0
  }
  return every(clock, INTERVAL, run, { failed: rethrowUnlessUnavailable, immediate: true })
}

/** An erasure of a node that is gone waits for this time, beside the rest of its lease. */
const TAKEN_WITHIN: Duration = 30 * SECOND

/** Goes on with erasures whose process ended: at the start, and with those of other nodes that are gone. */
export const goOnErasing = (clock: Clock, erasing: Pick<Erasing, 'goOn'>): PeriodicTask =>
  every(clock, TAKEN_WITHIN, () => erasing.goOn(), { failed: rethrowUnlessUnavailable, immediate: true })
