/** Operations of a node of a shared queue reach its own scheduler for its destinations, and the store for those of other nodes. */
import { expect, test } from 'vitest'
import type { SchedulerControl } from '../../src/queue/operation-rounds.ts'
import { sharedScheduler } from '../../src/queue/stored-scheduler.ts'
import { shardOf } from '../../src/store/membership/shards.ts'
import { QueueHandover } from '../../src/store/membership/queue-handover.ts'

function recorder(name: string, calls: string[]): SchedulerControl {
  return {
    workAdded: (due) => void calls.push(`${name} work ${due.map(({ destination }) => destination).join()}`),
    suspend: async (destination) => void calls.push(`${name} suspend ${destination}`),
    resume: async (destination) => void calls.push(`${name} resume ${destination}`),
    snapshot: () => [],
  }
}

test('each destination is changed where it is scheduled, also at a node that can give its queue away', async () => {
  const calls: string[] = []
  const membership = new QueueHandover({ holds: () => true, shardOf, owns: (name) => name === 'own.example', attach: () => undefined })
  const control = sharedScheduler(recorder('own', calls), recorder('stored', calls), membership)
  const due = ['own.example', 'far.example'].map((destination) => ({ destination, dueAt: 0 }))
  control.workAdded(due, { revive: true })
  for (const { destination } of due) {
    await control.suspend(destination, { by: 'ann', until: null, reason: null })
    await control.resume(destination, 'ann')
  }
  expect(calls).toEqual([
    'own work own.example',
    'own suspend own.example',
    'own resume own.example',
    'stored suspend far.example',
    'stored resume far.example',
  ])
})
