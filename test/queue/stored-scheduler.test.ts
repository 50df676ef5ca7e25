/** Operations of a node of a shared queue reach its own scheduler for its destinations, and the store for those of other nodes. */
import { expect, test } from 'vitest'
import { ANY_EVENT } from '../../src/events/event-filter.ts'
import { ALL_EVENTS, settingsOf } from '../../src/outbox/configured-subscriptions.ts'
import { EventRecorder } from '../../src/outbox/event-recorder.ts'
import { WallView } from '../../src/system/wall-view.ts'
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
    suspendProvider: async (provider) => void calls.push(`${name} suspend provider ${provider}`),
    resumeProvider: async (provider) => void calls.push(`${name} resume provider ${provider}`),
    takeBack: async () => NOTHING_TAKEN,
    transfers: async () => [],
    snapshot: () => [],
  }
}

test('each destination and each provider is changed where it is scheduled, also at a node that can give its queue away', async () => {
  const calls: string[] = []
  const membership = new QueueHandover({ ...SOLE_MEMBERSHIP, shardOf, owns: (name) => ['own.example', 'provider:own'].includes(name) })
  const control = sharedScheduler(recorder('own', calls), recorder('stored', calls), membership)
  const due = ['own.example', 'far.example'].map((destination) => ({ destination, dueAt: 0 }))
  control.workAdded(due, { revive: true })
  for (const { destination } of due) {
    await control.suspend(destination, { by: 'ann', until: null, reason: null })
    await control.resume(destination, 'ann')
  }
  for (const provider of ['own', 'far']) {
    await control.suspendProvider(provider, { by: 'ann', until: null, reason: null })
    await control.resumeProvider(provider, 'ann')
  }
  expect(calls).toEqual([
    'own work own.example',
    'own suspend own.example',
    'own resume own.example',
    'stored suspend far.example',
    'stored resume far.example',
    'own suspend provider own',
    'own resume provider own',
    'stored suspend provider far',
    'stored resume provider far',
  ])
})

test('without a scheduler, the end of a suspension of a provider ends that by a rule too, and nothing else', async () => {
  const { store, reader } = openMemoryStore()
  const of = { until: 9, reply: '450 Busy' }
  const rate = { ...of, rule: 'slow', action: { kind: 'rate', perMinute: 6 } } as const
  await store.joinProvider('far.example', 'big')
  for (const provider of ['big', 'small'])
    await store.records.providers.save({ provider, effects: [{ ...of, rule: 'busy', action: { kind: 'suspend' } }, rate] })
  await storedScheduler(store, reader, idleRecorder).suspendProvider('big', { by: 'root', until: null, reason: null })
  await storedScheduler(store, reader, idleRecorder).resumeProvider('big', 'root')
  expect((await store.records.providers.all()).map(({ provider, effects }) => [provider, effects.length])).toEqual([
    ['big', 1],
    ['small', 2],
  ])
  expect(await reader.destinationRecords()).toEqual([])
})

test('without a scheduler, what is not suspended is not resumed: no event, no record', async () => {
  const { store, reader } = openMemoryStore()
  const events = new EventRecorder({ now: () => 0, wall: new WallView(() => 0) })
  await store.outbox.subscribe({ name: 'app', settings: settingsOf(ALL_EVENTS), at: 0, by: 'root' })
  await events.refresh(store.outbox)
  const control = storedScheduler(store, reader, events)
  const rate = { until: 9, reply: '450 Busy', rule: 'slow', action: { kind: 'rate', perMinute: 6 } } as const
  await store.records.providers.save({ provider: 'big', effects: [rate] })
  const types = async () => (await reader.eventsAfter({ after: 0, limit: 9, filter: ANY_EVENT })).events.map(({ type }) => type)
  await control.resumeProvider('big', 'ann')
  await control.resumeProvider('none', 'ann')
  await control.resume('far.example', 'ann')
  expect([await types(), await reader.destinationRecords()]).toEqual([[], []])
  expect(await store.records.providers.all()).toHaveLength(1)
  await control.suspendProvider('big', { by: 'ann', until: null, reason: null })
  await control.resumeProvider('big', 'ann')
  await control.suspend('far.example', { by: 'ann', until: null, reason: null })
  await control.resume('far.example', 'ann')
  expect(await types()).toEqual(['provider.suspended', 'provider.resumed', 'destination.suspended', 'destination.resumed'])
})
