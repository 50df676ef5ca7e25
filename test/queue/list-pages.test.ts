import { expect, test } from 'vitest'
import { pages } from '../../src/queue/list-pages.ts'
import { openMemoryStore } from '../../src/store/memory/memory-store.ts'
import type { ListPage, QueueReader } from '../../src/store/queue-reader.ts'
import { ANY_MESSAGE } from '../../src/store/message-conditions.ts'
import { mail, queue } from '../conformance/mail.ts'

/** A queue with seven messages, whose reader notes the pages that are asked for. */
async function sevenMessages() {
  const { store, reader } = openMemoryStore()
  const ids: number[] = []
  for (let n = 0; n < 7; n++) ids.push(await queue(store))
  const asked: ListPage[] = []
  const state = { fails: false }
  const list: QueueReader['list'] = (filter, page) => {
    asked.push(page)
    return state.fails ? Promise.reject(new Error('the database is away')) : reader.list(filter, page)
  }
  return { ids, asked, state, reader: { ...reader, list } }
}

test('the next page of mail with a condition is read while the caller handles one', async () => {
  const { ids, asked, reader } = await sevenMessages()
  const seen: number[] = []
  const ahead: number[] = []
  for await (const page of pages(reader, { filter: { ...ANY_MESSAGE, sender: '*' }, size: 3 })) {
    seen.push(...page.map(({ message }) => message.id))
    ahead.push(asked.length)
  }
  expect(seen).toEqual(ids)
  expect(ahead).toEqual([2, 3, 3])
})

test('the next page of all mail is asked for before one has arrived', async () => {
  const { ids, asked, reader } = await sevenMessages()
  const first = Promise.withResolvers<void>()
  const list: QueueReader['list'] = async (filter, page) => {
    const listed = reader.list(filter, page)
    if (asked.length === 1) await first.promise
    else first.resolve()
    return listed
  }
  const seen: number[][] = []
  for await (const page of pages({ ...reader, list }, { filter: ANY_MESSAGE, size: 3 })) seen.push(page.map(({ message }) => message.id))
  expect(seen).toEqual([ids.slice(0, 3), ids.slice(3, 6), ids.slice(6)])
  expect(asked).toEqual(
    [ids.slice(0, 3), ids.slice(3, 6), ids.slice(6)].map((page) => ({ after: page[0]! - 1, through: page.at(-1), limit: 4 })),
  )
})

test('messages with lower ids that arrive in a range after it was found are listed', async () => {
  const { store, reader } = openMemoryStore()
  const ids = Array.from({ length: 9 }, () => store.nextId())
  const enter = (id: number) => store.enqueue(mail({ nextId: () => id }))
  const [early, late] = [ids.filter((_, n) => n % 2 === 0), ids.filter((_, n) => n % 2 === 1)]
  for (const id of early) await enter(id)
  const sliceEnd: QueueReader['sliceEnd'] = async (after, size) => {
    const end = await reader.sliceEnd(after, size)
    for (const id of late) if (id > after && id < (end ?? 0)) await enter(id)
    return end
  }
  const seen: number[] = []
  for await (const page of pages({ ...reader, sliceEnd }, { filter: ANY_MESSAGE, size: 2 }))
    seen.push(...page.map(({ message }) => message.id))
  expect(seen).toEqual(ids)
})

test('all mail of a range of ids is listed', async () => {
  const { ids, reader } = await sevenMessages()
  const seen: number[] = []
  for await (const page of pages(reader, { filter: ANY_MESSAGE, size: 2, after: ids[0], through: ids[4] }))
    seen.push(...page.map(({ message }) => message.id))
  expect(seen).toEqual(ids.slice(1, 5))
})

test.each([
  [0, 0],
  [2, 1],
  [3, 1],
  [5, 2],
  [7, 3],
])('of %i messages at most, no more are asked for', async (limit, requests) => {
  const { ids, asked, reader } = await sevenMessages()
  const seen: number[] = []
  for await (const page of pages(reader, { filter: ANY_MESSAGE, size: 3, limit })) seen.push(...page.map(({ message }) => message.id))
  expect(seen).toEqual(ids.slice(0, limit))
  expect(asked).toHaveLength(requests)
})

test('a failure is reported with the page that it concerns, and to no caller that has stopped', async () => {
  const { state, reader } = await sevenMessages()
  const listing = pages(reader, { filter: ANY_MESSAGE, size: 3 })
  state.fails = true
  await expect(listing.next()).rejects.toThrow('the database is away')
  state.fails = false
  for await (const page of pages(reader, { filter: ANY_MESSAGE, size: 3 })) {
    expect(page).toHaveLength(3)
    state.fails = true
    break
  }
})
