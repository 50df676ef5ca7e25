/**
 * QueueClient that changes a queue in the process of the command: the queue of a folder while no daemon runs, or the queue of several
 * nodes. Runs the same operations as the daemon.
 */
import { AccessEntries } from '../../access/access-entries.ts'
import { hashOf, newToken } from '../../admin/secrets.ts'
import { addToken, removeToken } from '../../admin/token-changes.ts'
import { DestinationPolicies } from '../../config/destination-policies.ts'
import type { Config } from '../../config/options.ts'
import { removePolicy } from '../../delivery/sts/policy-removal.ts'
import { EventRecorder } from '../../outbox/event-recorder.ts'
import { momentOf, type Moment } from '../../mail/message-times.ts'
import type { Selection } from '../../queue/operation-request.ts'
import { Operations } from '../../queue/operations.ts'
import { storedScheduler, type OtherNodes } from '../../queue/stored-scheduler.ts'
import { filterOf } from '../../store/message-conditions.ts'
import type { QueueReader } from '../../store/queue-reader.ts'
import type { QueueStore } from '../../store/queue-store.ts'
import { SubscriptionChanges } from '../../subscriptions/subscription-changes.ts'
import type { Clock } from '../../system/clock.ts'
import { systemRandom } from '../../system/system-random.ts'
import { Events } from '../../telemetry/events.ts'
import { CommandError, EX } from '../shell/exit.ts'
import type { GivenSelection, QueueClient } from '../shell/queue-client.ts'

interface OpenedQueue extends Pick<QueueClient, 'move' | 'close'> {
  readonly config: Config
  readonly store: QueueStore
  readonly reader: QueueReader
  readonly clock: Clock
  /** The nodes that deliver the mail; none when absent. */
  readonly others?: OtherNodes
}

function selectionOf(selection: GivenSelection, moment: Moment): Selection {
  if (selection.kind === 'ids') return selection
  return { kind: 'filter', filter: filterOf(selection.given, moment), limit: selection.limit }
}

/** Creates a client of an opened queue. `close` closes the queue. */
export async function clientOfQueue({ config, store, reader, clock, others, move, close }: OpenedQueue): Promise<QueueClient> {
  // Events have no listener here, because the command prints its result and the audit log records it.
  const events = new Events(() => clock.wall.now())
  const policies = new DestinationPolicies(config)
  const recorder = new EventRecorder(clock)
  await recorder.refresh(store.outbox)
  const scheduler = storedScheduler(store, reader, recorder, others)
  const operations = new Operations({
    store,
    reader,
    events,
    recorder,
    clock,
    policies: () => policies,
    retention: () => config,
    scheduler,
  })
  const access = new AccessEntries({ store, reader, clock })
  const subscriptions = new SubscriptionChanges({ store, reader, clock, changed: () => recorder.refresh(store.outbox) })
  const records = { store, clock }
  return {
    move,
    addToken: async (rights) => {
      const token = newToken(systemRandom)
      await addToken({ ...rights, hash: hashOf(token) }, records)
      return token
    },
    removeToken: (removal) => removeToken(removal, records),
    addSubscription: (request) => subscriptions.add(request),
    removeSubscription: (removal) => subscriptions.remove(removal),
    changeSecret: (request) => subscriptions.changeSecret(request),
    replayEvents: (request) => subscriptions.replay(request),
    perform: ({ selection, ...order }, progress) =>
      operations.perform({ ...order, selection: selectionOf(selection, momentOf(clock)) }, progress),
    undo: (undo, progress) => operations.undo(undo, progress),
    cancel: (operation, who) => operations.jobs.cancel(operation, who),
    suspend: (name, request) => operations.suspend(name, request),
    resume: (name, who) => operations.resume(name, who),
    addAccess: (entry) => access.add(entry),
    removeAccess: (subject, key, who) => access.remove(subject, key, who),
    removeStsPolicy: (removal) => removePolicy(removal, records),
    renewGrant: async (client) => {
      const { renewGrant } = await import('./grant-renewal.ts')
      return renewGrant(client, { grants: store.records.grants, clock, config })
    },
    runSchedule: async () => {
      throw new CommandError(EX.unavailable, 'no daemon runs here, which makes the runs of schedules: start it with deferd start')
    },
    destinations: () => Promise.resolve(null),
    close,
  }
}
