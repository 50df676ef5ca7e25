import Database from 'better-sqlite3'
import { describe, expect, test } from 'vitest'
import { formatQueueId } from '../../../../src/mail/queue-id.ts'
import { recipientId } from '../../../../src/mail/message.ts'
import { queueFile } from '../../../../src/store/folder/queue-folder.ts'
import { openInlineStore } from '../../../../src/store/sqlite/clients/inline-store.ts'
import { openWorkerStore } from '../../../../src/store/sqlite/clients/worker-store.ts'
import { claim, deferred, delivered, first, messagesIn, queue, settleOne, T0 } from '../../../conformance/mail.ts'
import { folder } from '../folders.ts'
import { operate } from '../../../support/operate.ts'
import { ANY_MESSAGE } from '../../../../src/store/message-conditions.ts'

/** Changes rows behind the store's back, as a bad disk or a careless hand would. */
function damage(directory: string, sql: string): void {
  const db = new Database(queueFile(directory))
  db.pragma('ignore_check_constraints = on')
  db.exec(sql)
  db.close()
}

describe('a row that cannot be decoded moves to corrupt, and the queue continues', () => {
  test.each([
    ['broken JSON', (id: number) => `update recipient set last = '{"status":' where id = ${first(id)}`],
    ['an outcome without its parts', (id: number) => `update recipient set last = '[]' where id = ${first(id)}`],
    ['an unknown wish', (id: number) => `update recipient set notify = 'sometimes' where id = ${first(id)}`],
  ])('%s', async (_, sql) => {
    const directory = folder()
    const told: string[] = []
    const { store, reader } = await openInlineStore({ directory }, { onQuarantined: ({ queueId }) => told.push(queueId) })
    const [bad, good] = [await queue(store), await queue(store)]
    damage(directory, sql(bad))
    expect(messagesIn((await claim(store, T0)).requests)).toEqual([good])
    expect(told).toEqual([formatQueueId(T0, bad)])
    expect(await claim(store, T0)).toEqual({ requests: [], nextDueAt: null })
    expect((await reader.list({ ...ANY_MESSAGE, queue: 'corrupt' }, { after: 0, limit: 10 })).map(({ message }) => message.id)).toEqual([
      bad,
    ])
    expect((await reader.details(formatQueueId(T0, bad)))?.queue).toBe('corrupt')
    await operate(store, bad, { kind: 'delete', now: T0, purge: true })
    expect((await reader.details(formatQueueId(T0, bad)))?.queue).toBe('gone')
    await store.close()
  })

  test('its recipients in delivery keep their lease, and their outcome is recorded', async () => {
    const directory = folder()
    const { store, reader } = await openInlineStore({ directory })
    const id = await queue(store, { to: [{ address: 'ann@far.example' }, { address: 'bob@else.example' }] })
    await claim(store, T0)
    damage(directory, `update recipient set notify = '?' where id = ${recipientId(id, 1)}`)
    expect((await claim(store, T0, { destination: 'else.example' })).requests).toEqual([])
    await settleOne(store, id, delivered(first(id), T0))
    expect(await reader.details(formatQueueId(T0, id))).toMatchObject({
      queue: 'corrupt',
      recipients: [{ state: 'delivered' }, { state: 'parked' }],
    })
    await store.close()
  })

  test('a recipient without a message is not claimed again', async () => {
    const directory = folder()
    const { store } = await openInlineStore({ directory })
    const [lost, good] = [await queue(store), await queue(store)]
    damage(directory, `delete from message where id = ${lost}`)
    expect(messagesIn((await claim(store, T0)).requests)).toEqual([good])
    expect(await store.destinationsDue()).toEqual([])
    await store.close()
  })

  test('expired mail behind unreadable rows is still found', async () => {
    const directory = folder()
    const { store } = await openInlineStore({ directory })
    const [bad, good] = [await queue(store), await queue(store)]
    damage(directory, `update recipient set notify = '?' where id = ${first(bad)}`)
    expect(messagesIn(await store.claimExpired(T0 + 1e10, 1))).toEqual([good])
    await store.close()
  })
})

test('a settlement is complete or absent', async () => {
  const directory = folder()
  const { store } = await openInlineStore({ directory })
  const id = await queue(store, { leased: true })
  await settleOne(store, id, deferred(first(id), T0 + 1))
  const db = new Database(queueFile(directory))
  for (const change of [
    `state = 'delivered'`,
    `settled_at = 1`,
    `notice_due = 'failure'`,
    `state = 'delivered', settled_at = 1, notice_due = 'failure'`,
    `state = 'bounced', settled_at = 1, notice_due = 'delay'`,
    `state = 'on its way'`,
    `delivery_starts = 2`,
    `attempts = -1`,
    `due_at = 'tomorrow'`,
  ]) {
    expect(() => db.exec(`update recipient set ${change} where id = ${first(id)}`), change).toThrow(/constraint|cannot store/)
  }
  for (const change of [`placement = 'trash'`, `placement = 'corrupt'`, `deleted_at = 1`, `size = -1`]) {
    expect(() => db.exec(`update message set ${change} where id = ${id}`), change).toThrow('constraint')
  }
  db.close()
  await store.close()
})

describe('content is read back unchanged', () => {
  const withBody = async (sql: (id: number) => string) => {
    const directory = folder()
    const { store } = await openWorkerStore({ directory })
    const id = await queue(store, { content: [Buffer.alloc(200_000, 'x')] })
    damage(directory, sql(id))
    return { store, id }
  }

  test('a damaged chunk is an error of its own kind', async () => {
    const { store, id } = await withBody((n) => `update chunk set data = zeroblob(65536) where id = ${n} * 65536 + 1`)
    expect(await store.readChunk(id, 0)).toHaveLength(65_536)
    await expect(store.readChunk(id, 1)).rejects.toMatchObject({ name: 'ContentUnreadable', message: `part 1 of content ${id} is damaged` })
    await store.close()
  })

  test.each([0, 2])('so is missing chunk %i', async (part) => {
    const { store, id } = await withBody((n) => `delete from chunk where id = ${n} * 65536 + ${part}`)
    await expect(store.readChunk(id, part)).rejects.toMatchObject({
      name: 'ContentUnreadable',
      message: `part ${part} of content ${id} is missing`,
    })
    await store.close()
  })
})
