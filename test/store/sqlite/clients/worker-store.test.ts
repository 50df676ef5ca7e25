import { expect, test } from 'vitest'
import { CHUNK_BYTES } from '../../../../src/store/chunks.ts'
import { openWorkerStore } from '../../../../src/store/sqlite/clients/worker-store.ts'
import { eventLoopTurn } from '../../../../src/system/event-loop.ts'
import { folder } from '../folders.ts'

/** Lets a turn of the event loop take 2 ms. */
async function busyTurn(): Promise<void> {
  const end = performance.now() + 2
  while (performance.now() < end);
  await eventLoopTurn()
}

test('calls of busy turns are answered together, in order', async () => {
  const { store } = await openWorkerStore({ directory: folder() })
  let turn = 0
  const answered: [call: number, turn: number][] = []
  const pings: Promise<void>[] = []
  for (; turn < 4; turn++) {
    const call = turn
    pings.push(store.upkeep.ping().then(() => void answered.push([call, turn])))
    await busyTurn()
  }
  for (; answered.length < 4; turn++) await eventLoopTurn()
  await Promise.all(pings)
  const [[, first] = [0, 0]] = answered
  expect(answered).toEqual([0, 1, 2, 3].map((call) => [call, first]))
  await store.close()
})

test('a call that still waits for others is made before the store closes', async () => {
  const { store } = await openWorkerStore({ directory: folder() })
  await store.upkeep.ping()
  const call = store.upkeep.ping()
  const closed = store.close()
  await call
  await closed
  await expect(store.upkeep.ping()).rejects.toThrow('the store is closed')
})

test('content beyond the limit in flight waits, and is stored', async () => {
  const { store } = await openWorkerStore({ directory: folder() })
  const [content = 0] = await store.nextIds(1)
  const chunks = () => Array.from({ length: 64 }, () => new Uint8Array(CHUNK_BYTES).fill(7))
  await Promise.all(Array.from({ length: 10 }, (_, n) => store.stage(content, n * 64, chunks())))
  expect(await store.readChunk(content, 639)).toEqual(new Uint8Array(CHUNK_BYTES).fill(7))
  expect(await store.readChunk(content, 640)).toBeUndefined()
  await store.close()
})
