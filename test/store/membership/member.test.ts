/** Nodes over one queue in memory, in virtual time. */
import { expect, test } from 'vitest'
import { MINUTE, SECOND, sleep, type Clock, type Duration } from '../../../src/system/clock.ts'
import { NOTHING_TAKEN } from '../../../src/store/membership/taken-back.ts'
import { joinMemoryQueue } from '../../support/memory-node-table.ts'
import { emptyQueue } from '../../../src/store/memory/queue-state.ts'
import { Member, type MembershipEvent } from '../../../src/store/membership/member.ts'
import type { MembershipListener } from '../../../src/store/membership/membership.ts'
import type { Arrivals, NodeTable } from '../../../src/store/membership/node-table.ts'
import { SHARDS, shardOf, type Shard } from '../../../src/store/membership/shards.ts'
import { Fenced, StoreUnavailable, type QueueStore } from '../../../src/store/queue-store.ts'
import { TimeDriver } from '../../../src/testkit/virtual/time-driver.ts'
import { VirtualClock } from '../../../src/testkit/virtual/virtual-clock.ts'
import { mail, T0 } from '../../conformance/mail.ts'

interface Node {
  readonly member: Member
  readonly table: NodeTable
  readonly store: QueueStore
  /** Shards for which the listener was called, and when; times in seconds. */
  readonly events: { readonly at: number; readonly event: MembershipEvent }[]
  readonly arrivals: Arrivals[]
  readonly lettingGo: { readonly at: number; readonly shards: readonly Shard[] }[]
  readonly state: { resumed: number; missed: number; reachable: boolean; losesAnswers: boolean; beatTakes: Duration }
}

/** A queue that nodes join, leave and lose. `lettingGo` is the time that a node needs to give the mail of a shard back. */
function cluster({ lettingGo = 0 }: { readonly lettingGo?: Duration } = {}) {
  const clock = new VirtualClock({ startsAt: T0 })
  const driver = new TimeDriver(clock, {})
  const queue = emptyQueue()
  const seconds = () => clock.monotonic() / SECOND
  let databaseAhead = 0
  const join = (): Node => {
    const state = { resumed: 0, missed: 0, reachable: true, losesAnswers: false, beatTakes: 0 }
    const { store, nodes } = joinMemoryQueue(queue, { name: 'n', now: () => T0 + clock.monotonic() + databaseAhead })
    const table = disturbed(nodes, state, clock)
    const [events, arrivals, letting]: [Node['events'], Arrivals[], Node['lettingGo']] = [[], [], []]
    const member = new Member({
      nodes: table,
      clock,
      keys: { shardOf },
      lease: 5 * SECOND,
      onEvent: (event) => events.push({ at: seconds(), event }),
    })
    const listener: MembershipListener = {
      taken: () => Promise.resolve(),
      releasing: async (shards, given) => {
        letting.push({ at: seconds(), shards })
        await sleep(clock, lettingGo)
        shards.forEach(given)
      },
      arrived: (arrived) => arrivals.push(arrived),
      missed: () => state.missed++,
      recalled: async () => NOTHING_TAKEN,
      resumed: () => state.resumed++,
    }
    member.attach(listener)
    return { member, table, store, events, arrivals, lettingGo: letting, state }
  }
  const start = async (count: number) => {
    const nodes = Array.from({ length: count }, join)
    for (const { member } of nodes) void member.start()
    await driver.rest()
    return nodes
  }
  const advance = (by: number) => driver.runUntil(clock.now() + by * SECOND)
  return { clock, queue, join, start, advance, setDatabaseAhead: (by: Duration) => (databaseAhead = by) }
}

