import { rmSync } from 'node:fs'
import type { Worker } from 'node:worker_threads'
import { expect, test } from 'vitest'
import type { FoundMessage, QueueReader } from '../../../../src/store/queue-reader.ts'
import { ANY_MESSAGE, type QueueFilter } from '../../../../src/store/message-conditions.ts'
import { queueFile } from '../../../../src/store/folder/queue-folder.ts'
import { openInlineStore } from '../../../../src/store/sqlite/clients/inline-store.ts'
import { openWorkerReader } from '../../../../src/store/sqlite/clients/worker-reader.ts'
import { VirtualClock } from '../../../../src/testkit/virtual/virtual-clock.ts'
import { fillBacklog } from '../../../support/backlog.ts'
import { folder } from '../folders.ts'

const T0 = Date.parse('2026-11-20T10:00:00Z')

/** All messages that a filter finds, page by page. */
async function allOf(reader: QueueReader, filter: QueueFilter): Promise<readonly FoundMessage[]> {
  const found: FoundMessage[] = []
  for (;;) {
    const page = await reader.find(filter, { after: found.at(-1)?.id ?? 0, limit: 50 })
    found.push(...page)
    if (page.length < 50) return found
  }
}

test('a reader in a thread answers as the one beside it does', async () => {
  const directory = folder()
  const { store, reader } = await openInlineStore({ directory })
  await fillBacklog(store, { messages: 500, now: T0, destinationOf: (n) => `d${n % 3}.example`, dueIn: (n) => 60_000 + n })
  const inThread = openWorkerReader(directory)
  for (const given of [{}, { destination: 'd1.example' }, { sender: 'app7@*' }, { queue: 'hold' as const }]) {
    const filter = { ...ANY_MESSAGE, ...given }
    const found = await allOf(inThread, filter)
    expect(found).toEqual(await allOf(reader, filter))
    expect(found.length > 0).toBe(filter.queue === null)
  }
  const page = { after: 0, limit: 20 }
  expect(await inThread.list(ANY_MESSAGE, page)).toEqual(await reader.list(ANY_MESSAGE, page))
  expect(await inThread.counts()).toEqual(await reader.counts())
  expect(await inThread.readChunk({ contentId: 1 }, 0)).toEqual(Uint8Array.from(Buffer.alloc(1_000, 'x')))
  await inThread.close()
  await expect(inThread.counts()).rejects.toThrow('the reader is closed')
  await store.close()
})

test('a call that fails has the error of the reader, and the next one is answered', async () => {
  const directory = folder()
  const { store } = await openInlineStore({ directory })
  await store.close()
  const reader = openWorkerReader(directory)
  const later = { ...ANY_MESSAGE, domain: 'far.example' } as QueueFilter
  const answers = [reader.list(later, { after: 0, limit: 1 }), reader.counts()]
  await expect(answers[0]).rejects.toThrow('a queue cannot be filtered by domain')
  await expect(answers[1]).resolves.toEqual([])
  await reader.close()
})

test('while there is no queue each call fails, with the exit code for it', async () => {
  const directory = folder()
  const reader = openWorkerReader(directory)
  for (let n = 0; n < 2; n++) await expect(reader.counts()).rejects.toMatchObject({ name: 'NoSuchQueue', exitCode: 69 })
  const { store } = await openInlineStore({ directory })
  await expect(reader.counts()).resolves.toEqual([])
  await store.close()
  await reader.close()
  rmSync(queueFile(directory))
})

test('the thread ends after a minute without a call, and the next call is answered', async () => {
  const directory = folder()
  const { store } = await openInlineStore({ directory })
  const threads = { started: 0, running: 0 }
  const count = (worker: Worker): void => {
    threads.started++
    threads.running++
    worker.once('exit', () => threads.running--)
  }
  process.on('worker', count)
  const clock = new VirtualClock()
  const reader = openWorkerReader(directory, clock)
  await reader.counts()
  clock.jumpTo(clock.now() + 59_000)
  await reader.counts()
  expect(clock.nextAt()).toBe(clock.now() + 60_000)
  const last = reader.counts()
  clock.runNext()
  expect(await last).toEqual([])
  await expect.poll(() => threads).toEqual({ started: 1, running: 0 })
  expect(await reader.counts()).toEqual([])
  expect(threads).toEqual({ started: 2, running: 1 })
  await reader.close()
  expect({ ...threads, pending: clock.pending }).toEqual({ started: 2, running: 0, pending: 0 })
  process.off('worker', count)
  await store.close()
})

test('a reader that was never asked has no thread to end', async () => {
  await openWorkerReader(folder()).close()
})
