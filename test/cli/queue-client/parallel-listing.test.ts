/** Listings by several threads, as for hundreds of thousands of messages; here for fewer. */
import type { OpenedReader } from '../../../src/cli/shell/shell.ts'
import { realClock } from '../../support/real-clock.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { listingInThreads } from '../../../src/cli/queue-client/parallel-listing.ts'
import { partsOf, type ListingOrder, type ListingPart } from '../../../src/cli/queue-client/listing-parts.ts'
import { minutes } from '../../../src/system/clock.ts'
import type { QueueReader } from '../../../src/store/queue-reader.ts'
import { ANY_MESSAGE } from '../../../src/store/message-conditions.ts'
import { openQueueReader } from '../../../src/store/sqlite/reading/sqlite-reader.ts'
import { fillBacklog } from '../../support/backlog.ts'
import { NOW, Operator } from '../../support/operator.ts'

const MESSAGES = 10_500

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
afterAll(async () => {
  await reader.close()
  operator.leave()
})

const ALL: ListingOrder = { filter: ANY_MESSAGE, now: NOW, form: { kind: 'tsv' } }

const opened = (): OpenedReader => ({ reader, clock: realClock })

async function linesOf(
  parts: Iterable<ListingPart> | AsyncIterable<ListingPart>,
): Promise<{ readonly count: number; readonly text: string }> {
  let [count, text] = [0, '']
  for await (const part of parts) {
    count += part.count
    text += Buffer.from(part.lines).toString()
  }
  return { count, text }
}

test.each<[string, ListingOrder, number]>([
  ['all', ALL, MESSAGES],
  ['as JSON', { ...ALL, form: { kind: 'json' } }, MESSAGES],
  ['as a table', { ...ALL, form: { kind: 'table', display: { width: 120, coloured: true }, wide: false, hasClasses: false } }, MESSAGES],
  ['through a filter', { ...ALL, form: { kind: 'json' }, filter: { ...ANY_MESSAGE, destination: 'd3.example' } }, MESSAGES / 7],
  ['through a filter that nothing passes', { ...ALL, filter: { ...ANY_MESSAGE, sender: 'nobody@us.example' } }, 0],
])('%s: the same lines in the same order as with one thread', async (_, order, count) => {
  const inThreads = await linesOf(listingInThreads(opened(), operator.directory, order))
  const alone = await linesOf(partsOf(opened(), order))
  expect([inThreads.count, alone.count]).toEqual([count, count])
  expect(inThreads.text === alone.text).toBe(true)
  expect(inThreads.text.split('\n')).toHaveLength(count + 1)
})

test('when the reader stops, the workers end', async () => {
  let parts = 0
  for await (const _ of listingInThreads(opened(), operator.directory, ALL)) if (++parts === 2) break
  expect(parts).toBe(2)
})

test('a worker that cannot open the queue is reported', async () => {
  await expect(linesOf(listingInThreads(opened(), `${operator.directory}/nowhere`, ALL))).rejects.toThrow('there is no queue in')
})

test('on a terminal: one heading, and a count at the end', async () => {
  const { out } = await operator.run(['queue', 'list'], { columns: 120 })
  const lines = out.trimEnd().split('\n')
  expect(lines).toHaveLength(MESSAGES + 2)
  expect([lines[0]?.slice(0, 8), lines.at(-1)]).toEqual(['QUEUE ID', '10,500 messages'])
})

test('a command stops when its output is closed', async () => {
  const { code, out } = await operator.run(['queue', 'list', '--json'], { breaksAfter: 100_000 })
  expect(code).toBe(0)
  expect(out.split('\n').length).toBeLessThan(2_000)
})
