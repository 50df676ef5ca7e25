/**
 * State after a power cut: the part of the write-ahead log that was synced before the last 250, and any sectors, in any state, of
 * the part that was written later. (That a commit is synced before it is acknowledged: test/store/sqlite/durability.)
 */
import { cpSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { seededRandom } from '../../../src/system/random.ts'
import { openInlineStore } from '../../../src/store/sqlite/clients/inline-store.ts'
import { contentOf, deferred, first, queue, settleOne, T0 } from '../../conformance/mail.ts'
import { folder } from './folders.ts'
import { ANY_MESSAGE } from '../../../src/store/message-conditions.ts'

const MESSAGES = 40
const CUTS = 100
const SECTOR = 512
const LOG = 'queue.db-wal'

const contentFor = (n: number): Buffer => Buffer.alloc(500 + 997 * n, n)

/** Queues mail, every third message of it tried once; returns how long the log was at each acknowledgement. */
async function acknowledgedMail(directory: string): Promise<{ readonly lengths: readonly number[]; readonly copy: string }> {
  const { store } = await openInlineStore({ directory })
  const lengths: number[] = []
  for (let n = 1; n <= MESSAGES; n++) {
    const to = [{ address: 'ann@far.example' }, { address: 'bob@else.example' }]
    const id = await queue(store, { to, leased: true, content: [contentFor(n)] })
    lengths.push(statSync(join(directory, LOG)).size)
    if (n % 3 === 0) await settleOne(store, id, deferred(first(id), T0 + n))
  }
  const copy = folder()
  for (const file of ['queue.db', LOG]) cpSync(join(directory, file), join(copy, file))
  await store.close()
  return { lengths, copy }
}

/** The log after a power cut: whole up to `synced`, then each sector as written, zero, garbage or missing with the rest. */
function afterCut(log: Buffer, synced: number, chance: () => number): Buffer {
  const cut = Buffer.from(log)
  for (let at = synced; at < cut.length; at += SECTOR) {
    const fate = chance()
    const sector = cut.subarray(at, at + SECTOR)
    if (fate < 0.05) return cut.subarray(0, at)
    if (fate < 0.1) sector.fill(0)
    else if (fate < 0.15) for (let i = 0; i < sector.length; i++) sector[i] = Math.floor(chance() * 256)
  }
  return cut
}

test(`after ${CUTS} power cuts the queue opens with all acknowledged mail, and no partial message`, async () => {
  const { lengths, copy } = await acknowledgedMail(folder())
  const log = readFileSync(join(copy, LOG))
  const chance = seededRandom(1).stream('power')
  for (let n = 0; n < CUTS; n++) {
    const acknowledged = Math.floor(chance() * (MESSAGES + 1))
    const directory = folder()
    cpSync(join(copy, 'queue.db'), join(directory, 'queue.db'))
    writeFileSync(join(directory, LOG), afterCut(log, lengths[acknowledged - 1] ?? (lengths[0] ?? 0) >> 1, chance))
    const { store, reader } = await openInlineStore({ directory })
    const listed = await reader.list(ANY_MESSAGE, { after: 0, limit: 100 })
    expect(listed.length).toBeGreaterThanOrEqual(acknowledged)
    expect(listed.map(({ message }) => message.id)).toEqual(Array.from(listed, (_, i) => i + 1))
    for (const { message, recipients } of listed) {
      expect(recipients).toHaveLength(2)
      expect((await contentOf(store, message.contentId)).equals(contentFor(message.id))).toBe(true)
    }
    await store.close()
  }
})
