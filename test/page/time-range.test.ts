/** Ranges of times in forms are read in the zone that the page shows. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { instantIn, timeRangeIn } from '../../src/page/markup/time-range.ts'
import { zoneClock } from '../../src/page/shown-zone.ts'
import { localTime } from '../../src/presentation/text.ts'

const clockOf = (zone: string) => zoneClock({ zone: () => ({ offset: 0, name: 'UTC' }) }, zone)
const berlin = { clock: clockOf('Europe/Berlin') }
const at = (text: string): number => Date.parse(text)

test('the time that the page shows is the time of its instant, in any zone', () => {
  const zones = ['UTC', 'Europe/Berlin', 'Asia/Kolkata', 'America/St_Johns', 'Pacific/Auckland'].map((name) => ({ clock: clockOf(name) }))
  fc.assert(
    fc.property(fc.constantFrom(...zones), fc.integer({ min: 0, max: 4_000_000 }), (view, quarter) => {
      const shown = localTime(quarter * 900_000, view.clock)
      const read = instantIn(shown.replace(' ', 'T').slice(0, 16), view) ?? Number.NaN
      expect(localTime(read, view.clock)).toBe(shown)
    }),
  )
})

test('a time is local, with seconds or without, or an instant of the API', () => {
  expect(instantIn('2026-11-28T14:00', berlin)).toBe(at('2026-11-28T13:00:00Z'))
  expect(instantIn('2026-07-28 14:00:05', berlin)).toBe(at('2026-07-28T12:00:05Z'))
  expect(instantIn('2026-11-28T14:00:00Z', berlin)).toBe(at('2026-11-28T14:00:00Z'))
  expect(instantIn('1764338400', berlin)).toBe(1_764_338_400_000)
  for (const text of ['yesterday', '2026-02-30T10:00', '2026-11-28T24:00', '2h', '-1']) expect(instantIn(text, berlin)).toBeUndefined()
})

test('a time that a change of the clocks repeats is the later one, and one that it skips is near', () => {
  expect(instantIn('2026-10-25T02:30', berlin)).toBe(at('2026-10-25T01:30:00Z'))
  expect(Math.abs((instantIn('2026-03-29T02:30', berlin) ?? 0) - at('2026-03-29T01:00:00Z'))).toBeLessThanOrEqual(1_800_000)
})

test('a range has a begin before its end, and either may be absent', () => {
  expect(timeRangeIn({ after: '', before: '' }, berlin)).toEqual({ after: undefined, before: undefined })
  expect(timeRangeIn({ after: '', before: '2026-11-28T14:00' }, berlin)).toEqual({ after: undefined, before: at('2026-11-28T13:00:00Z') })
  expect(timeRangeIn({ after: 'x', before: '' }, berlin)).toContain('expected a time')
  expect(timeRangeIn({ after: '2026-11-28T14:00', before: '2026-11-28T14:00' }, berlin)).toContain('begin before the end')
})
