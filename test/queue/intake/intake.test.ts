/** Intake before a store whose commits are delayed or fail. */
import { METHODS } from '../../../src/store/methods.ts'
import { QueueWorld } from '../../support/queue-world.ts'
import { HOUR } from '../../../src/system/clock.ts'
import { expect, test } from 'vitest'
import { loadTemplates } from '../../../src/bounce/templates.ts'
import { defaultConfig } from '../../../src/config/load.ts'
import { Relay } from '../../../src/relay/relay.ts'
import { openInlineStore } from '../../../src/store/sqlite/clients/inline-store.ts'
import { CHUNK_BYTES } from '../../../src/store/chunks.ts'
import { OutcomeUnknown, StoreUnavailable, type QueueStore } from '../../../src/store/queue-store.ts'
import { seededRandom } from '../../../src/system/random.ts'
import { Events } from '../../../src/telemetry/events.ts'
import { MemoryNet } from '../../../src/testkit/virtual/memory-net.ts'
import { TimeDriver } from '../../../src/testkit/virtual/time-driver.ts'
import { VirtualClock } from '../../../src/testkit/virtual/virtual-clock.ts'
import { OK } from '../../conformance/mail.ts'

const SUBMISSION = {
  envelope: { sender: 'ann@us.example', recipients: [{ address: 'bob@far.example' }] },
  client: { uid: 1000 },
  content: [Buffer.from('Subject: x\r\n\r\nx\r\n')],
}

/** A relay over a real store, some methods of which are replaced; deliveries succeed at once. */
async function relayWith(replaced: (store: QueueStore) => Partial<QueueStore>) {
  const clock = new VirtualClock()
  const { store } = await openInlineStore({ memory: true })
  const net = new MemoryNet(clock, {
    lookupMx: () => ({ kind: 'none', nxdomain: false }),
    lookupAddresses: () => ({ kind: 'none', nxdomain: false }),
    dial: () => ({ kind: 'closed', code: 'ECONNREFUSED' }),
  })
  const loaded = defaultConfig('relay.example')
  const relay = new Relay({
    config: loaded.config,
    clock,
    random: seededRandom(1),
    net,
    store: { ...store, ...replaced(store) },
    events: new Events(() => clock.now()),
    templates: loadTemplates(loaded).templates,
    watchAgent: () => ({
      deliver: async ({ recipients }) => ({
        outcomes: new Map(recipients.map(({ id }) => [id, { outcome: 'delivered', status: OK }])),
        feedback: 'positive',
        relay: null,
        connectionUse: 1,
        times: { startedAt: clock.now(), transmittingAt: clock.now(), endedAt: clock.now() },
      }),
      close: async () => undefined,
    }),
  })
  const driver = new TimeDriver(clock, { net })
  return { relay, rest: () => driver.runUntil(clock.now()) }
}

test('a message is acknowledged after its commit, not before', async () => {
  const commit = Promise.withResolvers<void>()
  const { relay, rest } = await relayWith((store) => ({ enqueue: (entry) => commit.promise.then(() => store.enqueue(entry)) }))
  let acknowledged = false
  const accepted = relay.acceptor.accept(SUBMISSION).then((acceptance) => {
    acknowledged = true
    return acceptance
  })
  await rest()
  expect(acknowledged).toBe(false)
  commit.resolve()
  expect((await accepted).kind).toBe('queued')
})

test('long contents gather up to 16 chunks before they are staged, and 128 together', async () => {
  const { relay } = await relayWith(() => ({}))
  const { intake } = relay
  const chunk = [new Uint8Array(CHUNK_BYTES)]
  const from: number[] = []
  for (let content = 1; content <= 30; content++) {
    await intake.stage(content, 0, chunk, CHUNK_BYTES)
    from.push(intake.stageFrom)
  }
  expect(from.filter((_, n) => [0, 7, 8, 19, 24, 25, 29].includes(n))).toEqual([16, 16, 14, 6, 5, 5, 5])
  for (let content = 1; content <= 30; content++) await intake.unstage(content)
  expect(intake.stageFrom).toBe(16)
})

test('a message whose commit has an unknown outcome is no longer counted as arriving', async () => {
  const { relay } = await relayWith(() => ({ enqueue: () => Promise.reject(new OutcomeUnknown('the answer to a commit was lost')) }))
  for (let n = 0; n < 30; n++) {
    const receiver = relay.acceptor.open(SUBMISSION)
    await receiver.write([Buffer.alloc(6 * CHUNK_BYTES, 'x'.repeat(76) + '\r\n')])
    expect(await receiver.end()).toEqual({ kind: 'unknown' })
  }
  expect(relay.intake.stageFrom).toBe(16)
})

test('a receiver stages what exceeds 256 kB at once, and the following chunks together', async () => {
  const calls: number[] = []
  const { relay } = await relayWith((store) => ({
    stage: (content, from, chunks, keeps) => (calls.push(chunks.length), store.stage(content, from, chunks, keeps)),
  }))
  const content = Array.from({ length: 40 }, () => Buffer.alloc(CHUNK_BYTES, `${'x'.repeat(62)}\r\n`))
  expect(await relay.acceptor.accept({ ...SUBMISSION, content: [...SUBMISSION.content, ...content] })).toMatchObject({ kind: 'queued' })
  expect(calls).toEqual([5, 16, 16])
})

const ORIGIN = { sender: 'app@example.com', user: undefined, address: null }

test('mail is refused before its content as long as an outcome cannot be committed', async () => {
  const { relay, rest } = await relayWith(({ upkeep }) => ({
    settle: () => Promise.reject(new StoreUnavailable('the disk is full')),
    claimDue: () => Promise.reject(new StoreUnavailable('the disk is full')),
    upkeep: { ...upkeep, ping: () => Promise.reject(new StoreUnavailable('the disk is full')) },
  }))
  await relay.start()
  expect(await relay.intake.refusal(1, ORIGIN, false)).toBeUndefined()
  await relay.acceptor.accept(SUBMISSION)
  await rest()
  expect(await relay.intake.refusal(1, ORIGIN, false)).toEqual({ code: 451, status: '4.3.0', text: 'Error: queue file write error' })
})

test('a refusal for a full queue makes no call of the store', async () => {
  const world = await QueueWorld.create({ remote: () => ({ kind: 'accepts', takes: HOUR }), config: { queue_message_limit: 1 } })
  await world.relay.start()
  await world.accept(['ann@far.example'])
  const calls: string[] = []
  const { store } = world
  for (const port of [store, store.upkeep, store.shares])
    for (const name of Object.keys(METHODS)) {
      const method: unknown = Reflect.get(port, name)
      if (typeof method === 'function')
        Reflect.set(port, name, (...args: readonly unknown[]): unknown => {
          calls.push(name)
          return Reflect.apply(method, port, args)
        })
    }
  expect(world.relay.intake.refusal(0, ORIGIN, false)).toEqual({
    code: 452,
    status: '4.3.1',
    text: 'Error: queue is full, try again later',
    limit: 'queue',
  })
  expect(calls).toEqual([])
  await store.upkeep.ping()
  expect(calls).toEqual(['ping'])
  await world.close()
})
