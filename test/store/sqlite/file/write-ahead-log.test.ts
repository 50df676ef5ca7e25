import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { queueFile } from '../../../../src/store/folder/queue-folder.ts'
import { readLog } from '../../../../src/store/sqlite/file/write-ahead-log.ts'
import type { QueueStore } from '../../../../src/store/queue-store.ts'
import { openInlineStore } from '../../../../src/store/sqlite/clients/inline-store.ts'
import { queue } from '../../../conformance/mail.ts'
import { folder } from '../folders.ts'

const PAGE = 8192
const FRAME = PAGE + 24

/** A log that ends with two commits of one frame each. */
const log = (): Promise<Buffer> =>
  logOf(async (store) => {
    await queue(store)
    await store.upkeep.ping()
    await store.upkeep.ping()
  })

async function logOf(work: (store: QueueStore) => Promise<void>): Promise<Buffer> {
  const directory = folder()
  const { store } = await openInlineStore({ directory })
  await work(store)
  const bytes = readFileSync(`${queueFile(directory)}-wal`)
  await store.close()
  return bytes
}

/** Changes a byte of the page in the n-th frame from the end. */
function damaged(bytes: Buffer, fromEnd: number): Buffer {
  const copy = Buffer.from(bytes)
  const at = copy.length - fromEnd * FRAME + 24 + 4000
  copy[at] = (copy[at] ?? 0) ^ 1
  return copy
}

test('a sound log is read as SQLite reads it', async () => {
  const bytes = await log()
  expect(readLog(bytes, PAGE)).toMatchObject({ state: 'sound', lostAny: false })
  expect(readLog(bytes.subarray(0, bytes.length - 100), PAGE).state).toBe('sound')
})

test('damage of a commit that another commit follows is damage, not an incomplete commit', async () => {
  const bytes = await log()
  expect(bytes.readUInt32BE(bytes.length - 2 * FRAME + 4)).toBeGreaterThan(0)
  expect(readLog(damaged(bytes, 2), PAGE).state).toBe('damaged')
  expect(readLog(damaged(bytes, 3), PAGE).state).toBe('damaged')
})

test('an incomplete last commit is left out, with its pages and its page count', async () => {
  const bytes = await logOf(async (store) => {
    await queue(store)
    await store.upkeep.ping()
    await queue(store)
  })
  const isCommit = (fromEnd: number) => bytes.readUInt32BE(bytes.length - fromEnd * FRAME + 4) > 0
  let frames = 1
  while (!isCommit(frames + 1)) frames++
  expect(frames).toBeGreaterThan(1)
  const { state, ...read } = readLog(damaged(bytes, frames), PAGE)
  expect(state).toBe('incomplete')
  expect(read).toEqual({ ...readLog(bytes.subarray(0, bytes.length - frames * FRAME), PAGE), state: undefined })
})
