import { runInNewContext } from 'node:vm'
import Database from 'better-sqlite3'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ANY_EVENT, eventSelector, type EventFilter } from '../../src/events/event-filter.ts'
import { EVENTS } from '../../src/events/event-types.ts'
import { likePattern, matchesPattern, partPattern } from '../../src/patterns/filter-pattern.ts'
import { HOSTILE_CASES, isMatch, patternCase } from '../support/pattern-cases.ts'

const statement = new Database(':memory:').prepare<[string, string], number>(`select ? like ? escape '\\'`).pluck()
const isLike = (text: string, pattern: string): boolean => statement.get(text, likePattern(pattern)) === 1

/** Whether an event of a sender is selected. */
const selects = (filter: Partial<EventFilter>, sender: string): boolean => {
  const data = EVENTS['recipient.bounced'].members.map((name) => (name === 'sender' ? sender : null))
  return eventSelector({ ...ANY_EVENT, ...filter })({ type: 'recipient.bounced', data: JSON.stringify(data) })
}

test('the matcher, SQLite and the filter of events agree with the definition of a match', () => {
  const counts = { true: 0, false: 0 }
  fc.assert(
    fc.property(patternCase, ({ pattern, text }) => {
      const expected = isMatch({ pattern, text })
      counts[`${expected}`]++
      const found = [matchesPattern(pattern, text), isLike(text, pattern), selects({ senders: [pattern] }, text)]
      expect(found).toEqual([expected, expected, expected])
    }),
    { numRuns: 2_000 },
  )
  expect(Math.min(counts.true, counts.false)).toBeGreaterThan(200)
})

/** Runs a function with a time limit in ms, which also ends a regular expression that does not return. */
const within = <T>(limit: number, run: () => T): T => runInNewContext('run()', { run }, { timeout: limit }) as T

test('any number of stars is matched in a time that does not depend on the ways to match', () => {
  for (const { pattern, text } of HOSTILE_CASES) {
    // About 5 ms.
    const found = within(2_000, () => [
      matchesPattern(pattern, text),
      matchesPattern(`${pattern}*`, `${text}ab~`),
      selects({ senders: ['app@*', pattern] }, text),
      selects({ types: [pattern] }, text),
    ])
    expect(found).toEqual([false, true, false, false])
  }
})

test('LIKE of SQLite takes any number of stars', () => {
  for (const { pattern, text } of HOSTILE_CASES) expect([isLike(text, pattern), isLike(`${text}ab~`, `${pattern}*`)]).toEqual([false, true])
})

test('a part of a text is found anywhere in it, a pattern is one of the whole text', () => {
  const finds = (part: string, text: string) => matchesPattern(partPattern(part), text)
  expect([finds('busy', '450 too BUSY now'), finds('busy*', '450 too busy now'), finds('450*busy*', '450 too busy')]).toEqual([
    true,
    false,
    true,
  ])
})
