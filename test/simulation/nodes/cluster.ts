/** A simulated cluster: several relays over one queue, on one virtual clock, with one remote network. */
import { ALL_EVENTS, settingsOf } from '../../../src/outbox/configured-subscriptions.ts'
import type { Socket } from 'node:net'
import { loadTemplates } from '../../../src/bounce/templates.ts'
import { configFrom } from '../../../src/config/load.ts'
import { normalizeAddress } from '../../../src/mail/address.ts'
import type { OwnerId } from '../../../src/mail/message.ts'
import { Operations } from '../../../src/queue/operations.ts'
import type { OperationName } from '../../../src/queue/operation-request.ts'
import { directReader } from '../../../src/store/reader-methods.ts'
import { MemoryReader } from '../../../src/store/memory/memory-reader.ts'
import { intercepted } from '../../../src/store/methods.ts'
import type { NodeTable } from '../../../src/store/membership/node-table.ts'
import type { LiveDestination } from '../../../src/queue/scheduler/destination.ts'
import type { QueueReader } from '../../../src/store/queue-reader.ts'
import { ANY_MESSAGE } from '../../../src/store/message-conditions.ts'
import { Fenced, type QueueStore } from '../../../src/store/queue-store.ts'
import { SECOND, type Duration, type QueueTime } from '../../../src/system/clock.ts'
import { seededRandom } from '../../../src/system/random.ts'
import { Mailbox } from '../../../src/testkit/results/mailbox.ts'
import { ruleFrom } from '../../../src/testkit/scripted/remote-domain.ts'
import type { ReceivedMail } from '../../../src/testkit/remote/remote-events.ts'
import { RemoteNetwork } from '../../../src/testkit/remote/remote-network.ts'
import type { RuleText, World } from '../../../src/testkit/index.ts'
import { keepEventLoopFunctions } from '../../../src/testkit/virtual/event-loop-functions.ts'
import { systemError } from '../../../src/testkit/virtual/memory-socket.ts'
import { MemoryNet } from '../../../src/testkit/virtual/memory-net.ts'
import { TimeDriver } from '../../../src/testkit/virtual/time-driver.ts'
import { BEGINNING, VirtualClock } from '../../../src/testkit/virtual/virtual-clock.ts'
import { History, type TracedEvent } from '../../../src/testkit/results/world-history.ts'
import type { WorldConfig } from '../../../src/testkit/options/world-options.ts'
import { Dice } from '../generator.ts'
import { AttemptRecorder, digest, isRead } from '../recorder.ts'
import { Database } from './database.ts'
import { SimulatedNode } from './node.ts'
import type { CommitFault } from './node-scenario.ts'

const HOSTNAME = 'deferd.example'

export interface ClusterOptions {
  readonly seed: number
  readonly nodes: number
  readonly lease: Duration
  readonly commitTakes: Duration
  readonly config: WorldConfig
  readonly commitFaults: readonly CommitFault[]
}

export class Cluster {
  readonly clock = new VirtualClock()
  readonly history = new History()
  readonly remote: RemoteNetwork
  readonly nodes: readonly SimulatedNode[]
  readonly database: Database
  readonly #dice: Dice
  readonly #driver: TimeDriver
  readonly #net: MemoryNet
  readonly #received = new Map<string, ReceivedMail[]>()
  readonly #reader: QueueReader
  readonly #release = keepEventLoopFunctions()
  readonly #commitFaults: Map<number, CommitFault>
  readonly #attempts = new AttemptRecorder((did, details) => this.note(did, details))
  #commits = 0

