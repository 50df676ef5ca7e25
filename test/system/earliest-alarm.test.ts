import { expect, test } from 'vitest'
import { SECOND, type QueueTime } from '../../src/system/clock.ts'
import { EarliestAlarm } from '../../src/system/earliest-alarm.ts'
import { VirtualClock } from '../../src/testkit/virtual/virtual-clock.ts'

/** An alarm on a clock that starts at 0, and the instants at which it rang. */
function alarmAtZero() {
  const clock = new VirtualClock({ startsAt: 0 })
  const rang: QueueTime[] = []
  const alarm = new EarliestAlarm(clock, () => rang.push(clock.now()))
  const run = () => {
    while (clock.runNext());
    return rang
  }
  return { clock, alarm, rang, run }
}

test('rings once, at the earliest of the instants asked for, in whatever order they were', () => {
  const { clock, alarm, run } = alarmAtZero()
  for (const at of [5, 3, 9, 3]) alarm.expect(at * SECOND)
  expect(clock.pending).toBe(1)
  expect(run()).toEqual([3 * SECOND])
})

test('asks nothing of the clock for a later instant', () => {
  const { clock, alarm } = alarmAtZero()
  alarm.expect(3)
  clock.runNext()
  alarm.expect(7)
  alarm.expect(8)
  expect(clock.nextAt()).toBe(7)
  expect(clock.pending).toBe(1)
})

test('can be set anew from within its own call', () => {
  const clock = new VirtualClock({ startsAt: 0 })
  const rang: QueueTime[] = []
  const alarm = new EarliestAlarm(clock, () => {
    rang.push(clock.now())
    if (rang.length < 3) alarm.expect(clock.now() + 10)
  })
  alarm.expect(10)
  while (clock.runNext());
  expect(rang).toEqual([10, 20, 30])
})

test('is moved to a later instant, or cancelled, by a replacement', () => {
  const { clock, alarm, run } = alarmAtZero()
  alarm.expect(3)
  alarm.replace(8)
  expect(run()).toEqual([8])
  alarm.expect(10)
  alarm.replace(null)
  expect(clock.pending).toBe(0)
})

test('is silent after a stop', () => {
  const { clock, alarm } = alarmAtZero()
  alarm.expect(3)
  alarm.stop()
  alarm.expect(4)
  alarm.replace(5)
  expect(clock.pending).toBe(0)
})
