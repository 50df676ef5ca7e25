/**
 * A content is copied once between the socket and the store's thread: into its chunks. A chunk that is kept for delivery is copied
 * once more for the other thread; all other chunks are transferred. Long content is kept too, chunk by chunk.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createTransport } from 'nodemailer'
import { expect, onTestFinished, test } from 'vitest'
import type { Entry } from '../../../src/queue/intake/intake.ts'
import { ContentCache } from '../../../src/queue/intake/content-cache.ts'
import { inChunks } from '../../../src/store/chunks.ts'
import type { QueueStore } from '../../../src/store/queue-store.ts'
import { openQueueReader } from '../../../src/store/sqlite/reading/sqlite-reader.ts'
import { openWorkerStore } from '../../../src/store/sqlite/clients/worker-store.ts'
import { createObservedWorld } from '../../../src/testkit/create-world.ts'
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
  expect(cache.get(message)?.chunks).toBe(content)
  cache.drop(message.contentId)
  const prependedHeaders = 'X-First: ä\r\n'
  expect(cache.keep({ ...message, prependedHeaders, size: 23 }, content)).toBe(true)
  const half = [new Uint8Array(32 * 1024 * 1024)]
  expect(cache.keep({ ...message, contentId: 2, size: half[0]?.length ?? 0 }, half)).toBe(true)
  expect(cache.keep({ ...message, contentId: 3, size: half[0]?.length ?? 0 }, half)).toBe(false)
  cache.drop(message.contentId)
  expect(cache.get(message)).toBeUndefined()
  expect(cache.keep({ ...message, contentId: 3, size: half[0]?.length ?? 0 }, half)).toBe(true)
})

test('the cache keeps a content while it is received, up to 32 MB, or none of it', () => {
  const cache = new ContentCache()
  const megabyte = 1024 * 1024
  const message = { id: 1, createdAt: 0, arrivedAt: 0, sender: '', size: 10, contentId: 1, smtputf8: false }
  const [first, second, rest] = [new Uint8Array(4), new Uint8Array(4), new Uint8Array(2)]
  expect([cache.hold(1, 0, [first]), cache.hold(1, 1, [second])]).toEqual([true, true])
  expect(cache.keep(message, [rest])).toBe(true)
  expect(cache.get(message)?.chunks).toEqual([first, second, rest])
  const long = () => [new Uint8Array(17 * megabyte)]
  expect([cache.hold(2, 0, long()), cache.hold(2, 1, long()), cache.hold(2, 2, [first])]).toEqual([true, false, false])
  expect(cache.keep({ ...message, contentId: 2, size: 4 + 34 * megabyte }, [first])).toBe(false)
  expect(cache.get({ ...message, contentId: 2 })).toBeUndefined()
  expect([3, 4, 5].map((id) => cache.hold(id, 0, long()))).toEqual([true, true, true])
  expect(cache.hold(10, 0, long())).toBe(false)
  cache.drop(5)
  expect(cache.hold(11, 0, long())).toBe(true)
})

test('the memory of long content is freed when each host that was sent it has acknowledged it', () => {
  const cache = new ContentCache()
  const message = { id: 1, createdAt: 0, arrivedAt: 0, sender: '', size: 6, contentId: 1, smtputf8: false }
  const kept = (isLong: boolean): Uint8Array[] => {
    const chunks = [new Uint8Array(4).fill(1), new Uint8Array(2).fill(2)]
    if (isLong) cache.hold(1, 0, chunks.slice(0, 1))
    expect(cache.keep(message, isLong ? chunks.slice(1) : chunks)).toBe(true)
    return chunks
  }
  const lengths = (chunks: readonly Uint8Array[]) => chunks.map(({ byteLength }) => byteLength)
  const acknowledged = kept(true)
  cache.get(message)?.sent()
  cache.get(message)?.sent()
  cache.release(1)
  expect(lengths(acknowledged)).toEqual([0, 0])
  // A connection that ended early may still write a chunk.
  const broken = kept(true)
  cache.get(message)
  cache.get(message)?.sent()
  cache.release(1)
  expect(lengths(broken)).toEqual([4, 2])
  const short = kept(false)
  cache.get(message)?.sent()
  cache.release(1)
  expect(lengths(short)).toEqual([4, 2])
  expect(cache.get(message)).toBeUndefined()
})

test('long mail is delivered from memory at first, and from the store later', async () => {
  let reads = 0
  const world = await createObservedWorld(
    { store: 'memory' },
    {
      store: (store) =>
        new Proxy(store, {
          get(target, name: keyof QueueStore) {
            if (name === 'readChunk') reads++
            const method: unknown = target[name]
            return typeof method === 'function' ? (method.bind(target) as unknown) : method
          },
        }),
    },
  )
  onTestFinished(() => world.close())
  const text = 'a long line of text\r\n'.repeat(50_000)
  const send = () => createTransport(world.transport()).sendMail({ from: 'app@us.example', to: 'ann@far.example', text })
  await send()
  await world.advance('1s')
  expect([world.mailbox('ann@far.example').mails().length, reads]).toEqual([1, 0])
  world.rule({ at: 'end-of-data', reply: '450 4.2.1 busy', until: '100s' })
  await send()
  await world.advance('1s')
  expect(reads).toBe(0)
  await world.advance('10m')
  expect(world.mailbox('ann@far.example').mails()).toHaveLength(2)
  expect(reads).toBeGreaterThan(15)
  for (const { content } of world.mailbox('ann@far.example').mails()) expect(content.endsWith(`\r\n\r\n${text}`)).toBe(true)
})
