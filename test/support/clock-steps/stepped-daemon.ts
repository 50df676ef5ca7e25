/** A daemon whose wall clock is set by years and by an hour, forward and back, under load. */
import { expect } from 'vitest'
import { isRefused, KillableRelay } from '../killable-relay.ts'
import { SettableClock } from './clock-steps.ts'

const HOUR = 3600
const YEAR = 365 * 24 * HOUR
/** Seconds ahead of the system's clock, one after the other. The way back to 0 is a step in the other direction. */
export const FORWARD_AND_BACK = [10 * YEAR, 0, HOUR, 0]
export const BACK_AND_FORWARD = [-10 * YEAR, 0, -HOUR, 0]

const pause = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms))

export interface SteppedRun {
  readonly steps: number
  readonly acknowledged: number
  readonly greetings: number
  /** Milliseconds from connect to greeting. */
  readonly longestGreeting: number
  /** Milliseconds from the last client's end to the empty queue. */
  readonly drainedAfter: number
}

/**
 * Asserts that the daemon reports each step, that all mail is delivered or returned within 30 s, and that none expires. `watch`
 * is the time under load after each step, in ms.
 */
export async function steppedDaemon(clockSteps: readonly number[], watch: number): Promise<SteppedRun> {
  const clock = new SettableClock()
  const relay = new KillableRelay()
  const greetings: number[] = []
  try {
    await relay.open(4)
    await relay.startDaemon(clock.env)
    for (const step of clockSteps) {
      clock.set(step)
      const acknowledged = relay.acknowledged.size
      // The daemon meets the step while mail is received, deferred, retried and returned.
      for (const end = performance.now() + watch; performance.now() < end; await pause(100)) {
        greetings.push(await relay.greeting())
      }
      await relay.acknowledges(acknowledged + 10)
    }
    await relay.quiet()
    // Every tenth message is deferred once, for a second: none may stall.
    const quietAt = performance.now()
    expect(await relay.drained(30_000)).toBe(true)
    const drainedAfter = Math.round(performance.now() - quietAt)
    const steps = relay.log.filter((line) => line.includes('the wall clock was set'))
    expect(steps.length, steps.join('\n')).toBe(clockSteps.length)
    // A restart in which the clock is set forward: mail is accepted. Waiting mail is covered in virtual time (test/stories).
    expect((await relay.terminate()).code).toBe(0)
    clock.set(10 * YEAR)
    await relay.startDaemon(clock.env)
    expect(relay.log.at(-1)).toBeDefined()
    expect((await relay.sendOne()).slice(0, 4)).toBe('250 ')
    expect((await relay.terminate()).code).toBe(0)
    const { far, acknowledged } = relay
    const lost = [...acknowledged.keys()].filter((number) => !(isRefused(number) ? far.noticed : far.delivered).has(number))
    expect(lost).toEqual([])
    // No message expired: notices are about refused ones only.
    expect([...far.noticed.keys()].filter((number) => !isRefused(number))).toEqual([])
    return {
      steps: clockSteps.length,
      acknowledged: acknowledged.size,
      greetings: greetings.length,
      longestGreeting: Math.round(Math.max(...greetings)),
      drainedAfter,
    }
  } finally {
    await relay.close()
  }
}