/** Rejects while the database cannot be reached. Loses answers after the effect. */
const disturbed = (nodes: NodeTable, state: Node['state'], clock: Clock): NodeTable =>
  new Proxy(nodes, {
    get: (target, name: keyof NodeTable) => {
      if (name === 'me') return target.me
      if (name === 'onHint') return (listener: () => void) => target.onHint(() => state.reachable && listener())
      return async (...args: unknown[]) => {
        if (!state.reachable) throw new StoreUnavailable('no connection')
        const answer = await (target[name] as (...given: unknown[]) => Promise<unknown>).apply(target, args)
        if (name === 'beat' && state.beatTakes > 0) await sleep(clock, state.beatTakes)
        if (state.losesAnswers && name !== 'beat') throw new StoreUnavailable('the connection ended before the answer')
        return answer
      }
    },
  })

const owned = ({ member }: Node): number => member.view?.mine.length ?? 0
const kinds = ({ events }: Node) => events.map(({ event }) => event.kind)

test('a node that is alone takes all shards at its first beat', async () => {
  const { start } = cluster()
  const [only] = await start(1)
  expect(only?.events).toMatchObject([{ at: 0, event: { kind: 'shards-taken' } }])
  expect(only?.member.owns('far.example')).toBe(true)
  expect(only?.member.holds()).toBe(true)
})

test('a node that joins gets its share, four shards per beat, and each shard has one owner at every time', async () => {
  const { join, start, advance } = cluster({ lettingGo: 300 })
  const [first] = await start(1)
  if (first === undefined) return
  await advance(10)
  const second = join()
  void second.member.start()
  for (let n = 0; n < 800; n++) {
    await advance(0.1)
    for (const name of ['a.example', 'b.example', 'c.example']) {
      expect([first, second].filter(({ member }) => member.owns(name)).length).toBeLessThanOrEqual(1)
    }
  }
  expect([owned(first), owned(second)]).toEqual([128, 128])
  expect(Math.max(...first.lettingGo.map(({ shards }) => shards.length))).toBe(4)
  const beats = first.lettingGo.map(({ at }) => at)
  expect(Math.min(...beats.slice(1).map((at, n) => at - (beats[n] ?? 0)))).toBeGreaterThanOrEqual(1)
  expect(second.lettingGo).toEqual([])
})

test('a shard is released after its mail was given back, and not scheduled meanwhile', async () => {
  const { queue, join, start, advance } = cluster({ lettingGo: 3_500 })
  const [first] = await start(1)
  if (first === undefined) return
  void join().member.start()
  await advance(1)
  const [shard] = first.lettingGo[0]?.shards ?? []
  const name = Array.from({ length: 10_000 }, (_, n) => `${n}.example`).find((one) => shardOf(one) === shard) ?? ''
  expect(first.member.owns(name)).toBe(false)
  await advance(3)
  expect(queue.shards[shard ?? -1]).toBe(first.table.me)
  await advance(2)
  expect(queue.shards[shard ?? -1]).not.toBe(first.table.me)
})

test('a silent node rests before it is taken over, within a lease and two beats', async () => {
  const { start, advance } = cluster()
  const [a, b] = await start(2)
  if (a === undefined || b === undefined) return
  await advance(60)
  b.state.reachable = false
  await advance(4)
  expect(b.member.holds()).toBe(false)
  expect(kinds(a)).not.toContain('node-taken-over')
  await advance(3)
  expect(a.events.filter(({ event }) => event.kind === 'node-taken-over')).toMatchObject([
    { event: { node: b.table.me, takeover: { shards: 128, leases: 0 } } },
  ])
  expect(owned(a)).toBe(SHARDS)
  expect(a.member.owns('far.example')).toBe(true)
})

test('no node is silent after an outage of the database, though all beats are old', async () => {
  const { start, advance } = cluster()
  const [a, b] = await start(2)
  if (a === undefined || b === undefined) return
  await advance(10)
  for (const { state } of [a, b]) state.reachable = false
  await advance(20)
  a.state.reachable = true
  await advance(1)
  expect(a.member.view?.nodes.find(({ id }) => id === b.table.me)?.beatAge).toBeGreaterThan(15_000)
  expect(a.member.silent).toEqual([])
  await advance(5)
  expect(kinds(a)).toContain('node-taken-over')
})

