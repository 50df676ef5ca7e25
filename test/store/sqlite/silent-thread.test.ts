/** Threads of the store that do not answer: what the store tells of them, and their end. */
import { Session } from 'node:inspector'
import { expect, test } from 'vitest'
import { ANY_MESSAGE } from '../../../src/store/message-conditions.ts'
import { openStore } from '../../../src/store/sqlite/open-store.ts'
import { mail } from '../../conformance/mail.ts'
import { folder } from './folders.ts'

interface Attached {
  readonly params: { readonly sessionId: string; readonly workerInfo: { readonly url: string } }
}

/** Makes the thread of this process that runs a file wait for ever, without CPU time. */
function stall(file: string): void {
  const session = new Session()
  session.connect()
  const params = { expression: 'void setTimeout(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0), 0)' }
  const message = JSON.stringify({ id: 1, method: 'Runtime.evaluate', params })
  session.on('NodeWorker.attachedToWorker', ({ params: { sessionId, workerInfo } }: Attached) => {
    if (workerInfo.url.includes(file)) session.post('NodeWorker.sendMessageToWorker', { sessionId, message })
  })
  session.on('NodeWorker.receivedMessageFromWorker', () => session.disconnect())
  session.post('NodeWorker.enable', { waitForDebuggerOnStart: false })
}

/** Waits until a call has no answer for so long that the thread must be stalled. Returns the promises of the calls. */
async function silent<T>(ask: () => Promise<T>): Promise<readonly Promise<T | Error>[]> {
  const calls: Promise<T | Error>[] = []
  for (;;) {
    const call = ask().catch((error: unknown) => error as Error)
    calls.push(call)
    if ((await Promise.race([call, new Promise<'late'>((resolve) => setTimeout(() => resolve('late'), 1_000))])) === 'late') return calls
  }
}

test('a writer that does not answer is ended: its calls reject, and what it has answered is in the queue', async () => {
  const directory = folder()
  const options = { threads: true, create: true }
  const { store, sides, close } = await openStore(directory, options)
  await store.enqueue(mail(store))
  expect([sides.writer.isWaiting, sides.writer.answered > 0]).toEqual([false, true])
  stall('worker-main')
  const calls = await silent(() => store.upkeep.ping())
  const before = sides.writer.answered
  const closed = close()
  expect([sides.writer.isWaiting, sides.writer.answered]).toEqual([true, before])
  expect(await sides.writer.abandon()).toBe(true)
  expect(await calls.at(-1)).toMatchObject({ name: 'OutcomeUnknown' })
  await closed
  expect(sides.writer.isWaiting).toBe(false)
  await expect(store.upkeep.ping()).rejects.toMatchObject({ name: 'OutcomeUnknown' })

  const again = await openStore(directory, options)
  expect(await again.reader.list(ANY_MESSAGE, { after: 0, limit: 9 })).toHaveLength(1)
  await again.close()
})

test('a reader that does not answer is ended: its calls reject, and the store goes on', async () => {
  const { store, reader, sides, close } = await openStore(folder(), { threads: true, create: true })
  await reader.lastId()
  stall('reader-worker')
  const calls = await silent(() => reader.lastId())
  expect([sides.reader.isWaiting, sides.writer.isWaiting]).toEqual([true, false])
  await store.upkeep.ping()
  const closed = close()
  expect(await sides.reader.abandon()).toBe(true)
  expect(await calls.at(-1)).toMatchObject({ name: 'StoreUnavailable', message: 'the reader of the store did not answer, and was ended' })
  await closed
  expect(sides.reader.isWaiting).toBe(false)
})
