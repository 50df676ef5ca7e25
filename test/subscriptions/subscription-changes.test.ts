/** Answers to operators when a change of a subscription meets trouble of the store. */
import { expect, test } from 'vitest'
import { ANY_EVENT } from '../../src/events/event-filter.ts'
import { openMemoryStore } from '../../src/store/memory/memory-store.ts'
import { intercepted } from '../../src/store/methods.ts'
import { StoreUnavailable } from '../../src/store/queue-store.ts'
import { SubscriptionChanges } from '../../src/subscriptions/subscription-changes.ts'

const SECRET = `whsec_${'A'.repeat(44)}`
const HOOK = { ...ANY_EVENT, types: [], destinations: [], senders: [], to: 'https://hooks.example/', allowPrivate: false, batch: 1 }
const REQUEST = { ...HOOK, name: 'app', format: 'deferd' as const, secret: SECRET, who: 'root' }

test('a change that was made is named as such when it cannot be recorded', async () => {
  const { store: queue, reader } = openMemoryStore()
  const store = intercepted(queue, (method, [record], perform) =>
    method === 'record' && record === 'audit' ? Promise.reject(new StoreUnavailable('the disk is full')) : perform(),
  )
  const changes = new SubscriptionChanges({ store, reader, clock: { now: () => 0 }, changed: async () => undefined })
  const made = 'the change was made, but could not be recorded in the audit log: the disk is full'
  await expect(changes.add(REQUEST)).rejects.toMatchObject({
    exitCode: 75,
    message: `${made}; the secret was not shown: for another one, deferd webhook secret app`,
  })
  expect((await reader.allSubscriptions()).map(({ name }) => name)).toEqual(['app'])
  await expect(changes.remove({ name: 'app', who: 'root' })).rejects.toMatchObject({ exitCode: 75, message: made })
  expect(await reader.allSubscriptions()).toEqual([])
  await expect(changes.remove({ name: 'app', who: 'root' })).rejects.toMatchObject({ exitCode: 65 })
})
