import { expect, test } from 'vitest'
import { minutes, seconds } from '../../src/system/clock.ts'
import { NO_TRAFFIC } from '../../src/store/counts/traffic.ts'
import { DESTINATIONS_KEPT, LastOutcomes, OUTCOMES_KEPT, WINDOWS_KEPT } from '../../src/telemetry/last-outcomes.ts'
import { Meter } from '../../src/telemetry/meter.ts'
import type { QueueEvent } from '../../src/telemetry/events.ts'
import { VirtualClock } from '../../src/testkit/virtual/virtual-clock.ts'

type Attempted = Extract<QueueEvent, { kind: 'attempted' }>
type Outcome = Attempted['attempts'][number]['outcome']

const accepted = (recipients: number) =>
  ({ kind: 'accepted', recipients: Array.from({ length: recipients }, () => 'a@b.example') }) as unknown as QueueEvent

const attempted = (outcomes: readonly Outcome[], destination = 'far.example', reply = '450 4.2.1 busy') =>
  ({
    kind: 'attempted',
    request: { destination },
    attempts: outcomes.map((outcome, n) => ({ at: n, outcome, status: { status: '4.2.1', reason: reply, reply, stage: 'rcpt' } })),
  }) as unknown as QueueEvent

function start() {
  const clock = new VirtualClock()
  const meter = new Meter(clock)
  const pass = (time: number) => {
    clock.after(time, () => undefined)
    clock.runNext()
  }
  return { meter, pass }
}

test('rates are averages over 10 seconds and 5 minutes of intervals that have ended', () => {
  const { meter, pass } = start()
  for (let n = 0; n < 600; n++) {
    if (n < 590) meter.listen(accepted(n < 300 ? 4 : 2), 0)
    meter.listen(attempted(['delivered', 'deferred', 'deferred']), 0)
    pass(seconds(1))
  }
  const { last10s, last5min } = meter.rates()
  expect(last10s).toEqual({ ...NO_TRAFFIC, accepted: 0, delivered: 1, deferred: 2 })
  expect(last5min).toMatchObject({ delivered: 1, deferred: 2 })
  expect(last5min.accepted).toBeCloseTo((2 * 289) / 299, 5)
})

test('a meter that runs for a shorter time is an average over this time', () => {
  const { meter, pass } = start()
  meter.listen(accepted(8), 0)
  pass(seconds(4))
  expect(meter.rates().last10s.accepted).toBe(2)
})

test('rings forget what is older than they are, also after a pause', () => {
  const { meter, pass } = start()
  meter.listen(accepted(7), 0)
  pass(minutes(1))
  expect(meter.series('second').reduce((sum, one) => sum + one.accepted, 0)).toBe(7)
  pass(minutes(19))
  expect(meter.series('second').every((one) => one.accepted === 0)).toBe(true)
  expect(meter.series('tenSeconds').reduce((sum, one) => sum + one.accepted, 0)).toBe(7)
  expect([meter.series('second').length, meter.series('tenSeconds').length, meter.series('fiveMinutes').length]).toEqual([299, 359, 575])
})

test('requeued mail is not accepted again, and an expired attempt is counted once', () => {
  const { meter, pass } = start()
  meter.listen({ ...accepted(3), originalId: 'ABC' } as QueueEvent, 0)
  meter.listen(attempted(['expired']), 0)
  meter.listen({ kind: 'expired', recipients: [1] } as unknown as QueueEvent, 0)
  pass(seconds(1))
  expect(meter.rates().last10s).toEqual({ ...NO_TRAFFIC, expired: 1 })
})

test('the last outcomes of a destination, with their causes', () => {
  const last = new LastOutcomes()
  for (let n = 0; n < OUTCOMES_KEPT; n++) last.listen(attempted(['delivered']), 0)
  last.listen(attempted(['deferred'], 'far.example', '450 4.2.1 busy 1'), 0)
  last.listen(attempted(['deferred', 'bounced'], 'far.example', '450 4.2.1 busy 2'), 0)
  const { outcomes, causes } = last.of('far.example')
  expect(outcomes).toHaveLength(OUTCOMES_KEPT)
  expect(outcomes.slice(-4)).toEqual(['delivered', 'deferred', 'deferred', 'bounced'])
  expect(causes).toEqual([{ cause: '450 4.2.1 busy {n}', attempts: 3 }])
  expect(last.of('else.example')).toEqual({ outcomes: [], causes: [], windows: [] })
})

test('the last windows of a destination', () => {
  const last = new LastOutcomes()
  const change = (window: number): QueueEvent => ({ kind: 'window', destination: 'far.example', window, inFlight: 1, feedback: 'positive' })
  for (let n = 1; n <= 2 * WINDOWS_KEPT + 5; n++) last.listen(change(n), 0)
  const { windows } = last.of('far.example')
  expect(windows).toHaveLength(WINDOWS_KEPT)
  expect(windows.at(-1)).toBe(2 * WINDOWS_KEPT + 5)
})

test('destinations that were attempted last are kept', () => {
  const last = new LastOutcomes()
  for (let n = 0; n <= DESTINATIONS_KEPT; n++) last.listen(attempted(['delivered'], `d${n}.example`), 0)
  expect(last.of('d0.example').outcomes).toEqual([])
  expect(last.of('d1.example').outcomes).toEqual(['delivered'])
})
