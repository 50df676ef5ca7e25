import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { DAY, HOUR, MINUTE, SECOND } from '../../src/system/clock.ts'
import { formatDuration, largestUnits, parseDuration, parseExactDuration } from '../../src/system/duration.ts'

describe('parsing', () => {
  test.each([
    ['300', 300 * SECOND],
    ['0', 0],
    ['1.5', 1_500],
    ['300s', 300 * SECOND],
    [' 5 m ', 5 * MINUTE],
    ['1.5h', 90 * MINUTE],
    ['1h30m', 90 * MINUTE],
    ['1h 30m', 90 * MINUTE],
    ['2d', 2 * DAY],
    ['1w', 7 * DAY],
    ['250ms', 250],
    ['2500us', 2.5],
    ['2500µs', 2.5],
  ])('"%s" is %d ms', (text, expected) => {
    expect(parseExactDuration(text)).toBe(expected)
    expect(parseDuration(text)).toBe(Math.round(expected))
  })

  test.each(['', ' ', '-5s', '5x', '5 minutes', 's', '1e3', '1,5h', '5m 3', '3 5m', 'Infinity', '0x10', '.5h', '5.h'])(
    '"%s" is no duration',
    (text) => {
      expect(parseExactDuration(text)).toBeUndefined()
      expect(parseDuration(text)).toBeUndefined()
    },
  )
})

test('a duration beyond the numbers that are exact is no duration', () => {
  expect(parseDuration('9007199254740991ms')).toBe(Number.MAX_SAFE_INTEGER)
  expect(parseDuration('9007199254740992ms')).toBeUndefined()
  expect(parseDuration('99999999999999999999d')).toBeUndefined()
})

describe('exact text', () => {
  test.each([
    [0, '0s'],
    [0.5, '500us'],
    [250, '250ms'],
    [1_500, '1500ms'],
    [90 * SECOND, '90s'],
    [300 * SECOND, '5m'],
    [4_000 * SECOND, '4000s'],
    [36 * HOUR, '36h'],
    [14 * DAY, '14d'],
  ])('%d ms is "%s"', (duration, text) => {
    expect(formatDuration(duration)).toBe(text)
  })

  test('is read as the same duration', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.nat(10 * DAY),
          fc.nat(DAY).map((micros) => micros / 1000),
        ),
        (duration) => {
          expect(parseExactDuration(formatDuration(duration))).toBe(duration)
        },
      ),
    )
  })
})

describe('the largest units', () => {
  const inWords = (duration: number, count?: number) => largestUnits(duration, count).map(({ figure, unit }) => `${figure} ${unit}`)

  test('are two, or as many as asked for', () => {
    expect(inWords(3 * HOUR + 12 * MINUTE + 5 * SECOND)).toEqual(['3 hour', '12 minute'])
    expect(inWords(3 * HOUR + 12 * MINUTE + 5 * SECOND, 1)).toEqual(['3 hour'])
  })

  test('end before a unit that is 0', () => {
    expect(inWords(DAY + 5 * MINUTE)).toEqual(['1 day'])
  })

  test('are of the duration rounded to seconds', () => {
    expect(inWords(HOUR - 1)).toEqual(['1 hour'])
    expect(inWords(499)).toEqual([])
    expect(inWords(-5 * SECOND)).toEqual([])
  })
})
