/** Properties of the decisions on leases, takeovers and shares. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { SECOND } from '../../../src/system/clock.ts'
import { holdsAt, leaseTimes } from '../../../src/store/membership/node-lease.ts'
import { NO_OBSERVATIONS, observed, silentNodes, type Observations } from '../../../src/store/membership/node-observations.ts'
import { balance, LET_GO_PER_BEAT } from '../../../src/store/membership/shard-balance.ts'
import { SHARDS, type Shard } from '../../../src/store/membership/shards.ts'

const LEASE = 5 * SECOND
const TIMES = leaseTimes(LEASE)

test('by default a node beats every second and may deliver for 4 s after a beat, on both clocks', () => {
  expect(TIMES).toEqual({ lease: LEASE, beat: SECOND, margin: SECOND, poll: SECOND / 4 })
  const sent = { monotonic: 100, wall: 9_000 }
  const holds = (monotonic: number, wall: number) => holdsAt({ monotonic: 100 + monotonic, wall: 9_000 + wall }, sent, TIMES)
  expect([holds(0, 0), holds(3_999, 3_999), holds(4_000, 0), holds(0, 4_000), holds(0, -60_000)]).toEqual([true, true, false, false, true])
  expect(holdsAt(sent, null, TIMES)).toBe(false)
})

test('a node is silent after a lease without a change of its beat', () => {
  let seen: Observations = NO_OBSERVATIONS
  const look = (at: number, beat: number) => {
    seen = observed(seen, [{ id: 7, beat }], { me: 1, at, lease: LEASE })
    return silentNodes(seen, LEASE)
  }
  for (let at = 0; at <= 4_000; at += 1_000) expect(look(at, 3)).toEqual([])
  expect(look(5_000, 4)).toEqual([])
  for (let at = 6_000; at < 10_000; at += 1_000) expect(look(at, 4)).toEqual([])
  expect(look(10_000, 4)).toEqual([{ id: 7, beat: 4 }])
})

test('observations before an outage do not count, and a node does not watch itself', () => {
  let seen = observed(NO_OBSERVATIONS, [{ id: 7, beat: 3 }], { me: 1, at: 0, lease: LEASE })
  seen = observed(seen, [{ id: 7, beat: 3 }], { me: 1, at: 2_501, lease: LEASE })
  for (let at = 4_501; at < 7_501; at += 1_000) seen = observed(seen, [{ id: 7, beat: 3 }], { me: 1, at, lease: LEASE })
  expect(silentNodes(seen, LEASE)).toEqual([])
  expect([...observed(seen, [{ id: 1, beat: 3 }], { me: 1, at: 8_000, lease: LEASE }).beats]).toEqual([])
})

/** Beats of one node with the delays of their way to the database and back, and looks of another one. */
const exchange = fc.record({
  beats: fc.array(fc.record({ pause: fc.nat(9_000), there: fc.nat(2_000), back: fc.nat(4_000) }), { minLength: 1, maxLength: 20 }),
  looks: fc.array(fc.record({ pause: fc.nat(1_000), there: fc.nat(300), back: fc.nat(300) }), { minLength: 10, maxLength: 40 }),
})

test('a node that is found silent does not hold, whatever the delays of beats and looks are', () => {
  fc.assert(
    fc.property(exchange, ({ beats, looks }) => {
      let time = 0
      const sent = beats.map(({ pause, there, back }, n) => {
        const at = (time += pause)
        time = at + there + back
        return { at, committed: at + there, answered: at + there + back, beat: n + 1 }
      })
      let seen: Observations = NO_OBSERVATIONS
      let now = 0
      for (const { pause, there, back } of looks) {
        const read = now + pause + there
        now = read + back
        const beat = sent.findLast(({ committed }) => committed <= read)?.beat ?? 0
        seen = observed(seen, [{ id: 7, beat }], { me: 1, at: now, lease: LEASE })
        const silent = silentNodes(seen, LEASE)
        // A takeover succeeds only when the node has not beaten since.
        const isTakenOver = silent.some((one) => one.beat === (sent.findLast(({ committed }) => committed <= now)?.beat ?? 0))
        if (!isTakenOver) continue
        const known = sent.findLast(({ answered }) => answered <= now)
        const last = known === undefined ? null : { monotonic: known.at, wall: known.at }
        expect(holdsAt({ monotonic: now, wall: now }, last, TIMES)).toBe(false)
        return
      }
    }),
    { numRuns: 2_000 },
  )
})

/** Rounds in which each node decides once, on the state that it saw at the beginning of the round. */
function divided(held: readonly Set<Shard>[], draining: readonly boolean[], free: Shard[], rounds: number): readonly number[][] {
  const lettings: number[][] = []
  for (let round = 0; round < rounds; round++) {
    const nodes = held.map((shards, id) => ({ id, shards: shards.size, draining: draining[id] ?? false }) as never)
    const view = { nodes, freeShards: free.length }
    const decisions = held.map((shards, id) => balance(view, id, shards))
    lettings.push(decisions.map(({ letGo }) => letGo.length))
    for (const [id, { take }] of decisions.entries()) for (const shard of free.splice(0, take)) held[id]?.add(shard)
    for (const [id, { letGo }] of decisions.entries()) {
      for (const shard of letGo) held[id]?.delete(shard)
      free.push(...letGo)
    }
  }
  return lettings
}

test('from any division, every shard gets an owner and no node has more than its share', () => {
  const division = fc.record({
    owners: fc.array(fc.integer({ min: -1, max: 7 }), { minLength: SHARDS, maxLength: SHARDS }),
    draining: fc.array(fc.boolean(), { minLength: 1, maxLength: 8 }),
  })
  fc.assert(
    fc.property(division, ({ owners, draining }) => {
      fc.pre(draining.includes(false))
      const held = draining.map(() => new Set<Shard>())
      const free: Shard[] = []
      for (const [shard, owner] of owners.entries()) {
        const of = held[owner]
        if (of === undefined) free.push(shard)
        else of.add(shard)
      }
      const lettings = divided(held, draining, free, 70)
      expect(Math.max(0, ...lettings.flatMap((counts) => counts.filter((_, id) => draining[id] !== true)))).toBeLessThanOrEqual(
        LET_GO_PER_BEAT,
      )
      expect(Math.max(0, ...lettings.slice(1).flatMap((counts) => counts.filter((_, id) => draining[id] === true)))).toBe(0)
      expect(lettings.at(-1)?.every((count) => count === 0)).toBe(true)
      const share = Math.ceil(SHARDS / draining.filter((one) => !one).length)
      for (const [id, shards] of held.entries()) expect(shards.size).toBeLessThanOrEqual(draining[id] === true ? 0 : share)
      expect(free).toEqual([])
    }),
    { numRuns: 100 },
  )
})
