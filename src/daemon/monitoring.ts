/** Metrics and health checks of the daemon at http_listen. They stay when the queue is closed and opened again, so that counters continue. */
import type { Config } from '../config/options.ts'
import { completeTally } from '../store/counts/queue-tally.ts'
import { MINUTE, type Clock, type Duration } from '../system/clock.ts'
import { every, type PeriodicTask } from '../system/periodic-task.ts'
import type { Events } from '../telemetry/events.ts'
import { openMetrics } from '../telemetry/metrics/metrics.ts'
import { HttpPort } from '../http/http-port.ts'
import { HttpServer, type HealthCheck } from './http-server.ts'
import type { OpenParts } from './opening.ts'
import type { SideWatch } from './upkeep/side-watch.ts'

interface MonitoringDeps {
  readonly clock: Clock
  readonly events: Events
  /** The open queue; null while there is none. */
  readonly parts: () => OpenParts | null
  readonly silence: Pick<SideWatch, 'silence' | 'assertAnswers'>
  /** True for a queue of several nodes. */
  readonly shared: boolean
}

export class Monitoring {
  readonly #deps: MonitoringDeps
  readonly #port = new HttpPort('http_listen', () => this.#newServer())
  #servers: (() => HttpServer) | null = null
  #checks: PeriodicTask | null = null
  #transacted: (took: Duration) => void = () => undefined

  constructor(deps: MonitoringDeps) {
    this.#deps = deps
  }

  /** `address:port` of the open port; null without one. */
  get bound(): string | null {
    return this.#port.bound
  }

  /** Opens, moves or closes the port as configured. Rejects with CannotListen, and the former port then stays open. */
  apply(config: Config): Promise<void> {
    return this.#port.apply({ address: config.http_listen, families: config.inet_protocols, kind: '' })
  }

  /** Counts a transaction of PostgreSQL, once HTTP is in use. */
  transacted(took: Duration): void {
    this.#transacted(took)
  }

  async close(): Promise<void> {
    void this.#checks?.stop()
    await this.#port.close()
  }

  #newServer(): HttpServer {
    return (this.#servers ??= this.#prepare())()
  }

  /** The open queue. Throws while there is none. */
  #open(): OpenParts {
    const parts = this.#deps.parts()
    if (parts === null) throw new Error('this node joins the queue')
    return parts
  }

  /** Counts the metrics from the first use of HTTP on. Returns a function that makes a server for them. */
  #prepare(): () => HttpServer {
    const { clock, events, shared, silence } = this.#deps
    const parts = (): OpenParts => this.#open()
    const metrics = openMetrics({
      clock,
      tally: async (largest) => parts().store.tally(largest),
      destinations: () => this.#deps.parts()?.relay.schedulerControl.snapshot() ?? [],
      classes: () => this.#deps.parts()?.relay.policies.classes.names ?? [],
      slots: () => this.#deps.parts()?.relay.scheduler.destinations.slots,
      nodes: () => this.#deps.parts()?.node?.view() ?? null,
      database: () => this.#deps.parts()?.node?.database() ?? null,
      subscriptions: async () => (await this.#deps.parts()?.reader.allSubscriptions()) ?? [],
      limits: () => this.#deps.parts()?.relay.limitStates() ?? [],
      quotas: () => this.#deps.parts()?.relay.quotas.quotas.ratios() ?? new Map(),
      tokens: () => this.#deps.parts()?.relay.accessTokens.states() ?? [],
      silence: (name) => silence.silence(name),
    })
    this.#transacted = metrics.transacted
    events.listen(metrics.listen)
    // A scrape does not measure this, because a commit costs a sync of the disk, and every client of the port may scrape.
    const check = async (): Promise<void> => {
      const startedAt = clock.monotonic()
      await parts().store.upkeep.ping()
      metrics.committed(clock.monotonic() - startedAt)
    }
    // The parts that use the store report its failures.
    this.#checks = every(clock, MINUTE, check, { failed: () => undefined })
    /** A check that needs the writer fails at once while the writer does not answer. */
    const byWriter = (run: () => Promise<void>) => async () => (silence.assertAnswers('writer'), run())
    const checks: readonly HealthCheck[] = [
      { name: 'store', probes: BOTH, run: byWriter(check) },
      { name: 'reader', probes: ['healthz'], run: async () => silence.assertAnswers('reader') },
      { name: 'writer', probes: BOTH, run: async () => silence.assertAnswers('writer') },
      { name: 'space', probes: BOTH, run: byWriter(async () => parts().relay.intake.assertSpace()) },
      { name: 'scheduler', probes: ['healthz'], run: async () => parts().relay.scheduler.alive() },
      ...(shared ? nodeChecks(parts) : []),
    ]
    // Counts the queue in the background, so that the first scrape waits less. The count ends when the store is closed.
    completeTally(async () => parts().store.tally(0)).catch(() => undefined)
    return () => new HttpServer({ metrics, checks, clock })
  }
}

const BOTH = ['healthz', 'readyz'] as const

/** Checks of a node that shares its queue. */
const nodeChecks = (parts: () => OpenParts): readonly HealthCheck[] => [
  { name: 'node', probes: BOTH, run: async () => assertHolding(parts()) },
  { name: 'standby', probes: BOTH, run: async () => assertStandby(parts()) },
  { name: 'drained', probes: ['readyz'], isLive: true, run: async () => assertNotDraining(parts()) },
]

function assertStandby({ node }: OpenParts): void {
  if (node?.lacksStandby() === true)
    throw new Error(
      'no synchronous standby is connected to the database, and commits wait for one (synchronous_standby_names, queue_database_durability)',
    )
}

function assertNotDraining({ node }: OpenParts): void {
  if (node?.isDraining() === true) throw new Error('this node is drained, and refuses mail with 421: deferd node undrain ends that')
}

function assertHolding({ membership }: OpenParts): void {
  if (!membership.holds())
    throw new Error('this node has not reached the database in time, and delivers nothing: other nodes may have its mail')
}
