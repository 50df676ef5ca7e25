/** The two tables of entries by which messages are found: the one whose messages are forgotten is emptied. */
import Database from 'better-sqlite3'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import type { MessageId } from '../../../src/mail/message.ts'
import { queueFile } from '../../../src/store/folder/queue-folder.ts'
import { SearchIndex } from '../../../src/store/sqlite/search/search-index.ts'
import { openInlineStore } from '../../../src/store/sqlite/clients/inline-store.ts'
import { repairQueue } from '../../../src/store/sqlite/file/repair.ts'
import { termFor } from '../../../src/store/search/search-terms.ts'
import { delivered, first, mail, settleOne, T0 } from '../../conformance/mail.ts'

let directory = ''
afterEach(() => rmSync(directory, { recursive: true, force: true }))

type Opened = Awaited<ReturnType<typeof openInlineStore>>

async function enter({ store }: Opened, id: MessageId, subject: string): Promise<void> {
  const entry = mail(store, { leased: true })
  await store.enqueue({ ...entry, message: { ...entry.message, id, contentId: id, fromHeader: '', subject } })
}

async function index({ store }: Opened): Promise<void> {
  for (let { more } = await store.upkeep.indexMail(); more;) ({ more } = await store.upkeep.indexMail())
}

const found = async ({ reader }: Opened, word: string): Promise<readonly MessageId[]> =>
  (await reader.search([termFor.word(word, true)], { before: null, limit: 9 })).messages.map(({ message }) => message.id)

/** Row numbers in both tables for a word. */
function entries(word: string): readonly number[] {
  const db = new Database(queueFile(directory), { readonly: true })
  const rows = ['search_0', 'search_1'].flatMap((table) =>
    db.prepare<[string], number>(`select rowid from ${table} where ${table} match ?`).pluck().all(`"s:${word}"`),
  )
  db.close()
  return rows
}

/** All terms in the pages of both tables. */
function terms(): readonly string[] {
  const db = new Database(queueFile(directory))
  const all = ['search_0', 'search_1'].flatMap((table) => {
    db.exec(`create virtual table temp.v_${table} using fts5vocab ('main', '${table}', 'row')`)
    return db.prepare<[], string>(`select term from v_${table}`).pluck().all()
  })
  db.close()
  return all
}

test('entries of forgotten messages are deleted with their table, and those of queued mail are written again', async () => {
  directory = mkdtempSync(join(tmpdir(), 'deferd-search-'))
  const opened = await openInlineStore({ directory })
  await enter(opened, 1, 'first mail')
  await enter(opened, 20_000, 'second mail')
  await index(opened)
  await settleOne(opened.store, 1, delivered(first(1), T0))
  await enter(opened, 40_000, 'third mail')
  await index(opened)
  await index(opened)
  // The history has the first message.
  expect(await found(opened, 'mail')).toEqual([40_000, 20_000, 1])
  await opened.store.upkeep.prune({ historyBefore: T0 + 1, historyCount: 0, trashBefore: 0, requestsBefore: 0 })
  await enter(opened, 60_000, 'fourth mail')
  await index(opened)
  await index(opened)
  expect(await found(opened, 'mail')).toEqual([60_000, 40_000, 20_000])
  expect(entries('first')).toEqual([])
  expect(entries('second')).toHaveLength(1)
  await opened.store.close()
})

test('messages on hold and in the history keep no table for ever: their entries are copied, each once, also after a restart', async () => {
  directory = mkdtempSync(join(tmpdir(), 'deferd-search-'))
  const opened = await openInlineStore({ directory })
  for (let id = 1; id <= 1_100; id++) await enter(opened, id, 'held mail')
  await index(opened)
  await index(opened)
  for (let id = 1; id <= 20; id++) await settleOne(opened.store, id, delivered(first(id), T0))
  await enter(opened, 1_101, 'later mail')
  await index(opened)
  await opened.store.upkeep.prune({ historyBefore: T0 + 1, historyCount: 0, trashBefore: 0, requestsBefore: 0 })
  await enter(opened, 13_000, 'new mail')
  // The new mail, then the first slice of the copy.
  await opened.store.upkeep.indexMail()
  expect(await opened.store.upkeep.indexMail()).toEqual({ more: true })
  await opened.store.close()

  const again = await openInlineStore({ directory })
  await settleOne(again.store, 300, delivered(first(300), T0))
  await index(again)
  expect(entries('held')).toHaveLength(1_080)
  expect(new Set(entries('held')).size).toBe(1_080)
  expect(await found(again, 'mail')).toHaveLength(9)
  await again.store.close()
})

