import { expect, test } from 'vitest'
import { ShardReport } from '../../../src/daemon/node/shard-report.ts'
import { Events, type QueueEvent } from '../../../src/telemetry/events.ts'
import { VirtualClock } from '../../../src/testkit/virtual/virtual-clock.ts'

test('the steps of ten seconds are one line for each direction', async () => {
  const clock = new VirtualClock({ startsAt: 0 })
  const events = new Events(() => clock.now())
  const seen: QueueEvent[] = []
  events.listen((event) => seen.push(event))
  const report = new ShardReport(clock, events)
  for (const shards of [4, 4, 2]) report.add('shards-released', shards)
  report.add('shards-taken', 1)
  expect(seen).toEqual([])
  report.flush()
  expect(seen).toEqual([
    { kind: 'shards-taken', shards: 1 },
    { kind: 'shards-released', shards: 10 },
  ])
  report.flush()
  expect(seen).toHaveLength(2)
})
