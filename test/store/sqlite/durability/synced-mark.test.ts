import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { queueFile } from '../../../../src/store/folder/queue-folder.ts'
import { openInlineStore } from '../../../../src/store/sqlite/clients/inline-store.ts'
import { PAGE_SIZE, PageFile } from '../../../../src/store/sqlite/file/page-file.ts'
import { queue } from '../../../conformance/mail.ts'
import { folder } from '../folders.ts'

const FRAME = PAGE_SIZE + 24

/** A copy of an open queue with damage in the n-th frame of its log from the end, and with the mark as `marked` leaves it. */
async function damagedFrame(fromEnd: number, marked: (mark: string) => void = () => undefined): Promise<string> {
  const directory = folder()
  const { store } = await openInlineStore({ directory })
  for (let n = 0; n < 4; n++) await queue(store)
  const copy = folder()
  for (const file of ['queue.db', 'queue.db-wal', 'queue.db-synced']) cpSync(join(directory, file), join(copy, file))
  await store.close()
  const log = `${queueFile(copy)}-wal`
  const bytes = readFileSync(log)
  const at = bytes.length - fromEnd * FRAME + 24 + 100
  bytes[at] = (bytes[at] ?? 0) ^ 1
  writeFileSync(log, bytes)
  marked(join(copy, 'queue.db-synced'))
  return copy
}

function stateOf(directory: string): string {
  const file = new PageFile(queueFile(directory))
  try {
    return file.log.state
  } finally {
    file.close()
  }
}

test('a damaged frame before the mark is damage, also in the last commit', async () => {
  expect(stateOf(await damagedFrame(2))).toBe('damaged')
  expect(stateOf(await damagedFrame(8))).toBe('damaged')
})

test('behind an older mark, commits from the damaged frame on were not synced', async () => {
  const unknown = [(mark: string) => writeFileSync(mark, ''), (mark: string) => writeFileSync(mark, Buffer.alloc(16, 7))]
  for (const older of unknown) expect(stateOf(await damagedFrame(8, older))).toBe('incomplete')
})

test('a queue without a mark is that of a version that synced each commit before the next one', async () => {
  const none = (mark: string): void => rmSync(mark)
  expect(stateOf(await damagedFrame(8, none))).toBe('damaged')
  expect(stateOf(await damagedFrame(2, none))).toBe('incomplete')
})
