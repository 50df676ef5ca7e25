import { fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { fileURLToPath } from 'node:url'
import Database from 'better-sqlite3'
import { describe, expect, onTestFinished, test } from 'vitest'
import { VERSION, versionNumber, versionOfNumber } from '../../../src/system/version.ts'
import { loadConfig } from '../../../src/config/load.ts'
import { startDaemon } from '../../../src/daemon/daemon.ts'
import { takeOwnership } from '../../../src/store/folder/owner-lock.ts'
import { openForWriting } from '../../../src/store/sqlite/file/database.ts'
import { queueFile } from '../../../src/store/folder/queue-folder.ts'
import { currentVersion } from '../../../src/store/sqlite/file/migrations.ts'
import { openInlineStore } from '../../../src/store/sqlite/clients/inline-store.ts'
import { openReaderEngine } from '../../../src/store/sqlite/reading/sqlite-reader.ts'
import { openQueueReader } from '../../../src/store/sqlite/reading/sqlite-reader.ts'
import { openWorkerStore } from '../../../src/store/sqlite/clients/worker-store.ts'
import { Events } from '../../../src/telemetry/events.ts'
import { queue } from '../../conformance/mail.ts'
import { asAfterACrash, folder, unreleasedQueue } from './folders.ts'
import { ANY_MESSAGE } from '../../../src/store/message-conditions.ts'

function setVersion(directory: string, version: number): void {
  const db = new Database(queueFile(directory))
  db.pragma(`user_version = ${version}`)
  db.close()
}

describe('a queue of another version', () => {
  test('a newer one is refused by reader and owner, and is not changed', async () => {
    const directory = folder()
    openForWriting(directory).close()
    setVersion(directory, 999)
    const refusal = { name: 'QueueTooNew', exitCode: 78, message: expect.stringContaining('has version 999') as string }
    await expect(openInlineStore({ directory })).rejects.toMatchObject(refusal)
    await expect(openWorkerStore({ directory })).rejects.toMatchObject(refusal)
    expect(() => openQueueReader(directory)).toThrow(expect.objectContaining(refusal) as Error)
    setVersion(directory, currentVersion())
    await (await openInlineStore({ directory })).store.close()
  })

  test('one of the first release is upgraded and keeps its mail', async () => {
    const directory = folder()
    const { store } = await openInlineStore({ directory })
    const id = await queue(store)
    await store.close()
    const db = new Database(queueFile(directory))
    for (const trigger of ['message_unindexed']) db.exec(`drop trigger ${trigger}`)
    for (const table of [
      'search_0',
      'search_1',
      'unindexed',
      'moving',
      'origin',
      'records_taken',
      'moved_to',
      'oauth_token',
      'schedule_run',
      'domain_check',
      'share_usage',
      'quota_count',
      'session',
      'series',
      'series_delta',
      'backlog',
      'queue_mark',
      'provider_suspension',
      'suppression',
      'suppression_change',
      'suppression_stop',
      'kept_content',
      'erasure',
      'erasure_key',
      'class',
    ])
      db.exec(`drop table ${table}`)
    for (const index of ['message_scheduled', 'message_envid', 'recipient_due', 'recipient_turn']) db.exec(`drop index ${index}`)
    db.exec(`create index recipient_due on recipient (destination, due_at) where state = 'waiting' and suspect = 0`)
    for (const column of ['band', 'turn']) db.exec(`alter table recipient drop column ${column}`)
    for (const column of [
      'not_before',
      'scheduled',
      'hold_request',
      'expires',
      'deliver_by',
      'by_mode',
      'share',
      'max_attempts',
      'subject',
      'from_header',
      'class',
    ])
      db.exec(`alter table message drop column ${column}`)
    for (const column of ['node', 'runner', 'request_id']) db.exec(`alter table audit drop column ${column}`)
    db.exec('alter table attempt drop column session_id')
    db.exec('alter table operated drop column former')
    const sql = readFileSync(new URL('../../../migrations/0001_queue.sql', import.meta.url), 'utf8')
    const fingerprint = crc32(sql.replaceAll(/--.*$/gm, '').replaceAll(/\s+/g, ''))
    db.prepare(`update meta set value = ? where name = 'schema'`).run(fingerprint)
    db.pragma('user_version = 1')
    db.close()
    const upgraded = await openInlineStore({ directory })
    expect((await upgraded.reader.list(ANY_MESSAGE, { after: 0, limit: 9 })).map(({ message }) => message.id)).toEqual([id])
    expect(await upgraded.store.moveState()).toMatchObject({ leaving: 0, arriving: 0, movedTo: null })
    expect(await upgraded.reader.records.grants.all()).toEqual([])
    await upgraded.store.close()
  })

  test('a database of another application is refused', async () => {
    const directory = folder()
    const db = new Database(queueFile(directory))
    db.exec('create table theirs (a)')
    db.close()
    await expect(openInlineStore({ directory })).rejects.toMatchObject({
      exitCode: 78,
      message: expect.stringContaining('not a queue of deferd') as string,
    })
  })

  test('a file that is not a database is refused with advice, and kept', async () => {
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

describe('a queue of an unreleased program', () => {
  const refusal = {
    name: 'QueueIncompatible',
    exitCode: 78,
    message: expect.stringMatching(/queue\.db was made by an unreleased/) as string,
  }

  test('is refused by writers and readers, and not changed', async () => {
    const directory = unreleasedQueue()
    const before = contents(directory)
    await expect(openInlineStore({ directory })).rejects.toMatchObject(refusal)
    await expect(openWorkerStore({ directory })).rejects.toMatchObject(refusal)
    expect(() => openQueueReader(directory)).toThrow(expect.objectContaining(refusal) as Error)
    expect(contents(directory)).toEqual(before)
  })

  test('is refused by the daemon', async () => {
    const directory = unreleasedQueue()
    const before = contents(directory)
    const overrides = [`queue_directory=${directory}`, 'smtpd_listen=127.0.0.1:0', 'http_listen=']
    const loaded = loadConfig({ file: undefined, overrides, calledAs: 'deferd', env: { DEFERD_CONFIG: '/dev/null' }, uid: -1 })
    await expect(startDaemon({ loaded, events: new Events(() => 0) })).rejects.toMatchObject(refusal)
    expect(contents(directory)).toEqual(before)
  })

  test('is known by its schema, not by how a migration is laid out', () => {
    const directory = folder()
    const db = openForWriting(directory)
    expect(db.prepare(`select value from meta where name = 'schema'`).pluck().get()).toBeTypeOf('number')
    db.prepare(`update meta set value = value + 1 where name = 'schema'`).run()
    db.close()
    expect(() => openForWriting(directory)).toThrow(expect.objectContaining(refusal) as Error)
  })
})

describe('an emptied queue', () => {
  const refusal = { name: 'QueueEmptied', exitCode: 78, message: expect.stringContaining('deferd restore FILE') as string }

  /** A queue with one message, closed. */
  async function filled(): Promise<string> {
    const directory = folder()
    const { store, recovery } = await openInlineStore({ directory })
    expect(recovery.created).toBe(true)
    await queue(store)
    await store.close()
    return directory
  }

  test('a database cut to zero bytes is refused by owners and readers', async () => {
    const directory = await filled()
    truncateSync(queueFile(directory))
    await expect(openInlineStore({ directory })).rejects.toMatchObject(refusal)
    await expect(openWorkerStore({ directory })).rejects.toMatchObject(refusal)
    expect(() => openQueueReader(directory)).toThrow(expect.objectContaining(refusal) as Error)
    expect(statSync(queueFile(directory)).size).toBe(0)
  })

  test('a database without tables is refused', async () => {
    const directory = await filled()
    rmSync(queueFile(directory))
    const db = new Database(queueFile(directory))
    db.pragma('journal_mode = wal')
    db.close()
    await expect(openInlineStore({ directory })).rejects.toMatchObject(refusal)
  })

  test.each(['cut to zero bytes', 'missing'])(
    'a database that is %s beside its write-ahead log is refused, and the log is kept',
    async (how) => {
      const directory = folder()
      const { store } = await openInlineStore({ directory })
      await queue(store)
      const crashed = asAfterACrash(directory)
      await store.close()
      if (how === 'missing') rmSync(queueFile(crashed))
      else truncateSync(queueFile(crashed))
      const { size } = statSync(`${queueFile(crashed)}-wal`)
      await expect(openInlineStore({ directory: crashed })).rejects.toMatchObject(refusal)
      expect(statSync(`${queueFile(crashed)}-wal`).size).toBe(size)
    },
  )

  test('a database that was moved away makes room for a new queue, and an existing one is not new', async () => {
    const directory = await filled()
    const next = await openInlineStore({ directory })
    expect(next.recovery.created).toBe(false)
    await next.store.close()
    rmSync(queueFile(directory))
    const fresh = await openInlineStore({ directory })
    expect(fresh.recovery.created).toBe(true)
    await fresh.store.close()
  })
})

describe('one owner', () => {
  test('a second one gets the process id of the owner', () => {
    const directory = join(folder(), 'new', 'queue')
    const owner = takeOwnership(directory)
    expect(statSync(directory).mode & 0o777).toBe(0o700)
    expect(() => takeOwnership(directory)).toThrow(expect.objectContaining({ name: 'QueueInUse', exitCode: 75, pid: process.pid }) as Error)
    expect(() => takeOwnership(directory)).toThrow(`is in use by process ${process.pid} (since 20`)
    owner.release()
    owner.release()
    takeOwnership(directory).release()
  })

  test('a second one is told of an owner that does not answer commands yet', () => {
    const directory = folder()
    const owner = takeOwnership(directory, true)
    const refused = (text: RegExp) => expect(() => takeOwnership(directory)).toThrow(text)
    refused(/in use by process \d+ \(since \S+\), a daemon that is starting: repeat the command when deferd check --running/)
    owner.started()
    refused(new RegExp(`in use by process ${process.pid} \\(since \\S+\\)$`))
    owner.release()
    // The next owner is no daemon.
    const command = takeOwnership(directory)
    refused(/\)$/)
    command.release()
  })

  test('another process is refused, and a killed owner leaves no lock behind', async () => {
    const directory = folder()
    const child = fork(fileURLToPath(new URL('./holder.ts', import.meta.url)), [directory])
    // A process that is left behind holds the output of the test run open.
    onTestFinished(() => void child.kill('SIGKILL'))
    await once(child, 'message')
    expect(() => takeOwnership(directory)).toThrow(expect.objectContaining({ pid: child.pid }) as Error)
    child.kill('SIGKILL')
    await once(child, 'exit')
    expect(existsSync(join(directory, 'owner'))).toBe(true)
    takeOwnership(directory).release()
  })

  test('an unusable folder is reported in one sentence', () => {
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

describe('reading the queue', () => {
  test('without a queue, that is reported', () => {
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
    expect(await beside.list(ANY_MESSAGE, { after: 0, limit: 10 })).toHaveLength(2)
    expect(seen()).toEqual(ids)
    await beside.close()
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

const contents = (directory: string): readonly string[] =>
  ['queue.db', 'queue.db-wal'].map((file) => readFileSync(join(directory, file)).toString('base64'))

function openAndList(directory: string): number[] {
  const reader = openReaderEngine(directory)
  const ids = reader.list(ANY_MESSAGE, { after: 0, limit: 10_000 }).map(({ message }) => message.id)
  reader.close()
  return ids
}

test('a queue has the version of the deferd that opened it last, which the refusal of a newer queue names', async () => {
  const directory = folder()
  openForWriting(directory).close()
  const db = new Database(queueFile(directory))
  const stored = db.prepare<[], number>(`select value from meta where name = 'written_by'`).pluck()
  expect(versionOfNumber(stored.get() ?? 0)).toBe(VERSION.replace(/-.*/, ''))
  db.exec(`update meta set value = ${versionNumber('2.13.4')} where name = 'written_by'`)
  db.close()
  setVersion(directory, 999)
  await expect(openInlineStore({ directory })).rejects.toThrow(
    'use deferd 2.13.4, which wrote it, or a newer one, or restore a backup from before the upgrade',
  )
  setVersion(directory, currentVersion())
  openForWriting(directory).close()
  const again = new Database(queueFile(directory))
  expect(again.prepare(`select value from meta where name = 'written_by'`).pluck().get()).toBe(versionNumber(VERSION))
  again.close()
})
