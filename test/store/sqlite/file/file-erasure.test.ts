/** The files of a queue are cleared after an erasure, while others read them. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { expect, onTestFinished, test } from 'vitest'
import { Checkpoints } from '../../../../src/store/sqlite/file/checkpoints.ts'
import { FileErasure } from '../../../../src/store/sqlite/file/file-erasure.ts'
import { folder } from '../folders.ts'

function opened(path: string): Database.Database {
  const db = new Database(path)
  onTestFinished(() => void db.close())
  return db
}

function queueWith(text: string) {
  const path = join(folder(), 'queue.db')
  const db = opened(path)
  db.exec(`pragma journal_mode = wal; create table one (text text); insert into one values ('${text}')`)
  const has = (): boolean => ['', '-wal'].some((ending) => readFileSync(`${path}${ending}`).includes(text))
  return { db, has, reader: opened(path), erasure: new FileErasure(db), checkpoints: new Checkpoints(db) }
}

test('each try that readers prevent needs a request, and the last one clears the files', () => {
  const { db, has, reader, erasure, checkpoints } = queueWith('anna@far.example')
  reader.exec('begin; select * from one')
  db.exec('delete from one')
  erasure.request(true)
  erasure.carryOut(checkpoints)
  expect([erasure.isRequested, erasure.isDone, has()]).toEqual([false, false, true])
  erasure.request(false)
  expect(erasure.isRequested).toBe(true)
  erasure.carryOut(checkpoints)
  expect([erasure.isRequested, erasure.isDone]).toEqual([false, false])
  reader.exec('commit')
  erasure.request(false)
  erasure.carryOut(checkpoints)
  expect([erasure.isRequested, erasure.isDone, has()]).toEqual([false, true, false])
})

test('an erasure after one that did not clear the files rewrites them again', () => {
  const { db, has, reader, erasure, checkpoints } = queueWith('anna@far.example')
  reader.exec('begin; select * from one')
  erasure.request(true)
  erasure.carryOut(checkpoints)
  reader.exec('commit')
  db.exec('pragma secure_delete = off; delete from one')
  erasure.request(true)
  erasure.carryOut(checkpoints)
  expect([erasure.isDone, has()]).toEqual([true, false])
})
