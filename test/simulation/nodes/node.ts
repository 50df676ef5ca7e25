/** One node of a simulated cluster, through its lives: each life joins the queue under a new number. */
import { ProviderDirectory } from '../../../src/config/provider-directory.ts'
import { ShardKeys } from '../../../src/store/membership/shard-keys.ts'
import type { Duration } from '../../../src/system/clock.ts'
import type { OwnerId } from '../../../src/mail/message.ts'
import { EVENT_TYPES } from '../../../src/events/event-types.ts'
import { Relay } from '../../../src/relay/relay.ts'
import { joinMemoryQueue } from '../../support/memory-node-table.ts'
import { Member } from '../../../src/store/membership/member.ts'
import { leaseTimes } from '../../../src/store/membership/node-lease.ts'
import type { NodeTable } from '../../../src/store/membership/node-table.ts'
import type { QueueReader } from '../../../src/store/queue-reader.ts'
import { StoreUnavailable, type QueueStore } from '../../../src/store/queue-store.ts'
import { seededRandom } from '../../../src/system/random.ts'
import type { Endpoint, Net } from '../../../src/system/net.ts'
import { Incarnation } from '../../../src/testkit/virtual/incarnation.ts'
import { BEGINNING, type VirtualClock } from '../../../src/testkit/virtual/virtual-clock.ts'
import type { QueueEvent } from '../../../src/telemetry/events.ts'
import type { DeliveryAgent } from '../../../src/delivery/delivery-agent.ts'
import { type Connection, type Database, StoreOver, tableOver } from './database.ts'
import { Freezer } from './freezer.ts'
import { WatchedNet } from './watched-net.ts'

/** The clock of a machine that stands still while its process is stopped. */
export type StandingClock = 'none' | 'monotonic' | 'wall'

export interface SimulatedNodeDeps {
  readonly index: number
  readonly at: Endpoint
  readonly seed: number
  readonly lease: Duration
  readonly clock: VirtualClock
  readonly net: Net
  readonly database: Database
  readonly settings: Pick<ConstructorParameters<typeof Relay>[0], 'config' | 'templates'>
  readonly onEvent: (event: QueueEvent, node: OwnerId) => void
  /** Records what is committed. */
  readonly recorded: (store: QueueStore, node: OwnerId) => QueueStore
  readonly recordedTable: (nodes: NodeTable) => NodeTable
  readonly watched: (agent: DeliveryAgent, node: OwnerId, isAlive: () => boolean) => DeliveryAgent
  readonly did: (what: string, node: OwnerId) => void
}

/** One life of a node. */
interface Life {
  readonly id: OwnerId
  readonly freezer: Freezer
  readonly incarnation: Incarnation
  readonly relay: Relay
  readonly member: Member
  readonly reader: QueueReader
  readonly connections: readonly Connection[]
}

export class SimulatedNode {
  readonly #deps: SimulatedNodeDeps
  #life: Life | null = null
  /** The last life that was told to end in order. */
  #leaving: Life | null = null
  /** True while its SMTP port is open. */
  #listens = false

  constructor(deps: SimulatedNodeDeps) {
    this.#deps = deps
  }

  get at(): Endpoint {
    return this.#deps.at
  }

  get listens(): boolean {
    return this.#listens
  }

  /** The life, while the process runs. */
  get life(): Life | null {
    return this.#life !== null && this.#life.incarnation.alive && !this.#life.freezer.frozen ? this.#life : null
  }

  /** The number of the process, also while it is stopped. */
  get id(): OwnerId | null {
    return this.#life?.id ?? null
  }

