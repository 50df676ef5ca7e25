import { expect, test } from 'vitest'
import { openCore } from '../../../src/store/sqlite/core/open-core.ts'
import type { Call } from '../../../src/store/methods.ts'
import { mail } from '../../conformance/mail.ts'

test('without counts no row is written for them; with counts a batch writes one row for each share', () => {
  const { db, batches, core } = openCore(null, { inThread: false })
  let id = 0
  const entries = (shares: readonly string[]): readonly Call[] =>
    shares.map((share) => {
      const entry = mail({ nextId: () => ++id })
      return { method: 'enqueue', args: [{ ...entry, message: { ...entry.message, share } }] }
    })
  const changes = (calls: readonly Call[]): number => {
    const total = db.prepare<[], number>('select total_changes()').pluck()
    const before = total.get() ?? 0
    expect(batches.run(calls).every(({ ok }) => ok)).toBe(true)
    return (total.get() ?? 0) - before
  }
  const triggers = db.prepare<[], number>(`select count(*) from sqlite_temp_schema where type = 'trigger'`).pluck()
  // A message, a recipient and a chunk each, and the traffic and series of the batch.
  expect(changes(entries(['a', 'a', 'b', 'a']))).toBe(4 * 3 + 2)
  expect([triggers.get(), core.usage.takeChanges()]).toEqual([0, { all: true, counts: [] }])
  expect(changes([{ method: 'countShares', args: [true] }])).toBe(3)
  expect(triggers.get()).toBe(3)
  expect(changes(entries(['a', 'a', 'b', 'a']))).toBe(4 * 3 + 2 + 2)
  expect(core.usage.takeChanges()?.counts.map(({ share, messages }) => [share, messages])).toEqual([
    ['a', 6],
    ['b', 2],
  ])
  // A saved cursor, and two rows.
  expect(changes([{ method: 'countShares', args: [false] }])).toBe(3)
  expect(triggers.get()).toBe(0)
  expect(changes(entries(['a', 'a', 'b', 'a']))).toBe(4 * 3 + 2)
  db.close()
})

test('a batch writes one row of traffic and one of series, whatever its destinations and senders', () => {
  const { db, batches } = openCore(null, { inThread: false })
  let id = 0
  const calls = Array.from({ length: 50 }, (_, n): Call => {
    const to = [{ address: `ann@d${n}.example` }]
    return { method: 'enqueue', args: [mail({ nextId: () => ++id }, { to, sender: `app@s${n}.example` })] }
  })
  const total = db.prepare<[], number>('select total_changes()').pluck()
  const before = total.get() ?? 0
  batches.run(calls)
  expect((total.get() ?? 0) - before).toBe(50 * 3 + 2)
  db.close()
})

test('a call that fails leaves no trace in the counts', () => {
  const { db, batches, core } = openCore(null, { inThread: false })
  batches.run([{ method: 'countShares', args: [true] }])
  let id = 0
  const one = mail({ nextId: () => ++id })
  const twice: Call = { method: 'enqueue', args: [one] }
  expect(batches.run([twice, twice]).map(({ ok }) => ok)).toEqual([true, false])
  expect(core.usage.takeChanges()?.counts).toEqual([{ share: '', messages: 1, bytes: one.message.size }])
  db.close()
})
