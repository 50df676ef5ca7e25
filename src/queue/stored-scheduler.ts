/**
 * SchedulerControl that saves its changes in the store, for a process that does not schedule the destination: a command, or one of
 * several nodes that share the queue. The scheduler of the destination loads them at its start, or is told by the store.
 */
import type { DestinationName } from '../mail/message.ts'
import type { Membership } from '../store/membership/membership.ts'
import { NOTHING_TAKEN } from '../store/membership/taken-back.ts'
import type { Suspension } from '../store/records/suspension.ts'
import type { QueueReader } from '../store/queue-reader.ts'
import type { QueueStore } from '../store/queue-store.ts'
import type { Published } from '../outbox/event-data.ts'
import type { EventRecorder } from '../outbox/event-recorder.ts'
import type { SchedulerControl } from './operation-rounds.ts'
import { suspended } from './scheduler/destination-control.ts'
import { resumeSavedProvider, suspendSavedProvider } from './scheduler/providers/provider-orders.ts'
import { nameOfProvider } from '../config/provider-directory.ts'

/** The nodes that deliver the mail of the queue. */
export interface OtherNodes extends Pick<Membership, 'recall'>, Pick<SchedulerControl, 'transfers'> {}

const NO_NODES: OtherNodes = { recall: async () => NOTHING_TAKEN, transfers: async () => [] }

export function storedScheduler(
  store: Pick<QueueStore, 'saveDestination' | 'records' | 'outbox'>,
  reader: Pick<QueueReader, 'destinationRecords'>,
  recorder: EventRecorder,
  { recall, transfers }: OtherNodes = NO_NODES,
): SchedulerControl {
  const change = async (name: DestinationName, suspension: Suspension | null, happened: Published): Promise<void> => {
    const known = (await reader.destinationRecords()).find((record) => record.name === name)
    const record = { ...(known ?? { name, deadUntil: null, probeInterval: null, siteStatus: null }), suspension }
    await store.saveDestination(record, recorder.of(happened))
  }
  return {
    workAdded: () => undefined,
    suspend: async (name, suspension) => {
      await change(name, suspension, suspended(name, suspension, recorder.wall))
      await recall({ messages: [], destination: name, rests: false })
    },
    takeBack: (messages, { rests }) => recall({ messages, destination: null, rests }),
    transfers,
    resume: async (name, by) => {
      const isSuspended = (await reader.destinationRecords()).some((record) => record.name === name && record.suspension !== null)
      if (isSuspended) await change(name, null, { kind: 'resumed', destination: name, by })
    },
    suspendProvider: (name, suspension) => suspendSavedProvider({ store, recorder, recall }, name, suspension),
    resumeProvider: (name, by) => resumeSavedProvider({ store, recorder }, name, by),
    snapshot: () => [],
  }
}

/** The scheduler of this node for its own destinations, and the store for those of others. */
export const sharedScheduler = (
  own: SchedulerControl,
  stored: SchedulerControl,
  membership: Pick<Membership, 'owns'>,
): SchedulerControl => {
  const schedulerOf = (name: DestinationName): SchedulerControl => (membership.owns(name) ? own : stored)
  return {
    workAdded: (due, options) =>
      own.workAdded(
        due.filter(({ destination }) => membership.owns(destination)),
        options,
      ),
    suspend: (name, suspension) => schedulerOf(name).suspend(name, suspension),
    resume: (name, by) => schedulerOf(name).resume(name, by),
    suspendProvider: (name, suspension) => schedulerOf(nameOfProvider(name)).suspendProvider(name, suspension),
    resumeProvider: (name, by) => schedulerOf(nameOfProvider(name)).resumeProvider(name, by),
    takeBack: (messages, options) => own.takeBack(messages, options),
    transfers: () => stored.transfers(),
    snapshot: () => own.snapshot(),
  }
}
