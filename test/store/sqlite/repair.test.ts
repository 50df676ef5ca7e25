import { closeSync, cpSync, existsSync, openSync, readFileSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { expect, test } from 'vitest'
import { openInMemory } from '../../../src/store/sqlite/file/database.ts'
import { queueFile } from '../../../src/store/folder/queue-folder.ts'
import { tableWriters } from '../../../src/store/sqlite/file/table-writers.ts'
import { inChunks } from '../../../src/store/chunks.ts'
import { repairQueue } from '../../../src/store/sqlite/file/repair.ts'
import type { Repair } from '../../../src/store/repair-report.ts'
import { openInlineStore } from '../../../src/store/sqlite/clients/inline-store.ts'
import { openStore } from '../../../src/store/sqlite/open-store.ts'
import { ANY_MESSAGE } from '../../../src/store/message-conditions.ts'
import { claim, first, messagesIn, queue, settleOne, delivered, T0 } from '../../conformance/mail.ts'
import { grant } from '../../conformance/shared-grants.ts'
import { asAfterACrash, folder } from './folders.ts'

const PAGE = 8192

/** Writes zeros over the pages that contain a text, while the file may be open elsewhere. */
function zero(directory: string, text: string): void {
  const pages = readFileSync(queueFile(directory))
  const file = openSync(queueFile(directory), 'r+')
  for (let at = pages.indexOf(text); at >= 0; at = pages.indexOf(text, at + PAGE - (at % PAGE)))
    writeSync(file, Buffer.alloc(PAGE), 0, PAGE, at - (at % PAGE))
  closeSync(file)
}

test('damage found in operation: the queue is rebuilt, leases continue, readers see the new file', async () => {
  const directory = folder()
  const before = await openInlineStore({ directory })
  const leased = await queue(before.store)
  const ids = []
  for (let n = 0; n < 20; n++) ids.push(await queue(before.store, { content: [Buffer.from(`content ${n} `.repeat(600))] }))
  await before.store.close()
  const repairs: Repair[] = []
  const { store, reader, close } = await openStore(directory, {
    threads: true,
    create: false,
    onRepaired: (repair) => repairs.push(repair),
  })
  expect(messagesIn((await claim(store, T0, { limit: 1 })).requests)).toEqual([leased])
  expect(await reader.list(ANY_MESSAGE, { after: 0, limit: 100 })).toHaveLength(21)
  zero(directory, 'content 7 content 7')
  await expect(store.readChunk(ids[7] ?? 0, 0)).rejects.toMatchObject({ name: 'ContentUnreadable' })
  expect(repairs).toMatchObject([{ kept: `${queueFile(directory)}.damaged` }])
  expect(repairs[0]?.corrupt.length).toBeGreaterThan(0)
  expect(await settleOne(store, leased, delivered(first(leased), T0))).toMatchObject({ removed: true })
  const corrupt = await reader.list({ ...ANY_MESSAGE, queue: 'corrupt' }, { after: 0, limit: 100 })
  expect(corrupt.map(({ message }) => message.id)).toContain(ids[7])
  const healthy = messagesIn((await claim(store, T0)).requests)
  expect([...healthy, ...corrupt.map(({ message }) => message.id)].toSorted((a, b) => a - b)).toEqual(ids)
  await close()
})

/** Writes a value that a column of the table `recipient` does not allow, as a flipped bit in the type of a value does. */
function mistype(directory: string, assignment: string): void {
  const change = (sql: string): void => {
    const db = new Database(queueFile(directory)).unsafeMode()
    db.pragma('writable_schema = on')
    db.exec(sql)
    db.close()
  }
  const table = `where type = 'table' and name = 'recipient'`
  change(`update sqlite_schema set sql = replace(sql, ') strict', ')') ${table}`)
  change(`update recipient set ${assignment}`)
  change(`update sqlite_schema set sql = sql || ' strict' ${table}`)
}

test('a row whose values have wrong types is damage: the queue is rebuilt, and other mail goes on', async () => {
  const directory = folder()
  const repairs: Repair[] = []
  const { store, reader, close } = await openStore(directory, { threads: true, create: true, onRepaired: (repair) => repairs.push(repair) })
  const [bad, good] = [await queue(store), await queue(store)]
  mistype(directory, `attempts = x'00' where id = ${first(bad)}`)
  expect(messagesIn((await claim(store, T0)).requests)).toEqual([good])
  expect(repairs).toHaveLength(1)
  expect((await reader.list({ ...ANY_MESSAGE, queue: 'corrupt' }, { after: 0, limit: 10 })).map(({ message }) => message.id)).toEqual([bad])
  expect(await settleOne(store, good, delivered(first(good), T0))).toMatchObject({ removed: true })
  await close()
})

test('a row with values of wrong types that a crash left in delivery is damage too: the queue is rebuilt at the next start', async () => {
  const directory = folder()
  const { store } = await openInlineStore({ directory })
  const [bad, good] = [await queue(store), await queue(store)]
  await claim(store, T0)
  const left = asAfterACrash(directory)
  await store.close()
  mistype(left, `address = x'61' where id = ${first(bad)}`)
  const after = await openInlineStore({ directory: left })
  expect(after.recovery.repair).not.toBeNull()
  expect(messagesIn((await claim(after.store, T0)).requests)).toEqual([good])
  await after.store.close()
})

/** Changes a letter of the destination in the last entry of the index recipient_due. The entry then belongs to another destination. */
function misfile(directory: string): void {
  const bytes = readFileSync(queueFile(directory))
  const LEAF_OF_INDEX = 0x0a
  const page = Array.from({ length: bytes.length / PAGE }, (_, n) => n * PAGE).find(
    (at) => bytes[at] === LEAF_OF_INDEX && bytes.subarray(at, at + PAGE).includes('far.example'),
  )
  if (page === undefined) throw new Error('the index has no leaf')
  // SQLite fills pages from their end: the entry that was added last comes first.
  const at = bytes.indexOf('far.example', page)
  bytes[at + 2] = 'z'.charCodeAt(0)
  writeFileSync(queueFile(directory), bytes)
}

test('a recipient that an index has lost is found by verify, and the repaired queue delivers it', async () => {
  const directory = folder()
  const before = await openInlineStore({ directory })
  const ids = []
  for (let n = 0; n < 40; n++) ids.push(await queue(before.store))
  await before.store.close()
  misfile(directory)
  const repairs: Repair[] = []
  const { store, close } = await openStore(directory, { threads: true, create: false, onRepaired: (repair) => repairs.push(repair) })
  const found = messagesIn((await claim(store, T0)).requests)
  expect(found).toHaveLength(39)
  const verified = []
  for (let after: number | null = 0; after !== null;) verified.push((after = await store.upkeep.verify(after)))
  expect(verified).toEqual([first(ids.at(-1) ?? 0), null])
  expect(repairs).toMatchObject([{ why: expect.stringContaining('recipients without an entry in an index: 1') as string, corrupt: [] }])
  expect([...found, ...messagesIn((await claim(store, T0)).requests)].toSorted((a, b) => a - b)).toEqual(ids)
  await close()
})

test('a damaged root page is found at the start, though no mail is due', async () => {
  const directory = folder()
  const { store } = await openInlineStore({ directory })
  const id = await queue(store, { at: T0 })
  await store.close()
  zero(directory, 'ann@far.example')
  const again = await openInlineStore({ directory })
  expect(again.recovery.repair).toMatchObject({ messages: 0, corrupt: [{ why: 'the recipients are on an unreadable page' }] })
  expect((await again.reader.list({ ...ANY_MESSAGE, queue: 'corrupt' }, { after: 0, limit: 10 })).map(({ message }) => message.id)).toEqual(
    [id],
  )
  await again.store.close()
})

test('a database beside the write-ahead log of another one is refused', async () => {
  const directory = folder()
  const old = await openInlineStore({ directory })
  await queue(old.store)
  await old.store.close()
  const backup = readFileSync(queueFile(directory))
  for (let n = 0; n < 2; n++) {
    const { store } = await openInlineStore({ directory })
    await queue(store)
    await store.close()
  }
  const { store } = await openInlineStore({ directory })
  await queue(store)
  const crashed = asAfterACrash(directory)
  cpSync(join(directory, 'generation'), join(crashed, 'generation'))
  await store.close()
  const log = readFileSync(`${queueFile(crashed)}-wal`)
  const sound = readFileSync(queueFile(crashed))
  writeFileSync(queueFile(crashed), backup)
  await expect(openInlineStore({ directory: crashed })).rejects.toMatchObject({
    name: 'ForeignLog',
    exitCode: 78,
    message: expect.stringContaining('deferd restore FILE') as string,
  })
  expect(readFileSync(`${queueFile(crashed)}-wal`)).toEqual(log)
  writeFileSync(queueFile(crashed), sound)
  const again = await openInlineStore({ directory: crashed })
  expect(await again.reader.list(ANY_MESSAGE, { after: 0, limit: 10 })).toHaveLength(4)
  await again.store.close()
  expect(existsSync(`${queueFile(crashed)}.damaged`)).toBe(false)
})

test('messages that a move has taken out of the queue, or sent to it, survive a repair', async () => {
  const directory = folder()
  const { store } = await openInlineStore({ directory })
  const moving = await queue(store, { content: [Buffer.from('moving')] })
  const target = { identity: 'elsewhere', name: '/srv/new' }
  const { messages } = await store.beginMove({ target, after: 0, through: moving, limit: 64, withNoticesDue: false })
  const arrivals = messages.map((moved) => {
    const origin = { id: moved.message.id, createdAt: T0 }
    return { origin, moved, staged: null, content: inChunks(Buffer.from('sent')) }
  })
  await store.takeMoved('a', arrivals, [])
  const state = await store.moveState()
  await store.close()
  expect(repairQueue(directory, 'a test')).toMatchObject({ messages: 0, corrupt: [] })
  const { store: repaired, reader } = await openInlineStore({ directory })
  expect(await repaired.moveState()).toEqual(state)
  const { messages: admitted } = await repaired.admitMoved('a', 64, T0)
  await repaired.undoMove([moving])
  expect(admitted).toHaveLength(1)
  const listed = await reader.list(ANY_MESSAGE, { after: 0, limit: 9 })
  const contents = await Promise.all(listed.map(({ message }) => repaired.readChunk(message.contentId, 0)))
  expect(contents.map((content) => Buffer.from(content ?? []).toString())).toEqual(['moving', 'sent'])
  await repaired.close()
})

test('the last generation of a refresh token survives a repair', async () => {
  const directory = folder()
  const { store } = await openInlineStore({ directory })
  for (const generation of [1, 2, 3]) await store.records.grants.replace('m365', '', grant(generation))
  await store.close()
  repairQueue(directory, 'a test')
  const { store: repaired } = await openInlineStore({ directory })
  expect(await repaired.records.grants.read('m365', '')).toEqual(grant(3))
  await repaired.close()
})

test('no two tables with row numbers have columns of equal types, because a salvage recognizes rows by them', () => {
  const db = openInMemory()
  const tables = [...tableWriters(db).values()].filter(({ rowNumber }) => rowNumber !== null)
  const types = tables.map(({ columns }) => columns.map(({ type }) => type).join())
  expect(types.filter((one, n) => types.indexOf(one) !== n)).toEqual([])
  // The rows of sqlite_sequence have two columns.
  expect(tables.map(({ columns }) => columns.length)).not.toContain(2)
  db.close()
})

test('history and events are told apart when no readable page points to their rows', async () => {
  const directory = folder()
  const { store } = await openInlineStore({ directory })
  await store.close()
  const db = new Database(queueFile(directory))
  for (let n = 1; n <= 500; n++) {
    db.prepare('insert into history (seq, message, left_at, record) values (?, ?, ?, ?)').run(n, n, T0 + n, `{"record":${n}}`)
    db.prepare('insert into event (last, at, lines) values (?, ?, ?)').run(n, T0 + n, `message.accepted ${T0} {"event":${n}}`)
  }
  const roots = db.prepare<[], number>("select rootpage from sqlite_schema where name in ('history', 'event')").pluck().all()
  db.close()
  const bytes = readFileSync(queueFile(directory))
  for (const root of roots) bytes.fill(0, (root - 1) * PAGE, root * PAGE)
  writeFileSync(queueFile(directory), bytes)
  repairQueue(directory, 'a test')
  const repaired = new Database(queueFile(directory))
  const counted = repaired.prepare(`select (select count(*) from history where record = '{"record":' || seq || '}') as history,
    (select count(*) from event where lines = 'message.accepted ${T0} {"event":' || last || '}') as events`)
  expect(counted.get()).toEqual({ history: 500, events: 500 })
  repaired.close()
})