  constructor({ seed, nodes, lease, commitTakes, config: asked, commitFaults }: ClusterOptions) {
    this.#commitFaults = new Map(commitFaults.map((fault) => [fault.commit, fault]))
    const { clock, history } = this
    this.#dice = new Dice(seed ^ 0x2f6e2b1)
    this.remote = new RemoteNetwork({
      clock,
      random: seededRandom(seed),
      onEvent: (event) => history.record({ at: clock.monotonic(), where: 'remote', event }),
      keep: (mail) => this.#receive(mail),
    })
    this.#net = new MemoryNet(clock, this.remote)
    this.#driver = new TimeDriver(clock, { net: this.#net })
    this.database = new Database(clock, this.#dice, commitTakes)
    for (const { fault, commit, time } of commitFaults) if (fault === 'late') this.database.lateRequests.set(commit, time)
    this.database.onLate = (name, time) => {
      this.note('node fault', { fault: 'late', time })
      this.nodes.find(({ id }) => id === Number.parseInt(name, 10))?.cut(time)
    }
    this.#reader = directReader(new MemoryReader(this.database.queue))
    this.database.queue.outbox.subscribe({ name: 'all', settings: settingsOf(ALL_EVENTS), at: BEGINNING, by: '' })
    this.nodes = Array.from({ length: nodes }, (_, index) => {
      const at = { address: '127.0.0.1', port: 2525 + index }
      const { config, written } = configFrom({ smtpd_listen: [`${at.address}:${at.port}`], ...asked }, HOSTNAME)
      const { templates } = loadTemplates({ config, written })
      return new SimulatedNode({
        index,
        at,
        seed,
        lease,
        clock,
        net: this.#net,
        database: this.database,
        settings: { config, templates },
        onEvent: (event, node) => this.#add({ where: 'queue', event, node }),
        recorded: (store, node) => this.#recorded(store, node),
        recordedTable: (table) => this.#recordedTable(table),
        watched: (agent, node, isAlive) => this.#attempts.recorded(agent, isAlive, { node }),
        did: (did, node) => this.note(did, { node }),
      })
    })
  }

  // --- records

  note(did: string, details: Readonly<Record<string, unknown>> = {}): void {
    this.#add({ where: 'test', event: { did, ...details } })
  }

  #add(entry: { readonly where: string; readonly event: unknown; readonly node?: OwnerId }): void {
    this.history.record({ at: this.clock.monotonic(), ...entry } as TracedEvent)
  }

  /** Commits, as the database makes them, whether or not the node gets the answer. */
  #recorded(store: QueueStore, node: OwnerId): QueueStore {
    return intercepted(store, async (method, args, perform) => {
      const answer = await perform()
      if (method === 'readChunk' || method === 'nextIds' || method === 'ping' || isRead(method, args)) return answer
      const asked = BEGINNING + this.clock.monotonic()
      this.note('committed', { number: ++this.#commits, asked, node, ...digest(method, args, answer) })
      this.#strike(this.#commits, node)
      return answer
    })
  }

  #strike(commit: number, id: OwnerId): void {
    const fault = this.#commitFaults.get(commit)
    const node = this.nodes.find((one) => one.id === id)
    if (fault === undefined || node === undefined || fault.fault === 'late') return
    const { commit: _, ...what } = fault
    this.note('node fault', what)
    if (fault.fault === 'pause') node.pause(fault.time, fault.still)
    else node[fault.fault](fault.time)
  }

  /** Ends the faults that commits cause. */
  calm(): void {
    this.#commitFaults.clear()
    this.database.lateRequests.clear()
    this.database.disturbance = 0
  }

