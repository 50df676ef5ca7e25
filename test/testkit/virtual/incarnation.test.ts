/** A relay that is killed while it starts reads nothing any more, and an error of its last read, such as a closed file, is dropped. */
import { expect, test } from 'vitest'
import { openInlineStore } from '../../../src/store/sqlite/clients/inline-store.ts'
import { Incarnation } from '../../../src/testkit/virtual/incarnation.ts'
import { MemoryNet } from '../../../src/testkit/virtual/memory-net.ts'
import { VirtualClock } from '../../../src/testkit/virtual/virtual-clock.ts'

test('calls of a reader, and of its records, end with the incarnation', async () => {
  const { store, reader } = await openInlineStore({ memory: true })
  const clock = new VirtualClock()
  const net = new MemoryNet(clock, {
    lookupMx: () => ({ kind: 'none', nxdomain: true }),
    lookupAddresses: () => ({ kind: 'none', nxdomain: true }),
    lookupTxt: () => ({ kind: 'none', nxdomain: true }),
    dial: () => ({ kind: 'closed', code: 'ECONNREFUSED' }),
  })
  const life = new Incarnation({ clock, net, store, onEvent: () => undefined })
  const reading = life.readingBy(reader)
  expect([await reading.records.stsPolicies.all(), await reading.trashCount()]).toEqual([[], await reader.trashCount()])

  const settled: unknown[] = []
  const last = reading.records.stsPolicies.all()
  life.die()
  await reader.close()
  await store.close()
  for (const call of [last, reading.records.stsPolicies.all(), reading.trashCount()])
    void call.then(
      (answer) => settled.push(answer),
      (error: unknown) => settled.push(error),
    )
  await new Promise((resolve) => void setImmediate(resolve))
  expect(settled).toEqual([])
})
