/** Goodput, in deliveries per second under a constant load, before a fault and after its end. */
import { join } from 'node:path'
import { expect } from 'vitest'
import { faultyEnvironment } from './io-faults/io-faults.ts'
import { KillableRelay } from './killable-relay.ts'

export type Fault = 'SIGKILL' | 'EIO' | 'SIGSTOP' | 'remote outage'

export interface Goodput {
  readonly fault: Fault
  /** Deliveries per second before the fault. */
  readonly before: number
  /** Seconds from the end of the fault until goodput is at least the given part of that again. */
  readonly recovery: number
  readonly lost: number
}

const CLIENTS = 4
/** Pause of a client after a message, in ms: far below what a slow machine can do, so that its speed does not matter. */
const PACE = 60
/** Time limit of the recovery, in ms. */
const LIMIT = 60_000

/**
 * `measured`: ms over which goodput is measured, of which a short time needs a smaller part as `least`; `lasts`: ms of a SIGSTOP or an
 * outage.
 */
export async function goodputAround(fault: Fault, { measured = 5_000, least = 0.95, lasts = 10_000 } = {}): Promise<Goodput> {
  const relay = new KillableRelay({ minimal_backoff_time: '5s', maximal_backoff_time: '20s' })
  try {
    relay.load.pace = PACE
    await relay.open(CLIENTS, (number) => `ann-${number}@far.example`)
    // A sync that the load reaches after the measurement.
    const from = Math.ceil((measured / 1_000) * 100)
    const log = join(relay.queueDirectory, 'faults.log')
    await relay.startDaemon(fault === 'EIO' ? faultyEnvironment({ call: 'sync', from, count: 1, error: 'EIO' }, log) : {})
    await pause(1_000)
    const before = await rateOver(relay, measured)
    await happen(fault, relay, lasts)
    const recovery = await untilRate(relay, least * before, measured)
    await relay.quiet()
    expect(await relay.drained(LIMIT)).toBe(true)
    const lost = [...relay.acknowledged.keys()].filter((number) => !relay.far.delivered.has(number)).length
    return { fault, before: Math.round(before), recovery, lost }
  } finally {
    await relay.close()
  }
}

/** Resolves at the end of the fault; a supervisor would start the daemon at once when it has ended. */
async function happen(fault: Fault, relay: KillableRelay, lasts: number): Promise<void> {
  switch (fault) {
    case 'SIGKILL':
      await relay.die(0)
      return relay.startDaemon()
    case 'EIO':
      expect(await relay.ends(LIMIT)).toBe(74)
      return relay.startDaemon()
    case 'SIGSTOP':
      relay.signal('SIGSTOP')
      await pause(lasts)
      return relay.signal('SIGCONT')
    case 'remote outage':
      await relay.far.close()
      await pause(lasts)
      return relay.far.reopen()
  }
}

const deliveries = ({ far }: KillableRelay): number => [...far.delivered.values()].reduce((sum, times) => sum + times, 0)

async function rateOver(relay: KillableRelay, time: number): Promise<number> {
  const [began, first] = [performance.now(), deliveries(relay)]
  await pause(time)
  return ((deliveries(relay) - first) * 1_000) / (performance.now() - began)
}

/** Seconds until the deliveries of a window reach this rate; Infinity when none does within the limit. */
async function untilRate(relay: KillableRelay, rate: number, window: number): Promise<number> {
  const began = performance.now()
  while (performance.now() - began < LIMIT) {
    const elapsed = (performance.now() - began) / 1_000
    if ((await rateOver(relay, window)) >= rate) return Math.round(elapsed + window / 1_000)
  }
  return Infinity
}

const pause = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms))
