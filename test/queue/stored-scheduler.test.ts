/** Operations of a node of a shared queue reach its own scheduler for its destinations, and the store for those of other nodes. */
import { expect, test } from 'vitest'
import { openMemoryStore } from '../../src/store/memory/memory-store.ts'
import type { SchedulerControl } from '../../src/queue/operation-rounds.ts'
import { sharedScheduler, storedScheduler } from '../../src/queue/stored-scheduler.ts'
import { SOLE_MEMBERSHIP } from '../../src/store/membership/membership.ts'
import { NOTHING_TAKEN } from '../../src/store/membership/taken-back.ts'
import { shardOf } from '../../src/store/membership/shards.ts'
import { idleRecorder } from '../support/idle-recorder.ts'
import { QueueHandover } from '../../src/store/membership/queue-handover.ts'

function recorder(name: string, calls: string[]): SchedulerControl {
  return {
    workAdded: (due) => void calls.push(`${name} work ${due.map(({ destination }) => destination).join()}`),
    suspend: async (destination) => void calls.push(`${name} suspend ${destination}`),
    resume: async (destination) => void calls.push(`${name} resume ${destination}`),
    takeBack: async () => NOTHING_TAKEN,
    transfers: async () => [],
    snapshot: () => [],
  }
}

test('each destination is changed where it is scheduled, also at a node that can give its queue away', async () => {
  const calls: string[] = []
  const membership = new QueueHandover({ ...SOLE_MEMBERSHIP, shardOf, owns: (name) => name === 'own.example' })
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

test('without a scheduler, the end of a suspension ends that of its provider by a rule, and nothing else', async () => {
  const { store, reader } = openMemoryStore()
  const of = { until: 9, reply: '450 Busy' }
  const rate = { ...of, rule: 'slow', action: { kind: 'rate', perMinute: 6 } } as const
  await store.joinProvider('far.example', 'big')
  for (const provider of ['big', 'small'])
    await store.records.providers.save({ provider, effects: [{ ...of, rule: 'busy', action: { kind: 'suspend' } }, rate] })
  await storedScheduler(store, reader, idleRecorder).resume('far.example', 'root')
  expect((await store.records.providers.all()).map(({ provider, effects }) => [provider, effects.length])).toEqual([
    ['big', 1],
    ['small', 2],
  ])
  expect(await reader.destinationRecords()).toEqual([])
})
