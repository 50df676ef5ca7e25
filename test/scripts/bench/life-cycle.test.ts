import { expect, test } from 'vitest'
import { claimTimes, liveThrough, LIVES, queueWaiting } from '../../../scripts/bench/postgres/life-cycle.ts'
import { ANY_MESSAGE } from '../../../src/store/message-conditions.ts'
import { openInlineStore } from '../../../src/store/sqlite/clients/inline-store.ts'

const DESTINATIONS = ['a.example', 'b.example', 'c.example']

test.each(LIVES)('messages that are %s are delivered, all of them once', async (life) => {
  const { store, reader } = await openInlineStore({ memory: true })
  await liveThrough(store, { life, callers: 7, messages: 50, destinations: DESTINATIONS })
  const { messages } = await reader.departed(
    { sender: null, recipient: null, outcome: 'delivered', class: null, status: null, since: null, until: null },
    { before: null, limit: 100 },
  )
  expect(messages.map(({ history }) => history.length)).toEqual(Array.from({ length: 50 }, () => 1))
  expect(await reader.list(ANY_MESSAGE, { after: 0, limit: 1 })).toEqual([])
  await store.close()
})

test('claims are timed and given back', async () => {
  const { store, reader } = await openInlineStore({ memory: true })
  await queueWaiting(store, 'a.example', 12)
  expect(await claimTimes(store, { destination: 'a.example', limit: 10, claims: 3 })).toHaveLength(3)
  expect(await reader.destinationLoad('a.example')).toMatchObject({ waiting: 12, leased: 0 })
  await expect(claimTimes(store, { destination: 'a.example', limit: 13, claims: 1 })).rejects.toThrow('claimed 12 of 13')
  await store.close()
})