test('a new message gets its entry by three statements, whatever the number of its terms', async () => {
  directory = mkdtempSync(join(tmpdir(), 'deferd-search-'))
  const opened = await openInlineStore({ directory })
  for (const id of [1, 2]) await enter(opened, id, 'a subject of several words')
  await opened.store.close()
  let statements = 0
  const db = new Database(queueFile(directory), { verbose: () => statements++ })
  const search = new SearchIndex(db)
  statements = 0
  search.indexMail()
  // Two statements before the slice and two after it; of each of the two messages, its row, its addresses and its entry.
  expect(statements).toBe(2 + 2 + 2 * 3)
  db.close()
})

test('a forgotten message leaves no term in the file, also with little mail', async () => {
  directory = mkdtempSync(join(tmpdir(), 'deferd-search-'))
  const opened = await openInlineStore({ directory })
  await enter(opened, 1, 'first mail')
  await index(opened)
  await index(opened)
  await settleOne(opened.store, 1, delivered(first(1), T0))
  await opened.store.upkeep.prune({ historyBefore: T0 + 1, historyCount: 0, trashBefore: 0, requestsBefore: 0 })
  for (const [id, subject] of [
    [2, 'second mail'],
    [3, 'third mail'],
  ] as const) {
    await enter(opened, id, subject)
    await index(opened)
    await index(opened)
  }
  expect(terms()).not.toContain('s:first')
  // The second message waits in the queue, and too few have come since for new entries of those that wait.
  expect(terms()).toContain('s:second')
  await opened.store.close()
})

test('an erased message leaves no term in the file, and gets entries of its changed record', async () => {
  directory = mkdtempSync(join(tmpdir(), 'deferd-search-'))
  const opened = await openInlineStore({ directory })
  await enter(opened, 1, 'secret mail')
  await enter(opened, 2, 'other mail')
  await settleOne(opened.store, 1, delivered(first(1), T0))
  await index(opened)
  expect(terms()).toContain('s:secret')
  await opened.store.close()

  const db = new Database(queueFile(directory))
  new SearchIndex(db).forget(1)
  db.prepare(`update history set record = replace(record, 'secret', 'erased') where message = 1`).run()
  const pages = db.prepare<[], Buffer>('select block from search_0_data union all select block from search_1_data').pluck().all()
  expect(pages.some((page) => page.includes('secret'))).toBe(false)
  for (const table of ['search_0', 'search_1']) db.exec(`insert into ${table} (${table}) values ('integrity-check')`)
  db.close()
  expect(terms()).not.toContain('s:secret')

  const again = await openInlineStore({ directory })
  await index(again)
  expect(await found(again, 'erased')).toEqual([1])
  expect(await found(again, 'mail')).toEqual([2, 1])
  expect(entries('erased')).toHaveLength(1)
  await again.store.close()
})

test('after a repair, messages in queue and history are found', async () => {
  directory = mkdtempSync(join(tmpdir(), 'deferd-search-'))
  const opened = await openInlineStore({ directory })
  await enter(opened, 1, 'first mail')
  await enter(opened, 2, 'second mail')
  await settleOne(opened.store, 1, delivered(first(1), T0))
  await index(opened)
  await opened.store.close()
  repairQueue(directory, 'a test')
  const repaired = await openInlineStore({ directory })
  expect(await found(repaired, 'mail')).toEqual([2, 1])
  await index(repaired)
  expect(await found(repaired, 'mail')).toEqual([2, 1])
  expect(entries('first')).toHaveLength(1)
  await repaired.store.close()
})
