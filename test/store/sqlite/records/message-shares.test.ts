import { expect, test } from 'vitest'
import { openInMemory } from '../../../../src/store/sqlite/file/database.ts'
import { MessageShares } from '../../../../src/store/sqlite/records/message-shares.ts'
import { createStoreCore } from '../../../../src/store/sqlite/core/store-core.ts'
import { mail, T0 } from '../../../conformance/mail.ts'

/** A queue of so many messages, each with one recipient that waits. */
function queueOf(messages: number) {
  const db = openInMemory()
  const core = createStoreCore(db, { owner: 1, until: Infinity }, () => Infinity)
  let lastId = 0
  for (let n = 0; n < messages; n++) {
    core.run({ method: 'enqueue', args: [mail({ nextId: () => ++lastId }, { at: T0 })] })
  }
  return { db, core }
}

const counted = (shares: MessageShares) => {
  let calls = 1
  let tally = shares.tally(0)
  for (; tally === null; tally = shares.tally(0)) calls++
  return { calls, messages: Object.fromEntries(tally.queues.map(({ queue, messages }) => [queue, messages])) }
}

test('the queue is counted in slices, and after that only what has changed', () => {
  const { db, core } = queueOf(1_200)
  const { shares } = core
  expect(counted(shares)).toEqual({ calls: 4, messages: { incoming: 1_200 } })
  expect(counted(shares).calls).toBe(1)
  core.run({ method: 'operate', args: [[3, 900].map((message) => ({ message, operation: { kind: 'hold' as const } }))] })
  expect(counted(shares)).toEqual({ calls: 2, messages: { incoming: 1_198, hold: 2 } })
  db.close()
})

test('a large message is a slice of its own', () => {
  const { db, core } = queueOf(3)
  const to = Array.from({ length: 2_000 }, (_, n) => ({ address: `user${n}@far.example` }))
  core.run({ method: 'enqueue', args: [mail({ nextId: () => 4 }, { to })] })
  counted(core.shares)
  const changed = [1, 4, 2].map((message) => ({ message, operation: { kind: 'hold' } as const }))
  core.run({ method: 'operate', args: [changed] })
  expect(counted(core.shares)).toEqual({ calls: 3, messages: { incoming: 1, hold: 3 } })
  db.close()
})

test('what a rolled back transaction has shown is read again', () => {
  const { db, core } = queueOf(2)
  const { shares } = core
  counted(shares)
  shares.committed()
  db.exec('begin')
  core.run({ method: 'enqueue', args: [mail({ nextId: () => 3 })] })
  core.run({ method: 'operate', args: [[{ message: 1, operation: { kind: 'hold' } }]] })
  expect(counted(shares).messages).toEqual({ incoming: 2, hold: 1 })
  db.exec('rollback')
  shares.rolledBack()
  expect(counted(shares).messages).toEqual({ incoming: 2 })
  // The id was passed by the walk, and is taken after all.
  core.run({ method: 'enqueue', args: [mail({ nextId: () => 3 })] })
  expect(counted(shares).messages).toEqual({ incoming: 3 })
  db.close()
})

test('what was read before a call failed is read again', () => {
  const { db, core } = queueOf(2)
  const { shares } = core
  counted(shares)
  core.run({ method: 'quarantine', args: [1, 'unreadable'] })
  db.exec('alter table recipient rename to away')
  expect(() => shares.tally(0)).toThrow()
  db.exec('alter table away rename to recipient')
  expect(counted(shares).messages).toEqual({ incoming: 1, corrupt: 1 })
  db.close()
})
