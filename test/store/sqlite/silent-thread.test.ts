/** Threads of the store that do not answer: what the store tells of them, and their end. */
import { syncBuiltinESMExports } from 'node:module'
import threads, { BroadcastChannel, Worker } from 'node:worker_threads'
import { expect, onTestFinished, test } from 'vitest'
import { ANY_MESSAGE } from '../../../src/store/message-conditions.ts'
import { openStore } from '../../../src/store/sqlite/open-store.ts'
import { mail } from '../../conformance/mail.ts'
import { folder } from './folders.ts'

function replaceWorker(by: typeof Worker): void {
  Object.assign(threads, { Worker: by })
  syncBuiltinESMExports()
}

/** Prepares the thread of a file that starts in this test. Returns the function that makes it wait for ever, and resolves when it does. */
function stallable(file: string): () => Promise<unknown> {
  const own = Worker
  class Stallable extends own {
    constructor(...[url, options]: ConstructorParameters<typeof Worker>) {
      super(url, String(url).includes(file) ? { ...options, execArgv: ['--import', import.meta.resolve('./stallable.ts')] } : options)
    }
  }
  replaceWorker(Stallable)
  const channel = new BroadcastChannel('stall')
  onTestFinished(() => {
    replaceWorker(own)
    channel.close()
  })
  return () => {
    const stalled = new Promise((resolve) => channel.addEventListener('message', resolve, { once: true }))
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a BroadcastChannel has one origin
    channel.postMessage('stall')
    return stalled
  }
}

test('a writer that does not answer is ended: its calls reject, and what it has answered is in the queue', async () => {
  const directory = folder()
  const stall = stallable('worker-main')
  const options = { threads: true, create: true }
  const { store, sides, close } = await openStore(directory, options)
  await store.enqueue(mail(store))
  expect([sides.writer.isWaiting, sides.writer.answered > 0]).toEqual([false, true])
  await stall()
  const call = store.upkeep.ping().catch((error: unknown) => error)
  const before = sides.writer.answered
  const closed = close()
  expect([sides.writer.isWaiting, sides.writer.answered]).toEqual([true, before])
  expect(await sides.writer.abandon()).toBe(true)
  expect(await call).toMatchObject({ name: 'OutcomeUnknown' })
  await closed
  expect(sides.writer.isWaiting).toBe(false)
  await expect(store.upkeep.ping()).rejects.toMatchObject({ name: 'OutcomeUnknown' })

  const again = await openStore(directory, options)
  expect(await again.reader.list(ANY_MESSAGE, { after: 0, limit: 9 })).toHaveLength(1)
  await again.close()
})

test('a reader that does not answer is ended: its calls reject, and the store goes on', async () => {
  const stall = stallable('reader-worker')
  const { store, reader, sides, close } = await openStore(folder(), { threads: true, create: true })
  await reader.lastId()
  await stall()
  const call = reader.lastId().catch((error: unknown) => error)
  expect([sides.reader.isWaiting, sides.writer.isWaiting]).toEqual([true, false])
  await store.upkeep.ping()
  const closed = close()
  expect(await sides.reader.abandon()).toBe(true)
  expect(await call).toMatchObject({ name: 'StoreUnavailable', message: 'the reader of the store did not answer, and was ended' })
  await closed
  expect(sides.reader.isWaiting).toBe(false)
})
