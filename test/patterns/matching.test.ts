import { afterEach, expect, test } from 'vitest'
import { lookUpAtOnce, Matching, MatchTooLong } from '../../src/patterns/matching.ts'
import { PatternTable } from '../../src/patterns/pattern-table.ts'
import { systemClock } from '../../src/system/system-clock.ts'
import { VirtualClock } from '../../src/testkit/virtual/virtual-clock.ts'

/** A pattern that needs seconds for a long text, in each engine that has no memory of its states. */
const SLOW = '/(a?){500}a{500}z|^(a?){900}\\bq/ found'
const LONG = `${'a'.repeat(100_000)} z`

const tableOf = (...lines: readonly string[]) =>
  new PatternTable(
    'pcre',
    lines.map((text) => ({ where: 'test', text })),
    { substitutes: true },
  )

let matching: Matching

afterEach(() => matching.close())

test('a short match is made at once, a long one in a thread', async () => {
  matching = new Matching(new VirtualClock())
  const table = tableOf('/^(a+)+$/ only a', '/(a*) z$/ $1')
  expect(matching.run(table.lookUp('aaa'))).toBe('only a')
  const long = matching.run(table.lookUp(LONG))
  expect(long).toBeInstanceOf(Promise)
  expect(matching.inFlight).toBe(1)
  expect(await long).toBe('a'.repeat(100_000))
  expect(matching.inFlight).toBe(0)
})

test('a match that exceeds its time fails, and the next one is made', async () => {
  const clock = new VirtualClock()
  matching = new Matching(clock)
  const [slow, next] = [matching.run(tableOf(SLOW).lookUp(LONG)), matching.run(tableOf('/ z$/ end').lookUp(LONG))]
  // The time limit runs from the moment when the thread is ready.
  await expect.poll(() => clock.pending, { interval: 5, timeout: 60_000 }).toBe(1)
  clock.runNext()
  await expect(slow).rejects.toThrow(MatchTooLong)
  expect(await next).toBe('end')
})

test('virtual time does not count for the limit', async () => {
  matching = new Matching(new VirtualClock())
  expect(await matching.run(tableOf('/^(a?){300}\\bz/ x', '/z$/ end').lookUp(LONG))).toBe('end')
})

test('many short matches let the event loop have turns', async () => {
  matching = new Matching(systemClock)
  const table = tableOf(...Array.from({ length: 2000 }, (_, n) => `/x${n}y$/ ${n}`), '/a/ a')
  let turns = 0
  const count = (): void => void (turns++, (next = setImmediate(count)))
  let next = setImmediate(count)
  expect(await matching.run(table.lookUp('a'.repeat(500)))).toBe('a')
  clearImmediate(next)
  expect(turns).toBeGreaterThan(5)
})

test('a lookup of an address is made at once, and fails when it would take long', () => {
  matching = new Matching(systemClock)
  expect(lookUpAtOnce(tableOf('/^(.*)@a\\.test$/ $1@b.test').lookUp('ann@a.test'))).toBe('ann@b.test')
  expect(() => lookUpAtOnce(tableOf(SLOW).lookUp(LONG))).toThrow(MatchTooLong)
})
