/**
 * Postfix's own experiment (SCHEDULER_README, "impact of active server concurrency limiter"): 1,000 deliveries of two recipients, a
 * second each, to a server that takes five connections and answers 421 to the others at once. What is refused is deferred and not
 * tried again. Shows how feedback by 1/N keeps the share of deferred mail low.
 */
import { mulberry32 } from '../../mail/random.ts'
import { EventQueue } from '../event-queue.ts'
import { type Feedback, PostfixWindow } from './window-clients.ts'

export interface LimitedServerSettings {
  readonly feedback: Feedback
  /** Rounds in the middle of a step, as today's program does; not as the README says. */
  readonly halfStep: boolean
  readonly seed: number
  readonly deliveries?: number
}

export interface LimitedServerResult {
  /** Share of deliveries that were deferred. */
  readonly deferred: number
  /** Of the window, over the deliveries that ended. */
  readonly concurrency: number
  readonly deviation: number
}

const SERVER_LIMIT = 5
const INITIAL = 5
const CLIENT_LIMIT = 20
/** Two recipients, a second each. */
const SERVICE_TIME = 2_000_000
/** Without a little noise clients march in step. */
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
