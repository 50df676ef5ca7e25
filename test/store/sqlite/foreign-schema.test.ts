/** Queues and backups whose schema is not that of their version: refused by name, and rebuilt by the repair. */
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { describe, expect, test } from 'vitest'
import { queueFile } from '../../../src/store/folder/queue-folder.ts'
import { repairDamage, restoreQueue, salvageQueue } from '../../../src/store/sqlite/file/restore.ts'
import { openInlineStore } from '../../../src/store/sqlite/clients/inline-store.ts'
import { openStoreReadOnly } from '../../../src/store/sqlite/open-store.ts'
import { openQueueReader } from '../../../src/store/sqlite/reading/sqlite-reader.ts'
import { openWorkerStore } from '../../../src/store/sqlite/clients/worker-store.ts'
import { ANY_MESSAGE } from '../../../src/store/message-conditions.ts'
import { queue } from '../../conformance/mail.ts'
import { folder } from './folders.ts'

/** A queue with a message, over whose database `sql` ran. */
async function changedBy(sql: string): Promise<{ readonly directory: string; readonly id: number }> {
  const directory = folder()
  const { store } = await openInlineStore({ directory })
  const id = await queue(store)
  await store.close()
  const db = new Database(queueFile(directory)).unsafeMode()
  db.pragma('writable_schema = on')
  db.exec(sql)
  db.close()
  return { directory, id }
}

const backUp = async (directory: string): Promise<string> => {
  const file = join(folder(), 'backup.db')
  const db = new Database(queueFile(directory), { readonly: true })
  await db.backup(file)
  db.close()
  return file
}

const listed = async (directory: string): Promise<readonly number[]> => {
  const { reader, close } = openStoreReadOnly(directory)
  const found = await reader.list(ANY_MESSAGE, { after: 0, limit: 9 })
  await close()
  return found.map(({ message }) => message.id)
}

const CHANGES: readonly (readonly [what: string, sql: string])[] = [
  ['trigger evil is not of deferd', 'create trigger evil after insert on recipient begin delete from recipient where id = new.id; end'],
  ['trigger evil is not of deferd', 'create trigger evil after insert on recipient begin delete from nowhere; end'],
  ['index recipient_due is missing', 'drop index recipient_due'],
  ['index mine is not of deferd', 'create index mine on recipient (address)'],
  ['table mine is not of deferd', 'create table mine (a)'],
  ['view mine is not of deferd', 'create view mine as select 1'],
  ['table attempt is missing, view attempt is not of deferd', 'drop table attempt; create view attempt as select 1 as recipient'],
  [
    'table meta is missing, table other is not of deferd, view meta is not of deferd',
    `alter table meta rename to other; create view meta as select 'schema' as name, 1 as value`,
  ],
  ['index history_left differs', 'drop index history_left; create index history_left on history (left_at desc)'],
  [
    'table chunk differs',
    `update sqlite_schema set sql = replace(sql, 'data blob    not null', 'data blob    not null default x''00''') where name = 'chunk'`,
  ],
  ['table staged differs', `update sqlite_schema set sql = replace(sql, 'primary key', 'primary key check (1)') where name = 'staged'`],
]

describe.each(CHANGES)('%s', (what, sql) => {
  const refusal = (advice: string) => ({
    name: 'SchemaChanged',
    exitCode: 78,
    message: expect.stringMatching(new RegExp(`${what}.*${advice}`)) as string,
  })

  test('is refused at a start and at a reading, and the repair rebuilds the queue with its mail', async () => {
    const { directory, id } = await changedBy(sql)
    const inPlace = refusal('deferd check --repair')
    await expect(openInlineStore({ directory })).rejects.toMatchObject(inPlace)
    expect(() => openQueueReader(directory)).toThrow(expect.objectContaining(inPlace) as Error)
    expect(repairDamage(directory)).toMatchObject({ why: expect.stringContaining(what) as string, lost: expect.anything() as [] })
    expect(await listed(directory)).toEqual([id])
    await (await openInlineStore({ directory })).store.close()
  })

  test('is refused by a restore, and a salvage of the file has its mail', async () => {
    const { directory, id } = await changedBy(sql)
    const file = await backUp(directory)
    const target = folder()
    await expect(restoreQueue(target, file)).rejects.toMatchObject(refusal('nothing was changed.*deferd salvage'))
    expect(() => openStoreReadOnly(target)).toThrow(expect.objectContaining({ name: 'NoSuchQueue' }) as Error)
    const salvaged = join(folder(), 'salvaged')
    salvageQueue(file, salvaged)
    expect(await listed(salvaged)).toEqual([id])
  })
})

test('the worker of a daemon refuses it with the same error', async () => {
  const { directory } = await changedBy('create view mine as select 1')
  await expect(openWorkerStore({ directory })).rejects.toMatchObject({ name: 'SchemaChanged', exitCode: 78 })
})

test('many differences are told by number', async () => {
  const { directory } = await changedBy(Array.from({ length: 8 }, (_, n) => `create table mine_${n} (a);`).join(' '))
  await expect(openInlineStore({ directory })).rejects.toThrow(
    /table mine_0 is not of deferd, table mine_1 is not of deferd, table mine_2 is not of deferd and 5 more/,
  )
})

test('statistics of SQLite, and another layout of a statement, are no difference', async () => {
  const { directory, id } = await changedBy(
    `analyze; update sqlite_schema set sql = replace(sql, 'TABLE history (', 'TABLE history ( /* rows */ -- of the history
      ') where name = 'history'`,
  )
  const { store, reader } = await openInlineStore({ directory })
  expect((await reader.list(ANY_MESSAGE, { after: 0, limit: 9 })).map(({ message }) => message.id)).toEqual([id])
  await store.close()
})
