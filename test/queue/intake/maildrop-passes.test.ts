/** When the maildrop is read: soon after a submission, and rarely whatever a local user does. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { MaildropPasses, pauseAfter, type PassResult } from '../../../src/queue/intake/maildrop-passes.ts'
import { SubmissionOutcomes } from '../../../src/queue/intake/submission-outcomes.ts'
import { VirtualClock } from '../../../src/testkit/virtual/virtual-clock.ts'

const EMPTY: PassResult = { taken: 0, left: 0, isStopped: false }

test.each([
  ['an empty folder', {}, 100, 60_000],
  ['queued mail', { taken: 1 }, 100, 1_000],
  ['entries that are no mail', { left: 20_000 }, 20_100, 60_000],
  ['entries that are no mail, and mail', { taken: 3, left: 5_000 }, 5_100, 5_100],
  ['more entries than a minute allows', { left: 1_000_000 }, 60_000, 60_000],
  ['a store that is not available', { isStopped: true }, 1_000, 60_000],
])('after %s', (_what, result, least, most) => {
  expect(pauseAfter({ ...EMPTY, ...result })).toEqual({ least, most })
})

describe('passes', () => {
  let clock: VirtualClock
  let passes: MaildropPasses
  let times: number[]
  /** Called during each pass. */
  let during: () => void

  beforeEach(() => {
    clock = new VirtualClock()
    const began = clock.now()
    times = []
    during = () => undefined
    passes = new MaildropPasses(clock, async () => {
      times.push(clock.now() - began)
      during()
      return EMPTY
    })
  })
  afterEach(() => passes.stop())

  /** Lets the passes go on until the next timer; `runs` timers are run. */
  async function timers(runs: number): Promise<void> {
    for (let left = runs; ; left--) {
      for (let turn = 0; turn < 20; turn++) await Promise.resolve()
      if (left === 0) return
      clock.runNext()
    }
  }

  test('begin once a minute', async () => {
    passes.start()
    await timers(4)
    expect(times).toEqual([0, 60_000, 120_000])
  })

  test('begin at once when the daemon is woken, also soon after a pass', async () => {
    passes.start()
    await timers(1)
    passes.wake()
    await timers(0)
    expect(times).toEqual([0, 100])
    // A wake before the distance has passed is not lost.
    passes.wake()
    await timers(1)
    expect(times).toEqual([0, 100, 200])
  })

  test('keep their distance however often the daemon is woken', async () => {
    during = () => passes.wake()
    passes.start()
    for (let i = 0; i < 10; i++) {
      passes.wake()
      await timers(1)
    }
    expect(times).toEqual(Array.from({ length: 11 }, (_, i) => i * 100))
  })

  test('end with the daemon', async () => {
    passes.start()
    await timers(1)
    await passes.stop()
    expect(clock.pending).toBe(0)
  })
})

describe('outcomes', () => {
  test('are told to those who ask before and after, and to none who has left', () => {
    const outcomes = new SubmissionOutcomes()
    const told: string[] = []
    outcomes.listen('a', (text) => void told.push(`before: ${text}`))
    outcomes.listen('a', (text) => void told.push(`left: ${text}`))()
    outcomes.settle('a', 'queued as 1')
    outcomes.listen('a', (text) => void told.push(`after: ${text}`))
    outcomes.listen('b', (text) => void told.push(text))
    expect(told).toEqual(['before: queued as 1', 'after: queued as 1'])
  })

  test('are kept for the last thousand files', () => {
    const outcomes = new SubmissionOutcomes()
    for (let i = 0; i <= 1_000; i++) outcomes.settle(`f${i}`, `queued as ${i}`)
    const told: string[] = []
    for (const name of ['f0', 'f1', 'f1000']) outcomes.listen(name, (text) => void told.push(text))
    expect(told).toEqual(['queued as 1', 'queued as 1000'])
  })
})
