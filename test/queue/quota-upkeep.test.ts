/** The upkeep of quotas on a queue of several nodes. */
import { expect, test } from 'vitest'
import { DestinationPolicies } from '../../src/config/destination-policies.ts'
import { configFrom } from '../../src/config/load.ts'
import { queueIdOf } from '../../src/mail/message.ts'
import { quotaRequestOf } from '../../src/mail/message-times.ts'
import { EventRecorder } from '../../src/outbox/event-recorder.ts'
import { QuotaUpkeep } from '../../src/queue/quota-upkeep.ts'
import { openMemoryStore } from '../../src/store/memory/memory-store.ts'
import { HOUR, MINUTE } from '../../src/system/clock.ts'
import { Events } from '../../src/telemetry/events.ts'
import { VirtualClock } from '../../src/testkit/virtual/virtual-clock.ts'
import { mail, T0 } from '../conformance/mail.ts'

/** A node that has not joined yet, with its queue. */
function openNode(quota: Readonly<Record<string, { readonly keys: string; readonly limits: readonly string[] }>>) {
  const clock = new VirtualClock({ startsAt: T0 })
  const { store, reader } = openMemoryStore()
  const { config } = configFrom({ quota }, 'relay.example')
  const owned = new Set<string>()
  const policies = new DestinationPolicies(config)
  const upkeep = new QuotaUpkeep(
    {
      store,
      reader,
      clock,
      events: new Events(() => clock.now()),
      recorder: new EventRecorder(clock),
      policies: () => policies,
      scheduler: { workAdded: () => undefined },
      owns: (key) => owned.has(key),
      isShared: true,
    },
    config,
  )
  return { clock, store, reader, owned, upkeep }
}

async function runAMinute(clock: VirtualClock): Promise<void> {
  const end = clock.now() + MINUTE
  while ((clock.nextAt() ?? Infinity) <= end) {
    clock.runNext()
    for (let n = 0; n < 20; n++) await new Promise(setImmediate)
  }
}

test('a node takes over the limits that are used up of the keys that it owns, of which it knows only after its start', async () => {
  const { clock, store, owned, upkeep } = openNode({ app: { keys: 'sender', limits: ['2/1h'] } })
  const charge = { quota: 'app', span: HOUR, begin: clock.now(), messages: 2, recipients: 2, until: clock.now() + 2 * HOUR }
  await store.records.quotaCounts.charge([
    { ...charge, key: 'own@us.example' },
    { ...charge, key: 'other@us.example' },
  ])
  await upkeep.start()
  expect(upkeep.full).toEqual([])
  owned.add('own@us.example')
  await runAMinute(clock)
  expect(upkeep.full).toMatchObject([{ quota: 'app', key: 'own@us.example', limit: '2/1h', action: 'refuse' }])
  await upkeep.stop()
})

test('a node that starts without the quota that holds mail releases the mail of its keys, which it knows only after its start', async () => {
  const { clock, store, reader, owned, upkeep } = openNode({})
  const until = T0 + 5 * HOUR
  const held = async (sender: string): Promise<string> => {
    const holdRequest = quotaRequestOf({ quota: 'app', limit: '2/1h', recipients: 1, sender })
    const entry = mail(store, { sender, to: [{ address: 'ann@far.example', dueAt: until }] })
    const message = { ...entry.message, notBefore: until, scheduled: true, holdRequest } as const
    await store.enqueue({ ...entry, message })
    return queueIdOf(message)
  }
  const [own, other] = [await held('own@us.example'), await held('other@us.example')]
  const charge = { quota: 'app', span: HOUR, begin: clock.now(), messages: 2, recipients: 2, until: clock.now() + 2 * HOUR }
  await store.records.quotaCounts.charge([{ ...charge, key: 'own@us.example' }])
  await upkeep.start()
  owned.add('own@us.example')
  await runAMinute(clock)
  expect((await reader.details(own))?.message.notBefore).toBeLessThanOrEqual(T0 + MINUTE)
  expect((await reader.details(other))?.message.notBefore).toBe(until)
  await upkeep.stop()
})
