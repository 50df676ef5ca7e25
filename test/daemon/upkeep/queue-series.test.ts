/**
 * The backlog is counted at the end of each minute. Marks of what changed the relay: many of a minute become one, and they are stored though the
 * backlog cannot be counted.
 */
import { expect, test } from 'vitest'
import { QueueSeries } from '../../../src/daemon/upkeep/queue-series.ts'
import { StoreUnavailable, type QueueStore } from '../../../src/store/queue-store.ts'
import { MINUTE, SECOND } from '../../../src/system/clock.ts'
import { QueueClock } from '../../../src/system/queue-clock.ts'
import { Events } from '../../../src/telemetry/events.ts'
import { QueueWorld } from '../../support/queue-world.ts'

async function opened() {
  const world = await QueueWorld.create({ remote: () => ({ kind: 'accepts' }) })
  const clock = new QueueClock(world.clock)
  const events = new Events(() => clock.wall.now())
  const away = { tally: false, marks: false }
  const failing = <T>(isAway: boolean, call: () => Promise<T>): Promise<T> =>
    isAway ? Promise.reject(new StoreUnavailable('the disk is full')) : call()
  const { records } = world.store
  const store: Pick<QueueStore, 'records' | 'tally'> = {
    records: { ...records, marks: { ...records.marks, add: (mark) => failing(away.marks, () => records.marks.add(mark)) } },
    tally: (largest) => failing(away.tally, async () => world.store.tally(largest)),
  }
  const series = new QueueSeries({ clock, store, events, node: () => 'mx1' })
  series.start()
  await world.advance(SECOND)
  const marks = async () => (await records.marks.of(0, Number.MAX_SAFE_INTEGER)).map(({ kind, text }) => `${kind} ${text}`).toSorted()
  return { world, events, series, away, marks }
}

test('many marks of a kind in a minute are one, in the words of the kind', async () => {
  const { world, events, series, marks } = await opened()
  for (let n = 0; n < 25; n++) {
    events.emit({ kind: 'provider-suspended', provider: `p${n}`, by: 'ann', until: null, reason: null })
    series.mark('reload', String(n))
  }
  for (let n = 0; n < 2; n++) events.emit({ kind: 'resumed', destination: `d${n}.example`, by: 'ann' })
  await world.advance(MINUTE)
  expect(await marks()).toEqual(['reload 25 reloads', 'resumed d0.example', 'resumed d1.example', 'suspended 25 destinations or providers'])
  await series.stop()
})

test('marks are stored while the backlog cannot be counted, and those that were not stored are counted once', async () => {
  const { world, series, away, marks } = await opened()
  Object.assign(away, { tally: true })
  series.mark('restart', '1.0')
  await world.advance(MINUTE)
  expect(await marks()).toEqual(['restart 1.0'])
  Object.assign(away, { marks: true })
  for (let n = 0; n < 25; n++) series.mark('suspended', `a${n}.example`)
  await world.advance(3 * MINUTE)
  for (let n = 0; n < 3; n++) series.mark('suspended', `b${n}.example`)
  await world.advance(MINUTE)
  Object.assign(away, { tally: false, marks: false })
  await world.advance(MINUTE)
  expect(await marks()).toEqual([
    'restart 1.0',
    'suspended 25 destinations or providers',
    ...[0, 1, 2].map((n) => `suspended b${n}.example`),
  ])
  await series.stop()
})

test('the queue is counted when a minute ends, and the count is kept as that of this minute', async () => {
  const { world, series } = await opened()
  const minute = Math.floor(world.clock.now() / MINUTE) * MINUTE
  const counted = async () => (await world.store.records.backlogs.of(0, Number.MAX_SAFE_INTEGER)).map(({ at }) => at - minute)
  expect(await counted()).toEqual([])
  await world.advance(2 * MINUTE)
  expect(await counted()).toEqual([0, MINUTE])
  await series.stop()
})
