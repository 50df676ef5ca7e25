import { existsSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { Batches } from '../../../src/store/sqlite/core/batches.ts'
import type { Call } from '../../../src/store/methods.ts'
import { createStoreCore } from '../../../src/store/sqlite/core/store-core.ts'
import { openForWriting } from '../../../src/store/sqlite/file/database.ts'
import { Room } from '../../../src/store/sqlite/file/room.ts'
import { BallastFile, type Reserve } from '../../../src/store/folder/reserve.ts'
import { StoreUnavailable } from '../../../src/store/queue-store.ts'
import { deferred, delivered, first, mail, T0 } from '../../conformance/mail.ts'
import { folder } from './folders.ts'

/** A disk with room for this number of pages, and a reserve of further pages. SQLite itself reports that the disk is full. */
function smallDisk() {
  const db = openForWriting(folder())
  onTestFinished(() => void db.close())
  const pages = () => Number(db.pragma('page_count', { simple: true }))
  const disk = { released: false, spaceReturns: false, free: 0 }
  const fill = () => db.pragma(`max_page_count = ${pages()}`)
  const reserve: Reserve = {
    size: 50 * 8192,
    freeBytes: () => disk.free,
    get isReleased() {
      return disk.released
    },
    release: () => {
      disk.released = true
      db.pragma(`max_page_count = ${pages() + 50}`)
    },
    restore: () => {
      if (disk.spaceReturns) disk.released = false
    },
  }
  const core = createStoreCore(db, { owner: 1, until: Infinity }, () => Infinity)
  const batches = new Batches(db, core, new Room(db, reserve))
  let lastId = 0
  const entry = (bytes = 40_000) => mail({ nextId: () => ++lastId }, { leased: true, content: [Buffer.alloc(bytes, 'x')] })
  const enqueue = (message = entry()): Call => ({ method: 'enqueue', args: [message] })
  const fillWithMail = () => {
    batches.run([enqueue(), enqueue(), enqueue()])
    fill()
    // Uses up the free pages of the file too.
    for (const bytes of [30_000, 500]) while (batches.run([enqueue(entry(bytes))])[0]?.ok === true);
  }
  return { db, batches, disk, enqueue, fill, fillWithMail, unlimited: () => db.pragma('max_page_count = 1000000') }
}

const settle = (id: number, longReply = 'x'.repeat(60_000)): Call => ({
  method: 'settle',
  args: [
    {
      owner: 1,
      message: id,
      recipients: [deferred(first(id), T0 + 1, { last: { status: '4.2.1', reason: longReply, stage: 'rcpt' } })],
      attempts: [],
    },
  ],
})

describe('when the disk is full', () => {
  test('mail is refused, and nothing of it is stored', () => {
    const { batches, enqueue, fillWithMail, db } = smallDisk()
    fillWithMail()
    const before = db.prepare('select count(*) from message').pluck().get()
    const [refused] = batches.run([enqueue()])
    expect(refused).toMatchObject({
      ok: false,
      error: { name: 'StoreUnavailable', message: expect.stringContaining('SQLITE_FULL') as string },
    })
    expect(refused?.ok === false && refused.error.cause).toBeInstanceOf(Error)
    expect(db.prepare('select count(*) from message').pluck().get()).toBe(before)
  })

  test('a settlement is recorded with the reserve, other calls of the batch are refused', () => {
    const { batches, enqueue, fillWithMail, disk, db } = smallDisk()
    fillWithMail()
    const outcomes = batches.run([enqueue(), settle(1), enqueue()])
    expect(outcomes.map(({ ok }) => ok)).toEqual([false, true, false])
    expect(disk.released).toBe(true)
    expect(db.prepare('select state from recipient where id = ?').pluck().get(first(1))).toBe('waiting')
  })

  test('until space returns only settlements are accepted, and a ping fails', () => {
    const { batches, enqueue, fillWithMail, disk, unlimited } = smallDisk()
    fillWithMail()
    batches.run([settle(1)])
    const claim: Call = {
      method: 'claimDue',
      args: [{ destination: 'far.example', now: T0 + 1, bands: [{ band: 0, limit: 1 }], recipientLimit: 1 }],
    }
    const calls: Call[] = [enqueue(), { method: 'ping', args: [] }, claim, settle(2), { method: 'readChunk', args: [1, 0] }]
    const outcomes = batches.run(calls)
    expect(outcomes.map(({ ok }) => ok)).toEqual([false, false, false, true, true])
    expect(outcomes[1]).toMatchObject({ error: expect.any(StoreUnavailable) as Error })
    disk.spaceReturns = true
    unlimited()
    expect(batches.run(calls).every(({ ok }) => ok)).toBe(true)
  })

  test('deliveries continue while there is room for their outcomes, and wait without it', () => {
    const { batches, enqueue, fillWithMail, disk } = smallDisk()
    fillWithMail()
    batches.run([settle(1)])
    const claim: Call = {
      method: 'claimDue',
      args: [{ destination: 'far.example', now: T0 + 1, bands: [{ band: 0, limit: 1 }], recipientLimit: 1 }],
    }
    const ping: Call = { method: 'ping', args: [] }
    disk.free = 25 * 8192
    expect(batches.run([claim, ping, enqueue()]).map(({ ok }) => ok)).toEqual([true, true, false])
    disk.free = 2 * 8192
    expect(batches.run([claim, ping, enqueue()])).toMatchObject([
      { ok: false, error: { message: expect.stringContaining('deliveries wait until there is space') as string } },
      { ok: false },
      { ok: false },
    ])
  })

  test('mail that is deleted permanently makes room for outcomes, and its pages are returned for the reserve', () => {
    const { batches, enqueue, fillWithMail, db } = smallDisk()
    batches.run(Array.from({ length: 60 }, () => enqueue()))
    fillWithMail()
    batches.run([settle(1)])
    const ids = db.prepare<[], number>('select id from message where id > 2 limit 50').pluck().all()
    db.exec(`update recipient set state = 'waiting', delivery_starts = 0 where state = 'leased'`)
    const purge = { kind: 'delete', now: T0, purge: true } as const
    const [deleted] = batches.run([{ method: 'operate', args: [ids.map((message) => ({ message, operation: purge }))] }])
    expect(deleted).toMatchObject({ ok: true })
    const pages = Number(db.pragma('page_count', { simple: true }))
    batches.run([{ method: 'ping', args: [] }])
    expect(Number(db.pragma('page_count', { simple: true }))).toBeLessThan(pages)
  })

  test('the trash is emptied before mail is refused', () => {
    const { batches, enqueue, fillWithMail, disk, db } = smallDisk()
    const big = enqueue(mail({ nextId: () => 1000 }, { content: [Buffer.alloc(300_000, 'x')] }))
    batches.run([big, { method: 'operate', args: [[{ message: 1000, operation: { kind: 'delete', now: T0, purge: false } }]] }])
    disk.spaceReturns = true
    fillWithMail()
    expect(db.prepare(`select count(*) from message where placement = 'trash'`).pluck().get()).toBe(0)
    expect(disk.released).toBe(false)
  })
})

test('an error in one call does not affect the others of its batch, and leaves nothing of its own', () => {
  const { batches, enqueue, db } = smallDisk()
  const [one, twin] = [enqueue(), enqueue()]
  const entry = mail({ nextId: () => 77 }, { contentId: 1 })
  const outcomes = batches.run([one, twin, twin, enqueue(entry), enqueue()])
  expect(outcomes.map(({ ok }) => ok)).toEqual([true, true, false, false, true])
  expect(outcomes[2]).toMatchObject({ error: { code: 'SQLITE_CONSTRAINT_PRIMARYKEY' } })
  expect(db.prepare('select id from message').pluck().all()).toEqual([1, 2, 3])
  expect(
    batches.run([{ method: 'settle', args: [{ owner: 1, message: 1, recipients: [delivered(first(1), T0)], attempts: [] }] }]),
  ).toEqual([{ ok: true, value: { removed: true, noticeDue: false } }])
})

describe('the ballast file', () => {
  test('is written once, kept over restarts, released and rebuilt', () => {
    const directory = folder()
    const path = join(directory, 'reserve')
    const ballast = new BallastFile(directory)
    expect([ballast.isReleased, existsSync(path)]).toEqual([true, false])
    ballast.restore()
    const size = statSync(path).size
    expect(size).toBeGreaterThanOrEqual(2 * 1024 * 1024)
    expect(statSync(path).blocks * 512).toBeGreaterThanOrEqual(size)
    const { ino } = statSync(path)
    expect(new BallastFile(directory).isReleased).toBe(false)
    expect(statSync(path).ino).toBe(ino)
    ballast.release()
    expect([ballast.isReleased, existsSync(path)]).toEqual([true, false])
    ballast.restore()
    expect([ballast.isReleased, statSync(path).size]).toEqual([false, size])
  })

  test('an incomplete one is completed', () => {
    const directory = folder()
    const path = join(directory, 'reserve')
    writeFileSync(path, 'half')
    const ballast = new BallastFile(directory)
    expect(ballast.isReleased).toBe(true)
    ballast.restore()
    expect(statSync(path).size).toBe(ballast.size)
    rmSync(path)
  })
})
