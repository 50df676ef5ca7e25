import { fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import Database from 'better-sqlite3'
import { describe, expect, test } from 'vitest'
import { takeOwnership } from '../../src/queue/owner-lock.ts'
import { openForWriting, queueFile } from '../../src/queue/sqlite/database.ts'
import { openInlineStore } from '../../src/queue/sqlite/inline-store.ts'
import { openQueueReader } from '../../src/queue/sqlite/queue-reader.ts'
import { openWorkerStore } from '../../src/queue/sqlite/worker-store.ts'
import { queue, T0 } from '../conformance/mail.ts'
import { folder } from './folders.ts'

function setVersion(directory: string, version: number): void {
  const db = new Database(queueFile(directory))
  db.pragma(`user_version = ${version}`)
  db.close()
}

describe('a queue of another version', () => {
  test('a newer one is refused by whoever opens it, and is not touched', async () => {
    const directory = folder()
    openForWriting(directory).close()
    setVersion(directory, 999)
    const refusal = { name: 'QueueTooNew', exitCode: 78, message: expect.stringContaining('has version 999') as string }
    await expect(openInlineStore({ directory })).rejects.toMatchObject(refusal)
    await expect(openWorkerStore({ directory })).rejects.toMatchObject(refusal)
    expect(() => openQueueReader(directory)).toThrow(expect.objectContaining(refusal) as Error)
    setVersion(directory, 1)
    await (await openInlineStore({ directory })).store.close()
  })

  test('a database of somebody else is refused', async () => {
    const directory = folder()
    const db = new Database(queueFile(directory))
    db.exec('create table theirs (a)')
    db.close()
    await expect(openInlineStore({ directory })).rejects.toMatchObject({
      exitCode: 78,
      message: expect.stringContaining('not a queue of deferd') as string,
    })
  })

  test('a file that is no database is refused with advice, and kept', async () => {
    const directory = folder()
    writeFileSync(queueFile(directory), 'this is not a database, but it is long enough to look at '.repeat(100))
    const size = statSync(queueFile(directory)).size
    await expect(openInlineStore({ directory })).rejects.toMatchObject({
      exitCode: 78,
      message: expect.stringContaining('restore the queue from a backup') as string,
    })
    expect(() => openQueueReader(directory)).toThrow(expect.objectContaining({ exitCode: 78 }) as Error)
    expect(statSync(queueFile(directory)).size).toBe(size)
  })
})

describe('one owner', () => {
  test('a second one is told who holds the queue', () => {
    const directory = join(folder(), 'new', 'queue')
    const owner = takeOwnership(directory)
    expect(statSync(directory).mode & 0o777).toBe(0o700)
    expect(() => takeOwnership(directory)).toThrow(expect.objectContaining({ name: 'QueueInUse', exitCode: 75, pid: process.pid }) as Error)
    expect(() => takeOwnership(directory)).toThrow(`is in use by process ${process.pid} (since 20`)
    owner.release()
    owner.release()
    takeOwnership(directory).release()
  })

  test('another process is refused, and an owner that was killed leaves no lock behind', async () => {
    const directory = folder()
    const child = fork(fileURLToPath(new URL('./holder.ts', import.meta.url)), [directory])
    await once(child, 'message')
    expect(() => takeOwnership(directory)).toThrow(expect.objectContaining({ pid: child.pid }) as Error)
    child.kill('SIGKILL')
    await once(child, 'exit')
    expect(existsSync(join(directory, 'owner'))).toBe(true)
    takeOwnership(directory).release()
  })

  test('a folder that cannot be used is named in one sentence', () => {
    const file = join(folder(), 'file')
    writeFileSync(file, '')
    expect(() => takeOwnership(join(file, 'queue'))).toThrow(
      expect.objectContaining({
        name: 'QueueFolderUnusable',
        exitCode: 78,
        message: expect.stringContaining(`cannot use ${file}/queue as the queue folder`) as string,
      }) as Error,
    )
    const taken = folder()
    mkdirSync(join(taken, 'lock.db'))
    expect(() => takeOwnership(taken)).toThrow(expect.objectContaining({ exitCode: 78 }) as Error)
  })
})

describe('looking at the queue', () => {
  test('where there is none, that is what is said', () => {
    expect(() => openQueueReader(folder())).toThrow(expect.objectContaining({ name: 'NoSuchQueue', exitCode: 69 }) as Error)
    const empty = folder()
    writeFileSync(queueFile(empty), '')
    expect(() => openQueueReader(empty)).toThrow(expect.objectContaining({ exitCode: 69 }) as Error)
  })

  test('works beside the daemon, after it, and after its crash', async () => {
    const directory = folder()
    const { store } = await openWorkerStore({ directory })
    const beside = openQueueReader(directory)
    const ids = [await queue(store), await queue(store)]
    const seen = () => openAndList(directory)
    expect(beside.list({}, { after: 0, limit: 10, now: T0 })).toHaveLength(2)
    expect(seen()).toEqual(ids)
    beside.close()
    await store.close()
    expect(existsSync(`${queueFile(directory)}-shm`)).toBe(false)
    expect(seen()).toEqual(ids)
    const child = fork(fileURLToPath(new URL('./writer.ts', import.meta.url)), [directory, 'inline'])
    const [acknowledged] = (await once(child, 'message')) as [number[]]
    child.kill('SIGKILL')
    await once(child, 'exit')
    expect(seen()).toEqual(expect.arrayContaining([...ids, ...acknowledged]))
  })

  test('changes nothing', async () => {
    const directory = folder()
    openForWriting(directory).close()
    const before = statSync(queueFile(directory))
    openAndList(directory)
    expect(statSync(queueFile(directory)).mtimeMs).toBe(before.mtimeMs)
  })
})

function openAndList(directory: string): number[] {
  const reader = openQueueReader(directory)
  const ids = reader.list({}, { after: 0, limit: 10_000, now: T0 }).map(({ message }) => message.id)
  reader.close()
  return ids
}
