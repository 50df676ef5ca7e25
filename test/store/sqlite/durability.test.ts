import { fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import Database from 'better-sqlite3'
import { describe, expect, test } from 'vitest'
import { assertDurable, openForWriting } from '../../../src/store/sqlite/file/database.ts'
import { queueFile } from '../../../src/store/folder/queue-folder.ts'
import { openInlineStore } from '../../../src/store/sqlite/clients/inline-store.ts'
import { openWorkerStore } from '../../../src/store/sqlite/clients/worker-store.ts'
import { claim, contentOf, deferred, first, queue, settleOne, T0 } from '../../conformance/mail.ts'
import { asAfterACrash, folder } from './folders.ts'
import { ANY_MESSAGE } from '../../../src/store/message-conditions.ts'

describe('a commit is synced', () => {
  test('synchronous is FULL after the first write, also when the queue is opened again', () => {
    const directory = folder()
    for (let n = 0; n < 2; n++) {
      const db = openForWriting(directory)
      db.exec(`insert into audit (at, last_at, who, action, arguments, changed, state) values (1, 1, 'root', 'hold', '', 1, 'done')`)
      expect(db.pragma('synchronous', { simple: true })).toBe(2)
      expect(db.pragma('journal_mode', { simple: true })).toBe('wal')
      db.close()
    }
  })

  test('a connection without synchronous = FULL is refused', () => {
    const directory = folder()
    openForWriting(directory).close()
    const careless = new Database(queueFile(directory))
    expect(() => assertDurable(careless)).toThrow('the queue cannot be kept safely here: journal_mode is wal, synchronous is 1')
    careless.close()
  })

  test('the settings that must precede the first table took effect', () => {
    const db = openForWriting(folder())
    const settings = ['page_size', 'auto_vacuum', 'foreign_keys', 'trusted_schema', 'cell_size_check', 'mmap_size', 'journal_size_limit']
    expect(settings.map((name) => db.pragma(name, { simple: true }))).toEqual([8192, 2, 1, 0, 1, 0, 64 * 1024 * 1024])
    db.close()
  })

  test('the files are accessible to their owner only', async () => {
    const directory = folder()
    const { store } = await openInlineStore({ directory })
    for (const file of ['queue.db', 'queue.db-wal', 'queue.db-shm', 'reserve'])
      expect(statSync(join(directory, file)).mode & 0o777).toBe(0o600)
    await store.close()
    expect(existsSync(join(directory, 'queue.db-wal'))).toBe(false)
  })
})

describe('acknowledged mail survives', () => {
  test('a crash after each commit', async () => {
    const directory = folder()
    const { store } = await openInlineStore({ directory })
    for (let n = 1; n <= 12; n++) {
      const id = await queue(store, { leased: true, content: [Buffer.alloc(10_000, n)] })
      if (n % 3 === 0) await settleOne(store, id, deferred(first(id), T0 + n))
      const next = await openInlineStore({ directory: asAfterACrash(directory) })
      const listed = await next.reader.list(ANY_MESSAGE, { after: 0, limit: 100 })
      expect(listed).toHaveLength(n)
      expect(listed.at(-1)?.recipients[0]?.dueAt).toBe(n % 3 === 0 ? T0 + n : T0)
      expect((await contentOf(next.store, id)).equals(Buffer.alloc(10_000, n))).toBe(true)
      await next.store.close()
    }
    await store.close()
  })

  test.each(['inline', 'worker'])('SIGKILL at a random moment (%s)', async (shell) => {
    const directory = folder()
    let acknowledged = 0
    for (let round = 0; round < 3; round++) {
      const child = fork(fileURLToPath(new URL('./writer.ts', import.meta.url)), [directory, shell])
      const ids: number[] = []
      child.on('message', (batch: number[]) => ids.push(...batch))
      await once(child, 'message')
      await new Promise((resolve) => setTimeout(resolve, 20 + 70 * round))
      child.kill('SIGKILL')
      await once(child, 'exit')
      expect(ids.length).toBeGreaterThan(0)
      acknowledged += ids.length
      const { store, reader } = await openInlineStore({ directory })
      const present = new Set<number>()
      for (let after = 0, more = true; more;) {
        const page = await reader.list(ANY_MESSAGE, { after, limit: 500 })
        for (const { message } of page) present.add(message.id)
        after = page.at(-1)?.message.id ?? after
        more = page.length === 500
      }
      expect(ids.filter((id) => !present.has(id))).toEqual([])
      expect(present.size).toBeGreaterThanOrEqual(acknowledged)
      await store.close()
    }
  })
})

test('closing completes pending calls and rejects later ones', async () => {
  const directory = folder()
  const { store } = await openWorkerStore({ directory })
  const last = queue(store)
  const closing = store.close()
  await expect(store.upkeep.ping()).rejects.toThrow('the store is closed')
  await Promise.all([last, closing, store.close()])
  const next = await openWorkerStore({ directory })
  expect((await claim(next.store, T0)).requests).toHaveLength(1)
  await next.store.close()
})
