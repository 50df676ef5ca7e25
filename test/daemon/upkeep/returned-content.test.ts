import { expect, onTestFinished, test } from 'vitest'
import { limitReturnedContent } from '../../../src/daemon/upkeep/returned-content.ts'
import { openMemoryStore } from '../../../src/store/memory/memory-store.ts'
import { HOUR, SECOND, type Duration } from '../../../src/system/clock.ts'
import { eventLoopTurn } from '../../../src/system/event-loop.ts'
import { QueueClock } from '../../../src/system/queue-clock.ts'
import { VirtualClock } from '../../../src/testkit/virtual/virtual-clock.ts'
import { first, ownerOf, queue, T0, UNKNOWN } from '../../conformance/mail.ts'

test('a retention of 0 also deletes what a settlement that was under way keeps, and looks ever less often', async () => {
  const machine = new VirtualClock({})
  const { store, reader } = openMemoryStore()
  const returned = async (): Promise<number> => {
    const id = await queue(store, { leased: true })
    const bounced = { recipient: first(id), state: 'bounced' as const, at: T0, attempts: 1, last: UNKNOWN }
    await store.settle({ owner: ownerOf(store), message: id, recipients: [bounced], attempts: [], keepUntil: Number.MAX_SAFE_INTEGER })
    return id
  }
  let looks = 0
  const departed = { dropKept: (...limits: Parameters<typeof store.departed.dropKept>) => (looks++, store.departed.dropKept(...limits)) }
  const config = { returned_content_retention: 7 * 24 * HOUR, returned_content_limit: Number.MAX_SAFE_INTEGER }
  const task = limitReturnedContent({ config: () => config, clock: new QueueClock(machine), store: { dropKept: departed.dropKept } })
  onTestFinished(() => task.stop())
  const pass = async (time: Duration): Promise<void> => {
    const end = machine.monotonic() + time
    machine.after(time, () => undefined)
    while (machine.monotonic() < end) {
      machine.runNext()
      await eventLoopTurn()
    }
  }
  const earlier = await returned()
  await pass(20 * SECOND)
  expect(await reader.records.keptContents.of(earlier)).toBeDefined()
  config.returned_content_retention = 0
  await pass(6 * SECOND)
  expect(await reader.records.keptContents.of(earlier)).toBeUndefined()
  const underWay = await returned()
  await pass(30 * SECOND)
  expect(await reader.records.keptContents.of(underWay)).toBeUndefined()
  await pass(2 * HOUR)
  looks = 0
  await pass(10 * HOUR)
  expect(looks).toBeGreaterThanOrEqual(9)
  expect(looks).toBeLessThanOrEqual(11)
})