  #recordedTable(nodes: NodeTable): NodeTable {
    return new Proxy(nodes, {
      get: (target, name: keyof NodeTable) => {
        if (name === 'me') return target.me
        return (...args: unknown[]) => {
          const answer: unknown = (target[name] as (...given: unknown[]) => unknown).apply(target, args)
          if (answer instanceof Promise)
            void answer.then(
              (value: unknown) => this.#tableCalled(name, target.me, args, value),
              () => undefined,
            )
          return answer
        }
      },
    })
  }

  #tableCalled(name: keyof NodeTable, node: OwnerId, [first]: readonly unknown[], answer: unknown): void {
    if (name === 'takeOver' && answer !== null) this.note('node ended', { node: first, taker: node })
    if (name === 'leave') this.note('node ended', { node, taker: node })
    if (name === 'takeShards' && (answer as readonly number[]).length > 0) this.note('shards taken', { node, shards: answer })
    if (name === 'releaseShards') this.note('shards released', { node, shards: first })
    if (name === 'beat') this.note('beat', { node, lives: answer !== null })
  }

  #receive(mail: ReceivedMail): void {
    for (const recipient of mail.recipients) {
      const mails = this.#received.get(recipient)
      if (mails === undefined) this.#received.set(recipient, [mail])
      else mails.push(mail)
    }
  }

  // --- time

  setWall(by: Duration): void {
    this.note('set the clock', { by: by / SECOND })
    this.clock.step(by)
  }

  async start(): Promise<void> {
    for (const node of this.nodes) await this.driven(node.start())
    await this.#driver.catchUp()
  }

  async advanceTo(at: Duration): Promise<void> {
    await this.#driver.runUntil(this.clock.now() + Math.max(0, at - this.clock.monotonic()))
  }

  /** Runs until `work` has settled; gives it up after `patience`, because its node may have ended. */
  async driven<T>(work: Promise<T>, patience: Duration = 600 * SECOND): Promise<T | undefined> {
    let done = false
    const end = () => {
      done = true
    }
    work.then(end, end)
    const until: QueueTime = this.clock.monotonic() + patience
    await this.#driver.runWhile(() => !done && this.clock.monotonic() < until)
    return done ? work : undefined
  }

  close(): void {
    for (const node of this.nodes) node.kill(Number.MAX_SAFE_INTEGER / 4)
    this.remote.close()
    this.#release()
  }

  // --- the parts of a World that clients and readers use

  rule(written: RuleText): void {
    this.remote.addRules(ruleFrom('rule', written))
  }

  mailbox(address: string): Mailbox {
    const name = normalizeAddress(address)
    return new Mailbox(name, this.#received.get(name) ?? [])
  }

  /** Connects a client to a node. */
  transport(): ReturnType<World['transport']> {
    const node = this.#dice.one(this.nodes)
    return {
      host: HOSTNAME,
      port: node.at.port,
      ignoreTLS: true,
      getSocket: (_options, callback) => {
        if (!node.listens) return callback(systemError('ECONNREFUSED', 'connect', node.at))
        this.#net.dialFrom('127.0.0.1', node.at).then(
          (connection: Socket) => callback(null, { connection }),
          (error: unknown) => callback(error instanceof Error ? error : new Error(String(error))),
        )
      },
    }
  }

  get reader(): QueueReader {
    return this.#reader
  }

  /** Destinations in the memory of the nodes that schedule them. */
  destinations(): readonly LiveDestination[] {
    return this.nodes.flatMap(({ life }) => {
      if (life === null) return []
      return life.relay.schedulerControl.snapshot().filter(({ destination }) => life.member.owns(destination))
    })
  }

  // --- operators, each at one node

  async operate(operation: OperationName, ids: readonly string[] | 'all'): Promise<void> {
    await this.#order(operation, ({ relay, incarnation: { store, clock, events } }) => {
      const { policies, schedulerControl: scheduler } = relay
      const retention = () => relay.config
      const operations = new Operations({
        recorder: relay.recorder,
        store,
        reader: this.#reader,
        clock,
        events,
        policies: () => policies,
        retention,
        scheduler,
      })
      const selection = ids === 'all' ? { kind: 'filter' as const, filter: ANY_MESSAGE, limit: null } : { kind: 'ids' as const, ids }
      const request = { operation, selection, queues: null, purge: false, release: null, class: null, dryRun: false, who: 'operator' }
      return operations.perform(request)
    })
  }

  async suspend(destination: string): Promise<void> {
    const suspension = { by: 'operator', until: null, reason: null }
    await this.#order('suspend', ({ relay }) => relay.schedulerControl.suspend(destination, suspension), destination)
  }

  async resume(destination: string): Promise<void> {
    await this.#order('resume', ({ relay }) => relay.schedulerControl.resume(destination, 'operator'), destination)
  }

  /** Runs an order at a node. It fails, as for an operator, when the database cannot be reached or the node ends. */
  async #order(name: string, order: (life: NonNullable<SimulatedNode['life']>) => Promise<unknown>, destination?: string): Promise<void> {
    const running = this.nodes.flatMap(({ life }) => (life === null ? [] : [life]))
    if (running.length === 0) return
    let isAwaited = true
    const answered = order(this.#dice.one(running)).then(() => {
      if (isAwaited) this.note('was carried out', { order: name, destination })
      return true
    })
    try {
      if ((await this.driven(answered)) === undefined) this.note('was refused', { why: 'no answer' })
    } catch (error) {
      const refused = error instanceof Fenced || (error instanceof Error && /^(?:StoreUnavailable|NotTakenBack)$/.test(error.name))
      if (!refused) throw error
      this.note('was refused', { why: error.message })
    } finally {
      isAwaited = false
    }
  }
}
