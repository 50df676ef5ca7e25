/**
 * Operations on mail that was claimed and waits for a slot (default_process_limit). When an operation has answered, no attempt of its
 * messages begins; mail in transfer is the exception, whose deferred recipients are then held, deleted or expired.
 */
import { describe, expect, test } from 'vitest'
import { minutes, seconds } from '../../src/system/clock.ts'
import { queueIdOf } from '../../src/mail/message.ts'
import { Operations } from '../../src/queue/operations.ts'
import { moveQueue } from '../../src/queue/queue-move.ts'
import { MemoryMoves } from '../support/memory-moves.ts'
import { openMemoryStore } from '../../src/store/memory/memory-store.ts'
import { emptyQueue } from '../../src/store/memory/queue-state.ts'
import { ANY_MESSAGE } from '../../src/store/message-conditions.ts'
import { Events } from '../../src/telemetry/events.ts'
import { type Behaviour } from '../support/modelled-remote.ts'
import { QueueWorld } from '../support/queue-world.ts'

const slow: Behaviour = { kind: 'accepts', takes: seconds(25) }
const defers: Behaviour = { kind: 'replies', reply: '450 4.2.1 busy', takes: seconds(25) }

/** A relay with one slot, which a delivery has, and claimed mail that waits for it. Returns the queue ids. */
async function busyRelay({
  waiting = 5,
  remote = slow,
  store = 'memory',
}: { readonly waiting?: number; readonly remote?: Behaviour; readonly store?: 'memory' | 'sqlite' } = {}) {
  const world = await QueueWorld.create({
    remote: ({ destination }) => (destination === 'far.example' ? remote : { kind: 'accepts' }),
    config: { default_process_limit: 1 },
    store,
  })
  const ids: string[] = []
  for (let n = 0; n <= waiting; n++) ids.push(await world.accept([`ann${n}@far.example`]))
  await world.rest()
  expect(world.attempts()).toHaveLength(1)
  expect(await queues(world)).toEqual(Array.from({ length: waiting + 1 }, () => 'active'))
  return { world, ids, waiting: ids.slice(1) }
}

const listed = (world: QueueWorld, queue: 'trash' | null = null) => world.reader.list({ ...ANY_MESSAGE, queue }, { after: 0, limit: 1_000 })
const queues = async (world: QueueWorld) => (await listed(world)).map(({ queue }) => queue)
const leased = async (world: QueueWorld, queue: 'trash' | null = null) =>
  (await listed(world, queue)).filter(({ recipients }) => recipients.some(({ state }) => state === 'leased')).length

describe.each(['memory', 'sqlite'] as const)('with the queue in %s', (store) => {
  test.each(['hold', 'delete'] as const)('%s of all mail: only the message in transfer is delivered', async (operation) => {
    const { world } = await busyRelay({ store })
    expect(await world.operate(operation, 'all')).toMatchObject({ matched: 6, changed: 6, inTransfer: 1 })
    expect(await leased(world, operation === 'hold' ? null : 'trash')).toBe(1)
    await world.advance(minutes(60))
    expect(world.attempts()).toHaveLength(1)
    expect(world.arrivals()).toHaveLength(1)
    // They are tried again when the operation is taken back.
    await world.operate(operation === 'hold' ? 'release' : 'restore', 'all')
    await world.advance(minutes(60))
    expect(world.arrivals()).toHaveLength(6)
  })

  test('expire: mail without a slot is returned without an attempt', async () => {
    const { world } = await busyRelay({ store })
    expect(await world.operate('expire', 'all')).toMatchObject({ changed: 6, inTransfer: 1 })
    await world.advance(minutes(60))
    expect(world.attempts('far.example')).toHaveLength(1)
    expect(world.happened('expired')).toHaveLength(5)
  })

  test('requeue: mail without a slot moves to new messages, and no attempt of the former ones begins', async () => {
    const { world } = await busyRelay({ store })
    const former = new Set((await listed(world)).map(({ message }) => message.id))
    expect(await world.operate('requeue', 'all')).toMatchObject({ changed: 5, inTransfer: 1 })
    await world.advance(minutes(60))
    expect(world.attempts().filter(({ message }) => former.has(message))).toHaveLength(1)
    expect(world.arrivals()).toHaveLength(6)
  })

  test('a deferred recipient in transfer is then held, deleted or expired', async () => {
    const after: Record<string, unknown> = {}
    for (const operation of ['hold', 'delete', 'expire'] as const) {
      const { world } = await busyRelay({ store, remote: defers, waiting: 1 })
      expect(await world.operate(operation, 'all')).toMatchObject({ changed: 2, inTransfer: 1 })
      await world.advance(minutes(60))
      expect(world.attempts('far.example')).toHaveLength(1)
      after[operation] = [await queues(world), (await listed(world, 'trash')).length, world.happened('expired').length]
    }
    expect(after).toEqual({ hold: [['hold', 'hold'], 0, 0], delete: [[], 2, 0], expire: [[], 0, 2] })
  })
})

