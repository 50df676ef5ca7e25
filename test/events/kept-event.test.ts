import { expect, test } from 'vitest'
import { eventTime } from '../../src/events/kept-event.ts'

test('an event has one time for all processes whose clocks differ by less than a second, and that of a wall clock that was set', () => {
  expect([-400, -3, 0, 12, 499].map((offset) => eventTime(1_767_225_600_123, offset))).toEqual(Array(5).fill(1_767_225_600_123))
  expect([3_600_020, 3_599_990].map((offset) => eventTime(1_767_225_600_123, offset))).toEqual(Array(2).fill(1_767_222_000_123))
})
