/** Listings so long that several threads make them. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { minutes } from '../../src/mail/clock.ts'
import { fillBacklog } from '../support/backlog.ts'
import { NOW, Operator } from '../support/operator.ts'

const MESSAGES = 21_000
/** With a limit one thread does. */
const ALONE = ['--limit', String(2 * MESSAGES)]

const operator = new Operator()
beforeAll(async () => {
  await operator.own((store) =>
    fillBacklog(store, {
      messages: MESSAGES,
      bytes: 10,
      now: NOW - minutes(60),
      destinationOf: (n) => `d${n % 7}.example`,
      dueIn: (n) => minutes(90) + n,
    }),
  )
})
afterAll(() => operator.leave())

test.each<[string, readonly string[], number]>([
  ['all', [], MESSAGES],
  ['as JSON', ['--json'], MESSAGES],
  ['through a filter', ['--destination', 'd3.example', '--json'], MESSAGES / 7],
  ['through a filter that nothing passes', ['--sender', 'nobody@us.example'], 0],
])('%s: the same lines in the same order as one thread makes', async (_, options, count) => {
  const list = await operator.says('queue', 'list', ...options)
  expect(list === (await operator.says('queue', 'list', ...options, ...ALONE))).toBe(true)
  expect(list.split('\n')).toHaveLength(count + 1)
})

test('on a terminal: one heading, and a count at the end', async () => {
  const { out } = await operator.run(['queue', 'list'], { columns: 120 })
  const lines = out.trimEnd().split('\n')
  expect(lines).toHaveLength(MESSAGES + 2)
  expect([lines[0]?.slice(0, 8), lines.at(-1)]).toEqual(['QUEUE ID', '21,000 messages'])
})

test('when nobody reads on, it stops', async () => {
  const { code, out } = await operator.run(['queue', 'list', '--json'], { breaksAfter: 100_000 })
  expect(code).toBe(0)
  expect(out.split('\n').length).toBeLessThan(2_000)
})
