/** Listings that several threads make, as they do for hundreds of thousands of messages; here for fewer. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { listingInThreads } from '../../src/cli/listing-threads.ts'
import { sharesOf, type ListingOrder, type Share } from '../../src/cli/listing.ts'
import { minutes } from '../../src/mail/clock.ts'
import type { QueueReader } from '../../src/queue/reader.ts'
import { openQueueReader } from '../../src/queue/sqlite/queue-reader.ts'
import { fillBacklog } from '../support/backlog.ts'
import { NOW, Operator } from '../support/operator.ts'

const MESSAGES = 24_500

const operator = new Operator()
let reader: QueueReader
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
  reader = openQueueReader(operator.directory)
})
afterAll(() => {
  reader.close()
  operator.leave()
})

const ALL: ListingOrder = { filter: {}, now: NOW, json: false, columns: null }

async function linesOf(shares: Iterable<Share> | AsyncIterable<Share>): Promise<{ readonly count: number; readonly text: string }> {
  let [count, text] = [0, '']
  for await (const share of shares) {
    count += share.count
    text += Buffer.from(share.lines).toString()
  }
  return { count, text }
}

test.each<[string, ListingOrder, number]>([
  ['all', ALL, MESSAGES],
  ['as JSON', { ...ALL, json: true }, MESSAGES],
  ['in columns', { ...ALL, columns: 120 }, MESSAGES],
  ['through a filter', { ...ALL, json: true, filter: { destination: 'd3.example' } }, MESSAGES / 7],
  ['through a filter that nothing passes', { ...ALL, filter: { sender: 'nobody@us.example' } }, 0],
])('%s: the same lines in the same order as one thread makes', async (_, order, count) => {
  const inThreads = await linesOf(listingInThreads(reader, operator.directory, order))
  const alone = await linesOf(sharesOf(reader, order))
  expect([inThreads.count, alone.count]).toEqual([count, count])
  expect(inThreads.text === alone.text).toBe(true)
  expect(inThreads.text.split('\n')).toHaveLength(count + 1)
})

test('when nobody reads on, the threads end', async () => {
  let shares = 0
  for await (const _ of listingInThreads(reader, operator.directory, ALL)) if (++shares === 2) break
  expect(shares).toBe(2)
})

test('a thread that cannot open the queue is heard of', async () => {
  await expect(linesOf(listingInThreads(reader, `${operator.directory}/nowhere`, ALL))).rejects.toThrow('there is no queue in')
})

test('on a terminal: one heading, and a count at the end', async () => {
  const { out } = await operator.run(['queue', 'list'], { columns: 120 })
  const lines = out.trimEnd().split('\n')
  expect(lines).toHaveLength(MESSAGES + 2)
  expect([lines[0]?.slice(0, 8), lines.at(-1)]).toEqual(['QUEUE ID', '24,500 messages'])
})

test('a command whose output nobody reads on stops', async () => {
  const { code, out } = await operator.run(['queue', 'list', '--json'], { breaksAfter: 100_000 })
  expect(code).toBe(0)
  expect(out.split('\n').length).toBeLessThan(2_000)
})
