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
import { QuotaChanges } from '../../queue/intake/quota-changes.ts'
import { suppressionFilter, suppressionRemoval } from '../../queries/records/suppression-entries.ts'
import { importedLines } from '../../suppression/import-lines.ts'
import { SuppressionChanges, type SuppressionChangesDeps } from '../../suppression/suppression-changes.ts'
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
    resume: (name, who) => operations.resume(name, { who }),
    suspendProvider: (name, request) => operations.suspendProvider(name, request),
    resumeProvider: (name, who) => operations.resumeProvider(name, { who }),
    addAccess: (entry) => access.add(entry),
    removeAccess: (subject, key, who) => access.remove(subject, key, { who }),
    resetQuota: (reset) =>
      new QuotaChanges({ store, clock, tables: () => [...config.quota.values()], changed: () => Promise.resolve() }).reset(reset),
    ...suppressionMethods({ store, clock, recorder, events, changed: () => Promise.resolve() }),
    removeStsPolicy: (removal) => removePolicy(removal, records),
    renewGrant: async (client) => {
      const { renewGrant } = await import('./grant-renewal.ts')
      return renewGrant(client, { grants: store.records.grants, clock, config })
    },
    runSchedule: withoutDaemon('makes the runs of schedules'),
    planResending: withoutDaemon('sends mail again'),
    resend: withoutDaemon('sends mail again'),
    planErasure: withoutDaemon('erases addresses'),
    erase: withoutDaemon('erases addresses'),
    operation: withoutDaemon('carries out operations'),
    destinations: () => Promise.resolve(null),
    close,
  }
}

type SuppressionMethods = Pick<QueueClient, 'addSuppression' | 'importSuppressions' | 'removeSuppressions' | 'resumeSuppressions'>

/** Changes of the suppression list. */
function suppressionMethods(deps: SuppressionChangesDeps): SuppressionMethods {
  const { clock } = deps
  const changes = new SuppressionChanges(deps)
  return {
    addSuppression: (entry, who) => changes.add(entry, { who }),
    importSuppressions: async (text, scope, who) => {
      const { entries, mistakes } = importedLines(text, { scope, ...momentOf(clock) })
      if (mistakes.length > 0) throw new CommandError(EX.data, mistakes.map(({ line, text: why }) => `line ${line}: ${why}`).join('\n'))
      await changes.import(entries, { who })
      return entries.length
    },
    removeSuppressions: async ({ selection, ...removal }) => {
      const selected =
        selection.kind === 'keys' ? selection : ({ kind: 'filter', filter: suppressionFilter(selection.query, { clock }) } as const)
      return suppressionRemoval(await changes.remove({ ...removal, selection: selected }), { clock })
    },
    resumeSuppressions: (scope, who) => changes.resume(scope, { who }),
  }
}

const withoutDaemon = (task: string) => async (): Promise<never> => {
  throw new CommandError(EX.unavailable, `no daemon runs here, which ${task}: start it with deferd start`)
}
