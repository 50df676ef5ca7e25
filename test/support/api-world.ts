/**
 * A queue in virtual time with the API over it. Mail for `ok.example` is delivered, that for `slow.example` in an hour; other mail is deferred.
 */
import { defaultConfig, type LoadedConfig } from '../../src/config/load.ts'
import { AccessEntries } from '../../src/access/access-entries.ts'
import { Operations } from '../../src/queue/operations.ts'
import type { ApiParts } from '../../src/daemon/queue-api.ts'
import type { OutboxUpkeep } from '../../src/outbox/outbox-upkeep.ts'
import { SubscriptionChanges } from '../../src/subscriptions/subscription-changes.ts'
import { HOUR } from '../../src/system/clock.ts'
import { seededRandom } from '../../src/system/random.ts'
import { QueueClock } from '../../src/system/queue-clock.ts'
import { Events } from '../../src/telemetry/events.ts'
import { ApiServer } from './api-server.ts'
import { DomainChecks } from '../../src/relay/domain-checks.ts'
import { ScheduleRunner } from '../../src/schedules/schedule-runner.ts'
import type { Behaviour } from './modelled-remote.ts'
import { QueueWorld, type QueueWorldOptions } from './queue-world.ts'

const BUSY: Behaviour = { kind: 'replies', reply: '450 4.2.1 busy, try later' }

const BEHAVIOURS: Readonly<Record<string, Behaviour>> = {
  'ok.example': { kind: 'accepts' },
  'slow.example': { kind: 'accepts', takes: HOUR },
  'unknown.example': { kind: 'replies', reply: '550 5.1.1 no such user' },
}

export class ApiWorld {
  readonly queue: QueueWorld
  readonly api: ApiServer
  readonly parts: ApiParts
  readonly operations: Operations
  /** Tells streams of new events; absent until a test sets it. */
  published: Pick<OutboxUpkeep, 'onPublished'> | undefined
  /** Called after each round of an operation. */
  afterRound: (messages: number) => Promise<void> = async () => undefined

  /** Answers the checks of domains; rejects until a test sets it. */
  answer: ConstructorParameters<typeof DomainChecks>[0]['answer'] = () => Promise.reject(new Error('this world has no DNS'))
  readonly domainChecks: DomainChecks

  private constructor(queue: QueueWorld, loaded: LoadedConfig) {
    this.queue = queue
    const { relay, store, reader } = queue
    const clock = new QueueClock(queue.clock)
    const events = new Events(() => clock.wall.now())
    const { recorder } = relay
    const outbox = { onPublished: (listener: (isChange: boolean) => void) => this.published?.onPublished(listener) ?? (() => undefined) }
    this.operations = new Operations({
      mail: relay.mailEntry,
      random: seededRandom(1),
      recorder,
      store,
      reader,
      clock,
      events,
      policies: () => relay.policies,
      retention: () => relay.config,
      scheduler: relay.schedulerControl,
      throttle: (messages) => this.afterRound(messages),
    })
    const subscriptions = new SubscriptionChanges({ store, reader, clock, changed: () => recorder.refresh(store.outbox) })
    const accessEntries = new AccessEntries({ store, reader, clock })
    const schedules = new ScheduleRunner({
      store,
      clock,
      events,
      recorder,
      node: 'api',
      isShared: false,
      tables: () => loaded.config.schedule,
      work: async ({ table }) => ({ outcome: table.name === 'broken' ? 'failed' : 'done', text: table.action.do, changed: 1 }),
      pause: async () => undefined,
    })
    const domainChecks = new DomainChecks({ store, clock, node: 'api', answer: (...question) => this.answer(...question) })
    this.domainChecks = domainChecks
    this.parts = {
      relay,
      store,
      reader,
      services: { operations: this.operations, subscriptions, sender: null, schedules, domainChecks },
      outbox,
      accessEntries,
      node: null,
    }
    this.api = new ApiServer({ clock, loaded, parts: () => this.parts })
  }

  static async open(
    store: 'memory' | 'sqlite' = 'sqlite',
    loaded = defaultConfig(),
    config: QueueWorldOptions['config'] = {},
    more: Pick<QueueWorldOptions, 'providerOf'> = {},
  ): Promise<ApiWorld> {
    const queue = await QueueWorld.create({
      store,
      config,
      ...more,
      remote: ({ destination }) => BEHAVIOURS[destination] ?? BUSY,
    })
    const world = new ApiWorld(queue, loaded)
    await world.api.start()
    return world
  }

  /** Queues messages for one recipient each, and waits for their first attempts. */
  async fill(count: number, domain = 'a.example.org'): Promise<readonly string[]> {
    const ids: string[] = []
    for (let n = 0; n < count; n++) ids.push(await this.queue.accept([`user${n}@${domain}`]))
    await this.queue.rest()
    return ids
  }

  async close(): Promise<void> {
    await this.domainChecks.stop()
    await this.api.close()
    await this.queue.close()
  }
}
