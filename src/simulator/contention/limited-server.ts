/**
 * Experiment of Postfix's SCHEDULER_README ("impact of active server concurrency limiter"): 1,000 deliveries of two recipients,
 * one second each, to a server that accepts five connections and replies 421 to all others at once. A refused delivery is
 * deferred and not retried. Shows how feedback of 1/N keeps the share of deferred mail low.
 */
import { mulberry32 } from '../../system/random.ts'
import { EventQueue } from './event-queue.ts'
import { type Feedback, PostfixWindow } from './window-clients.ts'

interface LimitedServerSettings {
  readonly feedback: Feedback
  /** True to round at the middle of a step, as Postfix's program does and SCHEDULER_README does not. */
  readonly halfStep: boolean
  readonly seed: number
  readonly deliveries?: number
}

interface LimitedServerResult {
  /** Share of deliveries that were deferred. */
  readonly deferred: number
  /** Mean number of deliveries in flight. */
  readonly concurrency: number
  readonly deviation: number
}

const SERVER_LIMIT = 5
const INITIAL = 5
const CLIENT_LIMIT = 20
/** In microseconds: two recipients, one second each. */
const SERVICE_TIME = 2_000_000
/** Relative spread of the service time, which keeps deliveries from synchronizing. */
const NOISE = 0.02

export function runLimitedServer({ feedback, halfStep, seed, deliveries = 1000 }: LimitedServerSettings): LimitedServerResult {
  const window = new PostfixWindow({ feedback, halfStep, initial: INITIAL, limit: CLIENT_LIMIT })
  const events = new EventQueue()
  const draw = mulberry32(seed)
  let left = deliveries
  let inFlight = 0
  let served = 0
  let deferred = 0
  const sizes: number[] = []
  for (;;) {
    while (left > 0 && inFlight < window.size) {
      left--
      inFlight++
      const taken = served < SERVER_LIMIT
      if (taken) served++
      events.put(events.now + (taken ? Math.round(SERVICE_TIME * (1 + NOISE * (2 * draw() - 1))) : 0), taken ? 1 : 0)
    }
    sizes.push(inFlight)
    const event = events.take()
    if (event === undefined) break
    if (event === 1) {
      served--
      window.succeeded(inFlight)
    } else {
      deferred++
      window.failed()
    }
    inFlight--
  }
  const concurrency = sizes.reduce((sum, size) => sum + size, 0) / sizes.length
  const variance = sizes.reduce((sum, size) => sum + (size - concurrency) ** 2, 0) / sizes.length
  return { deferred: deferred / deliveries, concurrency, deviation: Math.sqrt(variance) }
}
