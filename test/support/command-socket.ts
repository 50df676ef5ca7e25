/** The socket of commands over the parts of a queue, as a daemon opens it, without a relay. */
import { ToldAddresses } from '../../src/mail/told-addresses.ts'
import { AccessEntries } from '../../src/access/access-entries.ts'
import { Api } from '../../src/api/api.ts'
import type { QueueView } from '../../src/queries/queue-view.ts'
import { DestinationPolicies } from '../../src/config/destination-policies.ts'
import { defaultConfig } from '../../src/config/load.ts'
import { Admin } from '../../src/daemon/admin/admin.ts'
import { Traces } from '../../src/sessions/traces.ts'
import { localRoutes, type LocalQueue } from '../../src/daemon/local-routes.ts'
import { removePolicy } from '../../src/delivery/sts/policy-removal.ts'
import { Operations } from '../../src/queue/operations.ts'
import { storedScheduler } from '../../src/queue/stored-scheduler.ts'
import type { JobDeps } from '../../src/queue/operation-jobs.ts'
import type { QueueStore } from '../../src/store/queue-store.ts'
import { openQueueReader } from '../../src/store/sqlite/reading/sqlite-reader.ts'
import { SubscriptionChanges } from '../../src/subscriptions/subscription-changes.ts'
import type { Clock } from '../../src/system/clock.ts'
import { EventRecorder } from '../../src/outbox/event-recorder.ts'
import { QuotaChanges } from '../../src/queue/intake/quota-changes.ts'
import { SuppressionChanges } from '../../src/suppression/suppression-changes.ts'
import { systemRandom } from '../../src/system/system-random.ts'
import { Events } from '../../src/telemetry/events.ts'
import { idleRecorder } from './idle-recorder.ts'
import { RETENTION } from './operate.ts'

export interface SocketParts extends Partial<Pick<JobDeps, 'scheduler' | 'throttle' | 'events'>> {
  readonly directory: string
  readonly store: QueueStore
  readonly clock: Clock
  readonly moves?: LocalQueue['moves']
}

const absent = (what: string) => () => {
  throw new Error(`no ${what} is expected`)
}

/** Runs a story while the socket is open. */
export async function withCommandSocket(parts: SocketParts, story: (admin: Admin) => Promise<void>): Promise<void> {
  const { directory, store, clock, events = new Events(() => clock.wall.now()), moves = { perform: absent('move') } } = parts
  const reader = openQueueReader(directory)
  const scheduler = parts.scheduler ?? storedScheduler(store, reader, idleRecorder)
  const loaded = defaultConfig('h')
  const policies = new DestinationPolicies(loaded.config)
  const shared = { store, reader, clock }
  const operations = new Operations({
    ...shared,
    recorder: idleRecorder,
    events,
    policies: () => policies,
    retention: () => RETENTION,
    scheduler,
    ...(parts.throttle === undefined ? {} : { throttle: parts.throttle }),
  })
  const subscriptions = new SubscriptionChanges({ ...shared, changed: () => Promise.resolve() })
  const found = (name: string) => scheduler.snapshot().find((one) => one.destination === name)
  const view: QueueView = {
    ...shared,
    runSchedule: absent('run of a schedule'),
    domainChecks: absent('check of a domain'),
    nodes: () => null,
    loaded: () => loaded,
    addresses: new ToldAddresses(),
    live: {
      brief: absent('brief'),
      destinations: async () => scheduler.snapshot(),
      named: async (names) => names.flatMap((name) => found(name) ?? []),
      destination: async (name) => ({ live: found(name), recent: { outcomes: [], causes: [], windows: [] } }),
      shares: async () => [],
      owners: async () => () => null,
      log: absent('log'),
    },
    operations: () => operations,
    subscriptions: () => Object.assign(subscriptions, { test: absent('test event') }),
    tokens: () => shared,
    quotaChanges: () => new QuotaChanges({ store, clock, tables: () => [], changed: async () => undefined }),
    suppressionChanges: () =>
      new SuppressionChanges({ ...shared, recorder: new EventRecorder(clock), events, changed: async () => undefined }),
    random: systemRandom,
    plan: absent('plan'),
    submissions: absent('submission'),
    policies: () => policies,
    notices: absent('notice'),
    draw: absent('draw'),
    health: absent('health'),
    tally: absent('tally'),
    attention: absent('attention'),
    onEvents: () => () => undefined,
  }
  const api = new Api(view, {
    records: () => ({
      ...shared,
      access: new AccessEntries(shared),
      removePolicy: (removal) => removePolicy(removal, shared),
      oauth: absent('oauth'),
      renewToken: absent('token request'),
    }),
  })
  const commands = localRoutes({
    clock,
    queue: () => ({
      destinations: () => operations.destinations(),
      status: absent('status'),
      moves,
      traces: new Traces(clock),
      audit: store.records.audit,
      node: null,
    }),
    newCode: absent('code'),
    url: () => null,
    readFiles: () => Promise.reject(new Error('no files')),
    rereads: () => Promise.reject(new Error('no files')),
  })
  const admin = new Admin({
    queueDirectory: directory,
    config: loaded.config,
    clock,
    random: systemRandom,
    events,
    tokens: () => ({ clock, reader: shared.reader.records.tokens, store: shared.store.records.tokens }),
    routes: [...api.routes, ...commands],
    closeRoutes: () => api.close(),
    refusalPage: absent('page'),
    loginPage: absent('page'),
  })
  await admin.openSocket()
  try {
    await story(admin)
  } finally {
    await admin.refuse()
    await operations.jobs.stop()
    await admin.close()
    await reader.close()
  }
}
