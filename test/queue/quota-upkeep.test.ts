/** The upkeep of quotas on a queue of several nodes. */
import { expect, test } from 'vitest'
import { DestinationPolicies } from '../../src/config/destination-policies.ts'
import { configFrom } from '../../src/config/load.ts'
import { queueIdOf } from '../../src/mail/message.ts'
import { quotaRequestOf } from '../../src/mail/message-times.ts'
import { EventRecorder } from '../../src/outbox/event-recorder.ts'
import { Quotas } from '../../src/queue/intake/quotas.ts'
import type { Origin } from '../../src/queue/intake/share-key.ts'
import { planHeldMail } from '../../src/queue/quota-planning.ts'
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

test('mail that is planned anew goes before mail that came meanwhile, and before the place of mail that is gone', async () => {
  const clock = new VirtualClock({ startsAt: T0 })
  const { store, reader } = openMemoryStore()
  const limited = (limit: string) =>
    configFrom({ quota: { app: { keys: 'sender', action: 'hold', limits: [limit] } } }, 'relay.example').config
  const quotas = new Quotas({ store, clock, isShared: false, used: () => undefined })
  quotas.configure(limited('1/1h'))
  const sender = 'app@us.example'
  const origin = { sender, user: null, address: '192.0.2.1' } as unknown as Origin
  let content = 0
  const accept = async (isStored = true): Promise<string> => {
    const id = ++content
    const charged = await quotas.admit(id, { origin, recipients: 1 })
    if (charged === undefined || 'refusal' in charged) throw new Error('it was not accepted')
    const { charges, hold } = charged
    const entry = mail(store, { sender, to: [{ address: 'ann@far.example', dueAt: hold?.until ?? clock.now() }] })
    const times = hold === null ? {} : { notBefore: hold.until, scheduled: true, holdRequest: hold.request }
    const message = { ...entry.message, ...times } as const
    if (isStored) await store.enqueue({ ...entry, message })
    await store.records.quotaCounts.charge(charges)
    quotas.ended(id, true)
    return queueIdOf(message)
  }
  const ids = [await accept(), await accept(), await accept(), await accept()]
  // A message that was deleted keeps its place.
  await accept(false)
  quotas.configure(limited('3/1h'))
  let isFirst = true
  const details: typeof reader.details = async (queueId) => {
    if (isFirst) {
      isFirst = false
      ids.push(await accept())
    }
    return reader.details(queueId)
  }
  const policies = new DestinationPolicies(limited('3/1h'))
  const deps = {
    store,
    reader: { ...reader, details },
    clock,
    policies: () => policies,
    scheduler: { workAdded: () => undefined },
    quotas,
    owns: () => true,
  }
  await planHeldMail(deps, null, new AbortController().signal)
  const hours = async (id: string) => (((await reader.details(id))?.message.notBefore ?? T0) - T0) / HOUR
  const [, second = '', third = '', fourth = '', meanwhile = ''] = ids
  expect([await hours(second), await hours(third)]).toEqual([0, 0])
  for (const one of [fourth, meanwhile]) expect(await hours(one)).toBeCloseTo(13 / 12)
})