test('suspending the destination, or the answer to a single id, ends the attempts as well', async () => {
  const { world, waiting } = await busyRelay({ waiting: 3 })
  const [one = ''] = waiting
  expect(await world.operate('hold', [one])).toMatchObject({ matched: 1, changed: 1, inTransfer: 0 })
  await world.relay.schedulerControl.suspend('far.example', { by: 'op', until: null, reason: null })
  await world.advance(minutes(60))
  expect(world.attempts()).toHaveLength(1)
  await world.relay.schedulerControl.resume('far.example', 'op')
  await world.advance(minutes(60))
  expect(world.arrivals()).toHaveLength(3)
})

test('a message that was received a moment ago, before it is in memory', async () => {
  const { world } = await busyRelay({ waiting: 0 })
  // Claimed with its commit: the operation sees it before the relay has the answer to that commit.
  const accepted = world.accept(['bob@far.example'])
  const { id } = world.relay.intake.begin()
  const held = world.relay.scheduler.takeBack([id - 1], { rests: false })
  await Promise.all([accepted, held])
  expect((await held).given).toEqual([id - 1])
})

test('a purge removes claimed mail at once', async () => {
  const { world } = await busyRelay()
  const { relay, store, reader, clock } = world
  const { policies, recorder, schedulerControl: scheduler } = relay
  const events = new Events(() => clock.now())
  const operations = new Operations({
    store,
    reader,
    clock,
    events,
    recorder,
    scheduler,
    policies: () => policies,
    retention: () => relay.config,
  })
  const selection = { kind: 'filter', filter: ANY_MESSAGE, limit: null } as const
  const purge = {
    operation: 'delete',
    selection,
    queues: null,
    purge: true,
    release: null,
    class: null,
    dryRun: false,
    who: 'op',
    commandLine: '',
  } as const
  expect(await operations.perform({ ...purge, dryRun: true })).toMatchObject({ matched: 6, inTransfer: 1 })
  expect(await operations.perform(purge)).toMatchObject({ changed: 6, inTransfer: 1 })
  expect(await listed(world, 'trash')).toHaveLength(1)
  await world.advance(minutes(60))
  expect(world.arrivals()).toHaveLength(1)
})

test('a dead destination is probed again after its claimed probe was held', async () => {
  let isDown = true
  const world = await QueueWorld.create({
    remote: ({ destination }) => (destination === 'slow.example' ? slow : isDown ? { kind: 'refuses-connections' } : { kind: 'accepts' }),
    config: { default_process_limit: 1 },
  })
  for (let n = 0; n < 20; n++) await world.accept([`ann${n}@far.example`])
  await world.advance(seconds(299))
  expect(world.happened('died')).toHaveLength(1)
  // The slot is taken when the probe becomes due.
  await world.accept(['eve@slow.example'])
  await world.advance(seconds(2))
  const claimed = (await listed(world)).filter(
    ({ queue, recipients }) => queue === 'active' && recipients[0]?.destination === 'far.example',
  )
  expect(claimed).toHaveLength(1)
  isDown = false
  await world.operate(
    'hold',
    claimed.map(({ message }) => queueIdOf(message)),
  )
  await world.advance(minutes(60))
  // Another message is the next probe.
  expect(world.arrivals().filter(({ to }) => to.some((address) => address.endsWith('@far.example')))).toHaveLength(19)
})

test('mail that other mail was preempting, and retries, are taken back too', async () => {
  const { world } = await busyRelay({ waiting: 0 })
  await world.accept(Array.from({ length: 60 }, (_, n) => `many${n}@d${n}.example`))
  await world.accept(['small@far.example'])
  await world.rest()
  expect(await world.operate('hold', 'all')).toMatchObject({ changed: 3, inTransfer: 1 })
  await world.advance(minutes(60))
  expect(world.attempts()).toHaveLength(1)
})

test('400 messages in rounds of 64: those in transfer at the end are counted', async () => {
  const { world } = await busyRelay({ waiting: 400 })
  const summary = await world.operate('hold', 'all')
  expect(summary).toMatchObject({ changed: 401, inTransfer: 1 })
  await world.advance(minutes(60))
  expect(world.attempts()).toHaveLength(1)
})

test('a move takes claimed mail along; what is in transfer stays', async () => {
  const [maps, others] = [emptyQueue(), emptyQueue()]
  const opened = openMemoryStore(maps)
  const world = await QueueWorld.create({ remote: () => slow, config: { default_process_limit: 1 }, queue: opened })
  for (let n = 0; n < 100; n++) await world.accept([`ann${n}@far.example`])
  await world.rest()
  const clock = world.clock
  const summary = await moveQueue(
    { isFinal: false, who: 'op' },
    {
      source: { ...opened, clock, moves: new MemoryMoves(maps) },
      target: { ...openMemoryStore(others), clock, moves: new MemoryMoves(others) },
      names: { source: 'here', target: 'there' },
      sendsNotices: () => true,
      takeBack: (messages, options) => world.relay.scheduler.takeBack(messages, options),
      returned: (due) => world.relay.scheduler.workAdded(due),
      pause: async () => undefined,
      progress: () => undefined,
      control: { close: async () => undefined, reopen: async () => undefined },
    },
  )
  expect(summary).toEqual({ moved: 99, inTransfer: 1, unreadable: [] })
  await world.advance(minutes(60))
  expect(world.attempts()).toHaveLength(1)
})
