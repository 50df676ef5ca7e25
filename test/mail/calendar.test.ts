import fc from 'fast-check'
import { expect, test } from 'vitest'
import { calendar } from '../../src/mail/calendar.ts'

test('every instant has the date that the machine’s own calendar gives it', () => {
  fc.assert(
    fc.property(fc.integer({ min: -60_000_000_000_000, max: 250_000_000_000_000 }), (at) => {
      const date = new Date(at)
      expect(calendar(at)).toEqual({
        year: date.getUTCFullYear(),
        month: date.getUTCMonth() + 1,
        day: date.getUTCDate(),
        hour: date.getUTCHours(),
        minute: date.getUTCMinutes(),
        second: date.getUTCSeconds(),
        millisecond: date.getUTCMilliseconds(),
        weekday: date.getUTCDay(),
      })
    }),
    { examples: [[0], [-1], [951_782_399_999], [951_782_400_000], [1_709_164_800_000], [4_107_542_400_000]], numRuns: 1000 },
  )
})

test('a zone moves the date', () => {
  expect(calendar(Date.UTC(2026, 11, 31, 23, 30), 60)).toMatchObject({ year: 2027, month: 1, day: 1, hour: 0, minute: 30, weekday: 5 })
  expect(calendar(Date.UTC(2026, 0, 1), -210)).toMatchObject({ year: 2025, month: 12, day: 31, hour: 20, minute: 30 })
})