test('a silent node is taken over when its lease has ended, not only at the next regular beat', async () => {
  const { start, advance } = cluster()
  const [a, b] = await start(2)
  if (a === undefined || b === undefined) return
  await advance(1.5)
  b.state.reachable = false
  // The answer with the last beat of b arrives later than usual.
  a.state.beatTakes = 100
  await advance(1)
  a.state.beatTakes = 0
  await advance(10)
  expect(a.events.filter(({ event }) => event.kind === 'node-taken-over')).toMatchObject([{ at: 7.1 }])
})

test('a node that was taken over learns of it, and ends', async () => {
  const { start, advance } = cluster()
  const [a, b] = await start(2)
  if (a === undefined || b === undefined) return
  b.state.reachable = false
  await advance(10)
  b.state.reachable = true
  await advance(1)
  expect(kinds(b).at(-1)).toBe('fenced')
  expect(b.member.holds()).toBe(false)
  expect(b.member.owns('far.example')).toBe(false)
  await expect(b.store.upkeep.ping()).rejects.toThrow(Fenced)
})

test('an outage of the database takes no node over, and all resume after it', async () => {
  const { start, advance } = cluster()
  const nodes = await start(3)
  await advance(60)
  for (const { state } of nodes) state.reachable = false
  await advance(600)
  expect(nodes.map(({ member }) => member.holds())).toEqual([false, false, false])
  const before = nodes.map(({ state }) => state.resumed)
  // They do not come back at once.
  for (const { state } of nodes) {
    state.reachable = true
    await advance(2)
  }
  await advance(60)
  expect(nodes.flatMap(kinds)).not.toContain('node-taken-over')
  expect(nodes.map(({ member }) => member.holds())).toEqual([true, true, true])
  expect(nodes.map(({ state }, n) => state.resumed - (before[n] ?? 0))).toEqual([1, 1, 1])
})

test('a node may deliver again within 300 ms when the database is back, whenever that is', async () => {
  const { start, advance } = cluster()
  const [node] = await start(1)
  if (node === undefined) throw new Error('no node')
  for (const outage of [60, 60.25, 60.5, 60.75]) {
    node.state.reachable = false
    await advance(outage)
    expect(node.member.holds()).toBe(false)
    node.state.reachable = true
    await advance(0.3)
    expect(node.member.holds()).toBe(true)
  }
})

test('setting the wall clock takes no node over', async () => {
  const { clock, start, advance } = cluster()
  const nodes = await start(2)
  await advance(60)
  for (const by of [MINUTE, -MINUTE]) {
    clock.step(by)
    await advance(20)
  }
  expect(nodes.flatMap(kinds)).not.toContain('node-taken-over')
})

test('a machine whose monotonic clock stood still does not deliver before its next beat', async () => {
  const { clock, start, advance } = cluster()
  const [a] = await start(1)
  await advance(2)
  expect(a?.member.holds()).toBe(true)
  clock.suspend(MINUTE)
  expect(a?.member.holds()).toBe(false)
  await advance(1)
  // The machine's clock, which this node uses directly, is a minute ahead of the database until it is set.
  expect(a?.member.clocksApart).toBe(MINUTE)
})

test('a node whose clock differs from the database by 30 s rests', async () => {
  const { start, advance, setDatabaseAhead } = cluster()
  const [a] = await start(1)
  setDatabaseAhead(29 * SECOND)
  await advance(1)
  expect(a?.member.holds()).toBe(true)
  setDatabaseAhead(31 * SECOND)
  await advance(1)
  expect(a?.member.holds()).toBe(false)
  setDatabaseAhead(0)
  await advance(1)
  expect(a?.member.holds()).toBe(true)
  expect(a?.state.resumed).toBe(1)
})

