/**
 * A content is copied once between the socket and the store's thread: into its chunks. A chunk that is kept for delivery is copied
 * once more for the other thread; all other chunks are transferred.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { Entry } from '../../../src/queue/intake/intake.ts'
import { ContentCache } from '../../../src/queue/intake/content-cache.ts'
import { inChunks } from '../../../src/store/chunks.ts'
import { openQueueReader } from '../../../src/store/sqlite/sqlite-reader.ts'
import { openWorkerStore } from '../../../src/store/sqlite/worker-store.ts'
import { QueueWorld } from '../../support/queue-world.ts'

const SIZES = [2_000, 40_000, 200_000]

/** A relay over a store in its own thread, whose active queue has room for as many messages as there are sizes. */
async function overWorkerStore() {
  const directory = mkdtempSync(join(tmpdir(), 'deferd-contents-'))
  const { store } = await openWorkerStore({ directory })
  const reader = openQueueReader(directory)
  const world = await QueueWorld.create({
    config: { qmgr_message_active_limit: `${SIZES.length}` },
    remote: () => ({ kind: 'accepts', takes: 3_600_000 }),
    queue: { store, reader },
  })
  onTestFinished(async () => {
    // Virtual time does not wait for a store in another thread, so the relay does not stop.
    await expect(world.close()).rejects.toThrow('killed before the call ended')
    await store.close()
    await reader.close()
    rmSync(directory, { recursive: true })
  })
  const { relay } = world
  const entry = (bytes: number): Entry => {
    const { id, arrivedAt } = relay.intake.begin()
    const message = { id, createdAt: arrivedAt, arrivedAt, sender: '', size: bytes, contentId: id, smtputf8: false }
    return { message, recipients: [{ address: 'ann@far.example' }], content: inChunks(Buffer.alloc(bytes, `${bytes}`)) }
  }
  const stored = async ({ message, content }: Entry): Promise<Buffer> =>
    Buffer.concat(await Promise.all(content.map(async (_, n) => (await store.readChunk(message.contentId, n)) ?? Buffer.alloc(0))))
  return { intake: relay.intake, entry, stored }
}

test('chunks kept for a delivery are never detached, and chunks of waiting mail move to the store', async () => {
  const { intake, entry, stored } = await overWorkerStore()
  const [sent, waiting] = [SIZES.map(entry), SIZES.map(entry)]
  for (const one of sent) await intake.take({ ...one, client: null })
  for (const one of waiting) await intake.take({ ...one, client: null })
  for (const { message, content } of sent) {
    expect(Buffer.concat(content).equals(Buffer.alloc(message.size, `${message.size}`))).toBe(true)
  }
  const left = waiting.map(({ content }) => content.map((chunk) => chunk.byteLength))
  // Short chunks are cloned, which costs less than moving them.
  expect(left).toEqual([[2_000], [0], [0, 0, 0, 3_392]])
  for (const one of [...sent, ...waiting]) {
    expect((await stored(one)).equals(Buffer.alloc(one.message.size, `${one.message.size}`))).toBe(true)
  }
})

test('the cache keeps whole contents by reference, up to its budget', () => {
  const cache = new ContentCache()
  const message = { id: 1, createdAt: 0, arrivedAt: 0, sender: '', size: 10, contentId: 1, smtputf8: false }
  const content = [new Uint8Array(10)]
  expect(cache.keep({ ...message, size: 11 }, content)).toBe(false)
  expect(cache.keep(message, content)).toBe(true)
  expect(cache.get(message)).toBe(content)
  cache.drop(message)
  const prependedHeaders = 'X-First: ä\r\n'
  expect(cache.keep({ ...message, prependedHeaders, size: 23 }, content)).toBe(true)
  const half = [new Uint8Array(32 * 1024 * 1024)]
  expect(cache.keep({ ...message, contentId: 2, size: half[0]?.length ?? 0 }, half)).toBe(true)
  expect(cache.keep({ ...message, contentId: 3, size: half[0]?.length ?? 0 }, half)).toBe(false)
  cache.drop(message)
  expect(cache.get(message)).toBeUndefined()
  expect(cache.keep({ ...message, contentId: 3, size: half[0]?.length ?? 0 }, half)).toBe(true)
})
