import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { MINUTE, SECOND, type Duration } from '../../../src/system/clock.ts'
import type { Fault, Observation } from '../../../src/testkit/record/observation.ts'
import { recordedRules } from '../../../src/testkit/record/recorded-rules.ts'
import { readScript } from '../../../src/testkit/remote/script.ts'

const START = 1_000_000

const seen = (at: Duration, recipient: string, fault: Fault | null): Observation => ({
  stage: 'rcpt',
  at: START + at,
  sender: 's1@d1.example',
  recipient,
  fault,
  content: null,
})

const rulesOf = (observations: readonly Observation[], maxGap = 5 * MINUTE) => recordedRules(observations, maxGap).map(({ rule }) => rule)

const BUSY = { reply: '450 4.2.1 busy' }

test('a refusal until 12 minutes after the start lasts until then', () => {
  const observations = [0, 5 * MINUTE, 10 * MINUTE].map((at) => seen(at, 'r1', BUSY))
  expect(rulesOf([...observations, seen(12 * MINUTE + 300, 'r1', null)])).toEqual([{ at: 'rcpt', recipient: 'r1', ...BUSY, until: '12m' }])
})

test('a failure that ends at an unknown time ends after the longest gap, and one that does not end has no end', () => {
  expect(rulesOf([seen(0, 'r1', BUSY), seen(180 * MINUTE, 'r1', null)])).toEqual([{ at: 'rcpt', recipient: 'r1', ...BUSY, until: '5m' }])
  expect(rulesOf([seen(0, 'r1', null), seen(180 * MINUTE, 'r1', BUSY)])).toEqual([{ at: 'rcpt', recipient: 'r1', ...BUSY, from: '3h' }])
})

test('an outage for all recipients is one rule', () => {
  const observations = [
    ...['r1', 'r2', 'r3'].map((to, n) => seen(n * 100, to, BUSY)),
    ...['r1', 'r2', 'r3'].map((to, n) => seen(5 * MINUTE + n * 100, to, null)),
  ]
  expect(rulesOf(observations)).toEqual([{ at: 'rcpt', ...BUSY, until: '5m' }])
})

test('outcomes that follow each other at once are counted, each rule among the occasions that the others have left', () => {
  const refused = { reply: '550 5.1.1 no' }
  const observations = [BUSY, refused, null, BUSY, refused].map((fault, n) => seen(n * 10, 'r1', fault))
  expect(rulesOf(observations)).toEqual([
    { at: 'rcpt', recipient: 'r1', ...BUSY, nth: [1, 4] },
    { at: 'rcpt', recipient: 'r1', ...refused, nth: [1, 3] },
  ])
  expect(rulesOf([seen(0, 'r1', BUSY), seen(10, 'r1', BUSY), seen(20, 'r1', null)])).toEqual([
    { at: 'rcpt', recipient: 'r1', ...BUSY, first: 2 },
  ])
})

test('replies that differ in numbers are one fault, and its delay is the median', () => {
  const observations = [299, 240, 200].map((left, n) =>
    seen(n * MINUTE, 'r1', { reply: `451 4.7.1 wait ${left} seconds`, delay: (n + 1) * SECOND }),
  )
  expect(rulesOf(observations)).toEqual([{ at: 'rcpt', recipient: 'r1', reply: '451 4.7.1 wait 299 seconds', delay: '2s' }])
})

test('the example of docs/record.md is a script', () => {
  const page = readFileSync(new URL('../../../docs/record.md', import.meta.url), 'utf8')
  const [, example = ''] = /```toml\n([^`]*)```/.exec(page) ?? []
  expect(readScript(example, 'session.toml').rules.map(({ name }) => name)).toEqual(['rcpt-1', 'end-of-data-1'])
})
