import { describe, expect, test } from 'vitest'
import { configFrom } from '../../../src/config/load.ts'
import { watchClock } from '../../../src/daemon/upkeep/clock-watch.ts'
import { checkIndexes } from '../../../src/daemon/upkeep/index-check.ts'
import { maintain } from '../../../src/daemon/upkeep/maintenance.ts'
import { openMemoryStore } from '../../../src/store/memory/memory-store.ts'
import { StoreUnavailable } from '../../../src/store/queue-store.ts'
import { DAY, HOUR, MINUTE, SECOND, type Duration } from '../../../src/system/clock.ts'
import { eventLoopTurn } from '../../../src/system/event-loop.ts'
import { QueueClock, type ClockRecord } from '../../../src/system/queue-clock.ts'
import { Events } from '../../../src/telemetry/events.ts'
import { VirtualClock } from '../../../src/testkit/virtual/virtual-clock.ts'

const YEAR = 365 * DAY
const { config } = configFrom({ queue_run_delay: '5m' }, 'relay.example')

/** Runs the timers of `time` ms, and what follows from each. */
async function pass(machine: VirtualClock, time: Duration): Promise<void> {
  const end = machine.monotonic() + time
  machine.after(time, () => undefined)
  while (machine.monotonic() < end) {
    machine.runNext()
    await eventLoopTurn()
  }
}

function notes(clock: QueueClock): { readonly events: Events; readonly texts: string[] } {
  const events = new Events(() => clock.wall.now())
  const texts: string[] = []
  events.listen((event) => {
    if (event.kind === 'note') texts.push(event.text)
  })
  return { events, texts }
}

describe('maintenance', () => {
  /** Times of prunings and scans, on the monotonic clock. */
  function maintained() {
    const machine = new VirtualClock()
    const clock = new QueueClock(machine)
    const pruned: Duration[] = []
    const scanned: Duration[] = []
    const { events, texts } = notes(clock)
    const store = {
      fails: false,
      prune: async () => {
        if (store.fails) throw new StoreUnavailable('the disk is full')
        pruned.push(machine.monotonic())
        return { more: false }
      },
    }
    const scheduler = { scan: async () => void scanned.push(machine.monotonic()) }
    return {
      machine,
      pruned,
      scanned,
      texts,
      store,
      maintenance: maintain({ config: () => config, clock, store, records: openMemoryStore().store.records, scheduler, events }),
    }
  }

  test.each([10 * YEAR, -10 * YEAR, HOUR, -HOUR])('runs once a minute, also when the wall clock is set by %i ms', async (step) => {
    const { machine, pruned, scanned, maintenance } = maintained()
    await pass(machine, 2.5 * MINUTE)
    machine.step(step)
    await pass(machine, 8 * MINUTE)
    expect(pruned).toEqual(Array.from({ length: 10 }, (_, n) => (n + 1) * MINUTE))
    expect(scanned).toEqual([5 * MINUTE, 10 * MINUTE])
    await maintenance.stop()
    await pass(machine, HOUR)
    expect(pruned).toHaveLength(10)
  })

  test('goes on a minute after the store could not commit', async () => {
    const { machine, pruned, texts, store } = maintained()
    store.fails = true
    await pass(machine, MINUTE)
    store.fails = false
    await pass(machine, MINUTE)
    expect(texts).toEqual(['maintenance postponed by a minute: the disk is full'])
    expect(pruned).toEqual([2 * MINUTE])
  })
})

test('the indexes are verified at the start and once a day, in slices', async () => {
  const clock = new VirtualClock()
  const verified: [Duration, number][] = []
  const slices = new Map([
    [0, 200],
    [200, 300],
  ])
  const verify = async (after: number) => {
    verified.push([clock.monotonic(), after])
    if (verified.length === 5) throw new StoreUnavailable('the disk is full')
    return slices.get(after) ?? null
  }
  const check = checkIndexes(clock, { verify })
  await eventLoopTurn()
  await pass(clock, 3 * DAY)
  const walk = (from: Duration) => [0, 200, 300].map((after, n) => [from + 250 * n, after])
  // The second run ends at its second slice; the third one begins a day later.
  expect(verified).toEqual([...walk(0), ...walk(DAY + 750).slice(0, 2), ...walk(2 * DAY + 1_000)])
  const stopped = check.stop()
  await pass(clock, DAY)
  await stopped
  expect(verified).toHaveLength(8)
})

describe('the watch of the clock', () => {
  function watched() {
    const machine = new VirtualClock()
    const clock = new QueueClock(machine)
    const records: ClockRecord[] = []
    const { events, texts } = notes(clock)
    const store = {
      fails: false,
      saveClock: async (record: ClockRecord) => {
        if (store.fails) throw new StoreUnavailable('the disk is full')
        records.push(record)
      },
    }
    return {
      machine,
      records,
      texts,
      store,
      start: (step: Duration) => watchClock({ clock, store, events, stepped: () => undefined }, step),
    }
  }

  test('keeps a record at the start, once a minute and at the end', async () => {
    const { machine, records, start } = watched()
    const watch = start(0)
    await pass(machine, 2.5 * MINUTE)
    await watch.stop()
    await pass(machine, HOUR)
    expect(records.map(({ uptime }) => uptime)).toEqual([0, MINUTE, 2 * MINUTE, 2.5 * MINUTE])
  })

  test('reports a step within a second, with a record of it', async () => {
    const { machine, records, texts, start } = watched()
    const watch = start(-HOUR)
    await pass(machine, 10.5 * SECOND)
    machine.step(10 * YEAR)
    await pass(machine, SECOND)
    expect(texts).toEqual([
      'the wall clock was set back by 1 hour; queued mail keeps its waits and lifetimes',
      'the wall clock was set forward by 3650 days; queued mail keeps its waits and lifetimes',
    ])
    expect(records.at(-1)).toMatchObject({ uptime: 11 * SECOND, offset: -10 * YEAR })
    await watch.stop()
  })

  test('repeats a record that could not be committed', async () => {
    const { machine, records, store, start } = watched()
    store.fails = true
    const watch = start(0)
    await pass(machine, 2.5 * SECOND)
    store.fails = false
    await pass(machine, SECOND)
    expect(records.map(({ uptime }) => uptime)).toEqual([3 * SECOND])
    await watch.stop()
  })
})
