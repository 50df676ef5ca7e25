/** The upkeep of quotas on a queue of several nodes. */
import { expect, test } from 'vitest'
import { configFrom } from '../../src/config/load.ts'
import { EventRecorder } from '../../src/outbox/event-recorder.ts'
import { QuotaUpkeep } from '../../src/queue/quota-upkeep.ts'
import { openMemoryStore } from '../../src/store/memory/memory-store.ts'
import { HOUR, MINUTE } from '../../src/system/clock.ts'
import { Events } from '../../src/telemetry/events.ts'
import { VirtualClock } from '../../src/testkit/virtual/virtual-clock.ts'

test('a node takes over the limits that are used up of the keys that it owns, of which it knows only after its start', async () => {
  const clock = new VirtualClock()
  const { store } = openMemoryStore()
  const { config } = configFrom({ quota: { app: { keys: 'sender', limits: ['2/1h'] } } }, 'relay.example')
  const mail = { quota: 'app', span: HOUR, begin: clock.now(), messages: 2, recipients: 2, until: clock.now() + 2 * HOUR }
  await store.records.quotaCounts.charge([
    { ...mail, key: 'own@us.example' },
    { ...mail, key: 'other@us.example' },
  ])
  const owned = new Set<string>()
  const upkeep = new QuotaUpkeep(
    {
      store,
      reader: undefined,
      clock,
      events: new Events(() => clock.now()),
      recorder: new EventRecorder(clock),
      policies: () => {
        throw new Error('no mail is planned without a reader')
      },
      scheduler: { workAdded: () => undefined },
      owns: (key) => owned.has(key),
      isShared: true,
    },
    config,
  )
  await upkeep.start()
  expect(upkeep.full).toEqual([])
  owned.add('own@us.example')
  const looksAt = clock.now() + MINUTE
  while ((clock.nextAt() ?? Infinity) <= looksAt) {
    clock.runNext()
    await new Promise(setImmediate)
  }
  expect(upkeep.full).toMatchObject([{ quota: 'app', key: 'own@us.example', limit: '2/1h', action: 'refuse' }])
  await upkeep.stop()
})
