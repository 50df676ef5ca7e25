import { once } from 'node:events'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { expect, onTestFinished, test } from 'vitest'
import { Checkpoints } from '../../../../src/store/sqlite/file/checkpoints.ts'
import { openForWriting } from '../../../../src/store/sqlite/file/database.ts'
import { queueFile } from '../../../../src/store/folder/queue-folder.ts'
import { folder } from '../folders.ts'

const FRAME = 8192 + 24

/** A queue to which `write` adds a transaction of some 25 pages, followed by a checkpoint if one is due. */
function writer() {
  const directory = folder()
  const db = openForWriting(directory)
  onTestFinished(() => void db.close())
  const checkpoints = new Checkpoints(db)
  const insert = db.prepare('insert into chunk (crc, data) values (0, zeroblob(200000))')
  const write = (): void => {
    insert.run()
    checkpoints.runIfDue()
  }
  const framesInFile = () => statSync(`${queueFile(directory)}-wal`).size / FRAME
  return { directory, db, write, framesInFile }
}

test('the write-ahead log starts over after 1,000 pages', () => {
  const { write, framesInFile } = writer()
  for (let n = 0; n < 150; n++) write()
  expect(framesInFile()).toBeGreaterThan(900)
  expect(framesInFile()).toBeLessThan(1_060)
})

test('no automatic checkpoint runs', () => {
  const { db, framesInFile } = writer()
  for (let n = 0; n < 50; n++) db.exec('insert into chunk (crc, data) values (0, zeroblob(200000))')
  expect(framesInFile()).toBeGreaterThan(1_200)
})

test('readers that overlap without a pause do not let the write-ahead log grow without bound', async () => {
  const { directory, write, framesInFile, db } = writer()
  const workerData = { path: queueFile(directory), forMs: 20_000 }
  const worker = new Worker(join(import.meta.dirname, 'overlapping-readers.ts'), { workerData })
  onTestFinished(async () => void (await worker.terminate()))
  await once(worker, 'message')
  // 22,500 pages. The restart at 4,000 waits 100 ms for readers, which a loaded machine may delay.
  for (let n = 0; n < 900; n++) write()
  expect(framesInFile()).toBeLessThan(12_000)
  expect(db.pragma('busy_timeout', { simple: true })).toBe(5_000)
})
