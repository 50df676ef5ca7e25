import { expect, test } from 'vitest'
import { openMemoryStore } from '../../src/store/memory/memory-store.ts'
import { SuppressionIndex } from '../../src/suppression/suppression-index.ts'
import { operatorEntry } from '../support/operator-entry.ts'

const keyOf = (name: string) => ({ scope: 'us.example', address: `${name}@far.example` })
const entry = (name: string) => operatorEntry(keyOf(name))

function opened() {
  const list = openMemoryStore().store.records.suppressions
  const index = new SuppressionIndex((last, limit) => list.changes(last, limit))
  const found = (): string => ['ann', 'bob', 'eve'].filter((name) => index.mayHave(keyOf(name))).join(' ')
  return { list, index, found }
}

test('each key may have an entry until all are read', async () => {
  const { list, index, found } = opened()
  await list.putAll([entry('bob')])
  expect(found()).toBe('ann bob eve')
  await index.follow()
  expect(found()).toBe('bob')
  await list.putAll([entry('ann')])
  await index.follow()
  expect(found()).toBe('ann bob')
})

test('keys of deleted entries are forgotten when a recipient has one, and when all are read anew', async () => {
  const { list, index, found } = opened()
  await list.putAll([entry('ann'), entry('bob'), entry('eve')])
  await index.follow()
  await list.removeAll([keyOf('ann'), keyOf('bob')])
  await index.follow()
  expect(found()).toBe('ann bob eve')
  index.forget([keyOf('ann')], index.last)
  expect(found()).toBe('bob eve')
  await index.renew()
  expect(found()).toBe('eve')
})

test('a key is not forgotten when something has changed meanwhile', async () => {
  const { list, index, found } = opened()
  await index.follow()
  const { last } = index
  await list.putAll([entry('bob')])
  await index.follow()
  index.forget([keyOf('bob')], last)
  expect(found()).toBe('bob')
})

test('a change during a reading of all is known when it ends', async () => {
  const { list, index, found } = opened()
  await list.putAll([entry('ann')])
  await index.follow()
  const renewed = index.renew()
  await list.putAll([entry('bob')])
  await Promise.all([renewed, index.follow()])
  expect(found()).toBe('ann bob')
})