test('a draining node gives all shards away, and takes them again when it no longer drains', async () => {
  const { start, advance } = cluster()
  const [a, b] = await start(2)
  if (a === undefined || b === undefined) return
  await advance(60)
  await a.table.setDraining(b.table.me, true)
  // The node learns of it at its next beat, the other one of the free shards at its own, and shows them at the beat after.
  await advance(3)
  expect([owned(a), owned(b)]).toEqual([SHARDS, 0])
  await a.table.setDraining(b.table.me, false)
  await advance(60)
  expect([owned(a), owned(b)]).toEqual([128, 128])
})

test('the parameters of a node after a reload are those that the others see, also when the database was away at the reload', async () => {
  const { start, advance } = cluster()
  const [a, b] = await start(2)
  if (a === undefined || b === undefined) return
  const seen = () => [b.member.view?.nodes.find(({ id }) => id === a.table.me)?.settings, ...b.member.hostnames()]
  a.member.describe({ settings: '{"x":"1"}', hostname: 'mx1.example' })
  await advance(2)
  expect(seen()).toEqual(['{"x":"1"}', 'mx1.example'])
  a.state.reachable = false
  a.member.describe({ settings: '{"x":"1"}', hostname: 'mx2.example' })
  await advance(2)
  expect(seen()).toEqual(['{"x":"1"}', 'mx1.example'])
  a.state.reachable = true
  await advance(4)
  expect(seen()).toEqual(['{"x":"1"}', 'mx2.example'])
})

test('a node that is about to leave gives the shards away that have no deliveries', async () => {
  const { start, advance } = cluster({ lettingGo: 300 })
  const [a, b] = await start(2)
  if (a === undefined || b === undefined) return
  await advance(60.5)
  b.member.drain()
  await advance(1.5)
  expect([owned(a), b.member.isDraining]).toEqual([SHARDS, true])
  await b.member.leave()
  await advance(10)
  expect(kinds(a)).not.toContain('node-taken-over')
})

test('the shards of a node that leaves have an owner at the next beat of another node', async () => {
  const { start, advance } = cluster()
  const [a, b] = await start(2)
  if (a === undefined || b === undefined) return
  await advance(60.5)
  await b.member.leave()
  await advance(1)
  expect(owned(a)).toBe(128)
  await advance(1)
  expect(owned(a)).toBe(SHARDS)
  expect(kinds(a)).not.toContain('node-taken-over')
})

test('shards whose taking or release was not answered are found at the next beat', async () => {
  const { start, join, advance } = cluster()
  const [a] = await start(1)
  if (a === undefined) return
  const b = join()
  for (const { state } of [a, b]) state.losesAnswers = true
  void b.member.start()
  await advance(100)
  for (const { state } of [a, b]) state.losesAnswers = false
  await advance(2)
  expect([owned(a), owned(b)]).toEqual([128, 128])
  expect(b.events.flatMap(({ event }) => (event.kind === 'shards-taken' ? event.shards : []))).toHaveLength(128)
})

test('arrivals come at a hint, and within 250 ms without one', async () => {
  const { start, advance } = cluster()
  const [a, b] = await start(2)
  if (a === undefined || b === undefined) return
  await advance(60)
  const name = Array.from({ length: 100 }, (_, n) => `${n}.example`).find((one) => b.member.owns(one)) ?? ''
  const due = () => b.arrivals.flatMap((one) => one.due).length
  await a.store.enqueue(mail(a.store, { to: [{ address: `ann@${name}` }] }))
  await advance(0.001)
  expect(due()).toBe(1)
  b.table.onHint(() => undefined)
  await a.store.enqueue(mail(a.store, { to: [{ address: `bob@${name}` }] }))
  await advance(0.25)
  expect(due()).toBe(2)
})

test('all work is read anew after a request for arrivals had no answer', async () => {
  const { start, advance } = cluster()
  const [a] = await start(1)
  if (a === undefined) return
  await advance(2)
  a.state.losesAnswers = true
  await advance(2)
  expect(a.state.missed).toBe(0)
  a.state.losesAnswers = false
  await advance(2)
  expect(a.state.missed).toBe(1)
})
