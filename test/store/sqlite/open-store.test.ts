import { closeSync, existsSync, openSync, statSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { describe, expect, test } from 'vitest'
import { ANY_MESSAGE } from '../../../src/store/message-conditions.ts'
import { openForWriting } from '../../../src/store/sqlite/file/database.ts'
import { queueFile } from '../../../src/store/folder/queue-folder.ts'
import { openStore } from '../../../src/store/sqlite/open-store.ts'
import { openStoreReadOnly } from '../../../src/store/sqlite/open-store.ts'
import { first, queue } from '../../conformance/mail.ts'
import { asAfterACrash, folder } from './folders.ts'

const ALL = { after: 0, limit: 100 }

describe.each([
  ['in its own thread', { threads: false, create: true }],
  ['in worker threads', { threads: true, create: true }],
])('the owner of a queue, %s', (_name, options) => {
  test('writes and reads, excludes other owners, and leaves one file', async () => {
    const directory = join(folder(), 'new')
    const { store, reader, recovery, close } = await openStore(directory, options)
    expect(recovery).toEqual({ quarantined: [], swept: 0, repair: null, created: true })
    const id = await queue(store)
    expect(await reader.list(ANY_MESSAGE, ALL)).toMatchObject([{ message: { id } }])
    await expect(openStore(directory, options)).rejects.toMatchObject({ name: 'QueueInUse', exitCode: 75, pid: process.pid })
    await close()
    expect([queueFile(directory), `${queueFile(directory)}-wal`, join(directory, 'owner')].map(existsSync)).toEqual([true, false, false])
    await (await openStore(directory, options)).close()
  })

  test('is told what its predecessor left', async () => {
    const directory = folder()
    const { store, close } = await openStore(directory, options)
    const id = await queue(store, { leased: true })
    await store.stage(store.nextId(), 0, [Buffer.from('half')])
    const db = new Database(queueFile(directory))
    db.prepare('update recipient set delivery_starts = 3 where id = ?').run(first(id))
    db.close()
    const left = asAfterACrash(directory)
    await close()
    const next = await openStore(left, options)
    expect(next.recovery).toMatchObject({ quarantined: [{ id, why: expect.stringContaining('3 times') as string }], swept: 1 })
    await next.close()
  })

  test('gives no id that a repaired queue already has', async () => {
    const directory = folder()
    const { store, close } = await openStore(directory, options)
    const id = await queue(store)
    await close()
    const db = new Database(queueFile(directory))
    expect(db.prepare(`update meta set value = 0 where name = 'last_id'`).run().changes).toBe(1)
    db.close()
    const next = await openStore(directory, options)
    expect(next.store.nextId()).toBeGreaterThan(id)
    await next.close()
  })

  test('owns nothing when the queue cannot be opened', async () => {
    const directory = folder()
    await expect(openStore(directory, { ...options, create: false })).rejects.toMatchObject({ name: 'NoSuchQueue', exitCode: 69 })
    expect(existsSync(queueFile(directory))).toBe(false)
    const db = openForWriting(directory)
    db.pragma('user_version = 999')
    db.close()
    for (let n = 0; n < 2; n++) await expect(openStore(directory, options)).rejects.toMatchObject({ name: 'QueueTooNew' })
  })
})

describe('a queue opened read-only', () => {
  test('is read and copied as of one moment while its owner writes', async () => {
    const directory = folder()
    const { store, close } = await openStore(directory, { threads: true, create: true })
    const ids = [await queue(store), await queue(store)]
    const opened = openStoreReadOnly(directory)
    const copy = folder()
    const bytes = await opened.copyTo(queueFile(copy))
    await queue(store)
    expect(await opened.reader.list(ANY_MESSAGE, ALL)).toHaveLength(3)
    expect(opened.defects()).toEqual([])
    await opened.close()
    await close()
    expect(statSync(queueFile(copy)).size).toBe(bytes)
    const restored = openStoreReadOnly(copy)
    expect((await restored.reader.list(ANY_MESSAGE, ALL)).map(({ message }) => message.id)).toEqual(ids)
    await restored.close()
  })

  test('has its defects named', async () => {
    const directory = folder()
    const { store, close } = await openStore(directory, { threads: false, create: true })
    for (let n = 0; n < 200; n++) await queue(store, { content: [Buffer.alloc(4_000, 'x')] })
    await close()
    overwriteLastPage(queueFile(directory))
    const damaged = openStoreReadOnly(directory)
    expect(damaged.defects()).toEqual([expect.stringContaining('malformed')])
    await damaged.close()
    const other = folder()
    const db = openForWriting(other)
    db.pragma('journal_mode = delete')
    db.close()
    const slow = openStoreReadOnly(other)
    expect(slow.defects()).toEqual(['journal_mode is delete, not wal'])
    await slow.close()
  })
})

function overwriteLastPage(path: string): void {
  const file = openSync(path, 'r+')
  writeSync(file, Buffer.alloc(8_192, 0xff), 0, 8_192, statSync(path).size - 8_192)
  closeSync(file)
}