  async start(): Promise<void> {
    const { database, clock, did } = this.#deps
    // A daemon joins when it reaches the database.
    while (clock.monotonic() < database.awayUntil) await new Promise<void>((resolve) => clock.after(1_000, resolve))
    if (this.#life !== null) return
    const life = this.#assemble()
    this.#life = life
    did('node joined', life.id)
    try {
      await life.relay.listen()
      await life.relay.start()
    } catch (error) {
      // The database was lost meanwhile. The daemon ends, and its supervisor starts it again.
      if (!(error instanceof StoreUnavailable)) throw error
      return this.#end(1_000)
    }
    // The process may have ended, or have been told to end, during its start.
    if (this.#life !== life || this.#leaving === life) return
    this.#listens = true
    void life.member.start()
  }

  #assemble(): Life {
    const { index, seed, lease, clock, net, database, settings, onEvent, recorded, recordedTable, watched, did } = this.#deps
    const now = () => BEGINNING + clock.monotonic()
    const providers = new ProviderDirectory()
    const joined = joinMemoryQueue(database.queue, { name: `n${index}`, providers, now })
    const id = joined.nodes.me
    const freezer = new Freezer(clock, new WatchedNet(net, (what) => did(what, id)))
    const [data, control] = [database.connect(`${id} data`), database.connect(`${id} control`)]
    const incarnation = new Incarnation({
      clock: freezer.clock,
      net: freezer.net,
      store: frozen(new StoreOver(recorded(joined.store, id), database, data).store, freezer),
      // Records have times of the world's wall clock.
      onEvent: (event) => onEvent(event.kind === 'died' ? { ...event, until: event.until - freezer.wallSetBy } : event, id),
    })
    const { clock: queueClock, store, events } = incarnation
    // The queue's clock of a node begins with the time of the database.
    queueClock.resume({ time: now(), offset: now() - clock.now(), uptime: clock.uptime(), boot: clock.boot }, 0)
    const table = frozen(tableOver(recordedTable(joined.nodes), control), freezer)
    const member = new Member({
      nodes: table,
      clock: queueClock,
      keys: new ShardKeys(providers),
      lease,
      onEvent: ({ kind }) => {
        if (kind === 'fenced') this.#end(0)
      },
    })
    const relay = new Relay({
      ...settings,
      clock: queueClock,
      net: incarnation.net,
      store,
      providers,
      membership: member,
      events,
      random: seededRandom(seed + index),
      watchAgent: (agent) => watched(agent, id, () => incarnation.alive),
    })
    // The subscription of the cluster wants all types.
    void relay.recorder.refresh({ wantedTypes: () => Promise.resolve(EVENT_TYPES) })
    return { id, freezer, incarnation, relay, member, reader: joined.reader, connections: [data, control] }
  }

  // --- what happens to it

  /** Ends the process. Another life begins after `downFor`. */
  kill(downFor: Duration): void {
    if (this.#life === null) return
    this.#deps.did('node killed', this.#life.id)
    this.#end(downFor)
  }

  #end(downFor: Duration): void {
    const life = this.#life
    if (life === null) return
    this.#life = null
    this.#listens = false
    life.member.stop()
    life.incarnation.die()
    for (const connection of life.connections) connection.close()
    this.#deps.clock.after(downFor, () => void this.start())
  }

  /** Stops the process for a time. A clock of its machine may stand still meanwhile. */
  pause(time: Duration, still: StandingClock): void {
    const life = this.life
    if (life === null) return
    life.freezer.freeze()
    this.#deps.did('node paused', life.id)
    this.#deps.clock.after(time, () => {
      if (still === 'wall') this.#setWallBack(life.freezer, time)
      life.freezer.thaw(still === 'monotonic' ? time : 0, () => life.incarnation.clock.observe())
      this.#deps.did('node continued', life.id)
    })
  }

  /** Sets the wall clock of the machine back, until time synchronization corrects it. */
  #setWallBack(machine: Freezer, time: Duration): void {
    machine.wallSetBy -= time
    this.#deps.clock.after(this.#deps.lease, () => (machine.wallSetBy += time))
  }

  /** Cuts the connections to the database. */
  cut(time: Duration): void {
    if (this.#life === null) return
    this.#deps.did('node cut', this.#life.id)
    for (const connection of this.#life.connections) connection.cut(time)
  }

  /** Leaves in order, and joins again after a time. */
  async leave(downFor: Duration): Promise<void> {
    const life = this.life
    if (life === null) return
    this.#deps.did('node leaves', life.id)
    this.#leaving = life
    this.#listens = false
    await life.relay.stop(5_000)
    if (this.#life !== life) return
    await life.member.leave().catch(() => undefined)
    if (this.#life === life) this.#end(downFor)
  }
}

/** Times by which a node that nobody hears is taken over, counted from its last beat. */
export const takeoverTime = (lease: Duration): Duration => lease + 2 * leaseTimes(lease).beat

/** Answers arrive when the process runs. */
function frozen<Port extends QueueStore | NodeTable>(port: Port, freezer: Freezer): Port {
  return new Proxy(port, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name)
      if (typeof member !== 'function') return member
      const call = (...args: unknown[]): unknown => Reflect.apply(member, target, args)
      if (name === 'onHint') return (listener: () => void) => call(() => freezer.run(listener))
      if (name === 'nextId' || name === 'leaseTerms') return call
      return (...args: unknown[]) => freezer.answer(Promise.resolve(call(...args)))
    },
  })
}
