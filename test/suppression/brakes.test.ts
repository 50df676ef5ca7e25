import { expect, test } from 'vitest'
import { Brakes } from '../../src/suppression/brakes.ts'
import { HOUR, MINUTE } from '../../src/system/clock.ts'

const T0 = 1_767_225_600_000

test('more than a fifth of at least 20 recipients within an hour is too much', () => {
  const brakes = new Brakes()
  const count = (recipients: number, failed: number, at: number) => brakes.count('far.example', { recipients, failed, at: T0 + at })
  expect(count(19, 19, 0)).toBe(false)
  expect(brakes.isBraked('far.example', T0)).toBe(false)
  expect(count(1, 0, MINUTE)).toBe(true)
  expect(count(1, 1, 2 * MINUTE)).toBe(false)
  expect(brakes.braked(T0 + 2 * MINUTE)).toEqual(['far.example'])
  expect(brakes.isBraked('near.example', T0)).toBe(false)
  expect(brakes.isBraked('far.example', T0 + 2 * HOUR)).toBe(false)
  expect(count(20, 4, 2 * HOUR)).toBe(false)
  expect(count(1, 1, 2 * HOUR)).toBe(true)
  expect(count(1_000, 0, 2 * HOUR)).toBe(false)
})
