import { describe, expect, test } from 'vitest'
import { byteSize, clipped, clippedWords, ctime, grouped, localTime, plural, rate, relative, span } from '../../src/presentation/text.ts'
import { DAY, HOUR, MINUTE, SECOND } from '../../src/system/clock.ts'
import { VirtualClock } from '../../src/testkit/virtual/virtual-clock.ts'

const AT = Date.UTC(2026, 10, 5, 23, 30, 7)

test('times are local', () => {
  const clock = new VirtualClock({ zone: () => ({ offset: 60, name: 'CET' }) })
  expect(localTime(AT, clock)).toBe('2026-11-06 00:30:07')
  expect(ctime(AT, clock)).toBe('Fri Nov  6 00:30:07')
})

describe('durations', () => {
  test.each([
    [0, '0s'],
    [499, '0s'],
    [45 * SECOND, '45s'],
    [3 * HOUR + 12 * MINUTE + 30 * SECOND, '3h 12m'],
    [2 * DAY, '2d'],
    [2 * DAY + MINUTE, '2d'],
    [-SECOND, '0s'],
  ])('%i ms: %s', (duration, text) => expect(span(duration)).toBe(text))

  test.each([
    [12 * MINUTE, 'in 12m'],
    [-3 * HOUR - 5 * MINUTE, '3h 5m ago'],
    [400, 'now'],
  ])('%i ms from now: %s', (duration, text) => expect(relative(AT + duration, AT)).toBe(text))
})

test.each([
  [0, '0'],
  [0.04, '<0.1'],
  [0.05, '0.1'],
  [9.94, '9.9'],
  [9.95, '10'],
  [1_203.6, '1,204'],
])('%f per second: %s', (perSecond, text) => expect(rate(perSecond)).toBe(text))

test.each([
  [0, '0 B'],
  [999, '999 B'],
  [1000, '1.0 kB'],
  [9_949, '9.9 kB'],
  [9_950, '10 kB'],
  [999_499, '999 kB'],
  [999_500, '1.0 MB'],
  [12_345_678_901_234, '12 TB'],
])('%i bytes: %s', (bytes, text) => expect(byteSize(bytes)).toBe(text))

test.each([
  [0, '0 messages'],
  [1, '1 message'],
  [1_234_567, '1,234,567 messages'],
])('%i: %s', (count, text) => {
  expect(plural(count, 'message')).toBe(text)
  expect(text.startsWith(grouped(count))).toBe(true)
})

test.each([
  ['abc', 3, 'abc'],
  ['abcd', 3, 'ab…'],
  ['abcd', 1, '…'],
  ['abcd', 0, '…'],
])('%j in %i columns: %j', (text, width, cut) => expect(clipped(text, width)).toBe(cut))

test.each([
  ['450 4.2.1 busy, try later', 25, '450 4.2.1 busy, try later'],
  ['450 4.2.1 busy, try later', 24, '450 4.2.1 busy, try …'],
  ['450 4.2.1 busy, try later', 20, '450 4.2.1 busy …'],
  ['one two', 6, 'one …'],
  ['one two', 5, 'one …'],
  [`450 ${'x'.repeat(40)}`, 20, `450 ${'x'.repeat(15)}…`],
  ['abcd', 3, 'ab…'],
])('%j in %i characters ends with a whole word: %j', (text, width, cut) => {
  expect(clippedWords(text, width)).toBe(cut)
  expect(clippedWords(text, width).length).toBeLessThanOrEqual(width)
})
