/** Waits no longer than one may for an answer that keeps its own time. */
import type { Clock, Duration } from '../mail/clock.ts'

/** The answer; undefined when the time is over, or the signal comes, before it. It is then nobody's. */
export function inTime<T>(answer: Promise<T>, clock: Clock, wait: Duration, signal: AbortSignal): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      timer.cancel()
      signal.removeEventListener('abort', giveUp)
    }
    const giveUp = (): void => {
      stop()
      resolve(undefined)
    }
    const timer = clock.after(Math.max(0, wait), giveUp)
    signal.addEventListener('abort', giveUp, { once: true })
    answer.then(resolve, reject).finally(stop)
  })
}
