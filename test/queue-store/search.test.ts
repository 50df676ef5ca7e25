import { expect, test } from 'vitest'
import type { QueueFilter } from '../../src/queue/reader.ts'
import { searchHere, type FoundMessage, type Search } from '../../src/queue/search.ts'
import { openInlineStore } from '../../src/queue/sqlite/inline-store.ts'
import { searchInThread } from '../../src/queue/sqlite/threaded-search.ts'
import { fillBacklog } from '../support/backlog.ts'
import { folder } from './folders.ts'

const T0 = Date.parse('2026-11-20T10:00:00Z')

/** All that a search finds, page by page. */
async function allOf(search: Search, filter: QueueFilter): Promise<readonly FoundMessage[]> {
  const found: FoundMessage[] = []
  for (;;) {
    const page = await search.find(filter, { after: found.at(-1)?.id ?? 0, limit: 50, now: T0 })
    found.push(...page)
    if (page.length < 50) return found
  }
}

test('a thread finds what the reader finds, in the same order', async () => {
  const directory = folder()
  const { store, reader } = await openInlineStore({ directory })
  await fillBacklog(store, { messages: 500, now: T0, destinationOf: (n) => `d${n % 3}.example`, dueIn: (n) => 60_000 + n })
  const [here, inThread] = [searchHere(reader), searchInThread(directory)]
  for (const filter of [{}, { destination: 'd1.example' }, { sender: 'app7@*' }, { queue: 'hold' as const }]) {
    const found = await allOf(inThread, filter)
    expect(found).toEqual(await allOf(here, filter))
    expect(found.length > 0).toBe(filter.queue === undefined)
  }
  await inThread.end()
  await store.close()
})

test('a search that cannot be made fails, and can be ended all the same', async () => {
  const search = searchInThread(folder())
  const pages = [1, 2].map(() => search.find({}, { after: 0, limit: 1, now: T0 }))
  for (const page of pages) await expect(page).rejects.toThrow('there is no queue')
  await expect(search.find({}, { after: 0, limit: 1, now: T0 })).rejects.toThrow('there is no queue')
  await search.end()
})

test('ended before its failure is known, it ends all the same', async () => {
  const search = searchInThread(folder())
  const page = search.find({}, { after: 0, limit: 1, now: T0 })
  await search.end()
  await expect(page).rejects.toThrow('there is no queue')
})
