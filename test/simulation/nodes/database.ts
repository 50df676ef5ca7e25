/**
 * A simulated database server over a queue in memory, and the connections of nodes to it. A connection may be cut, lose requests and
 * answers, and deliver a request late. It resolves what was in doubt as the contract of the store demands: a node that was disconnected
 * begins a new session, which ends the old one, and only then looks up or repeats its calls.
 */
import { SECOND, type Duration } from '../../../src/system/clock.ts'
import type { RecipientId } from '../../../src/mail/message.ts'
import { emptyQueue } from '../../../src/store/memory/queue-state.ts'
import { intercepted, type QueueMethod } from '../../../src/store/methods.ts'
import type { NodeTable } from '../../../src/store/membership/node-table.ts'
import type { NewMessage } from '../../../src/store/new-message.ts'
import { Fenced, StoreUnavailable, type QueueStore } from '../../../src/store/queue-store.ts'
import type { Report } from '../../../src/store/recorded-outcomes.ts'
import type { VirtualClock } from '../../../src/testkit/virtual/virtual-clock.ts'
import type { Dice } from '../generator.ts'
import { isRead } from '../recorder.ts'

/** The answer to a request is lost; the request may have been carried out. */
class InDoubt extends Error {}

/** Time for which a call waits for a connection before it rejects. */
const PATIENCE: Duration = 2 * SECOND
const RECONNECT: Duration = SECOND / 4

/** Methods that cannot be repeated: their request may be lost, but not their answer. */
const ONCE: ReadonlySet<string> = new Set(['operate', 'stage', 'move', 'nextIds', 'prune'])
const hasOnce = (method: QueueMethod, [record]: readonly unknown[]): boolean =>
  ONCE.has(method) || (method === 'record' && record === 'audit')
const CLAIMS: ReadonlySet<string> = new Set(['claimDue', 'claimExpired', 'claimSuspect'])

export class Database {
  readonly queue = emptyQueue()
  readonly clock: VirtualClock
  readonly dice: Dice
  /** Duration of a transaction. */
  readonly takes: Duration
  /** Probability that a request is lost, carried out without an answer, or delivered late. */
  disturbance = 0
  /** Time until which no node reaches the server, on the monotonic clock. */
  awayUntil: Duration = 0
  /** Requests that are delivered late, by their number, with their delay. */
  readonly lateRequests = new Map<number, Duration>()
  /** Called when such a request is held up. */
  onLate: (node: string, time: Duration) => void = () => undefined
  #requests = 0
  /** Number of requests in doubt, of late requests, and of late requests that their session refused. */
  readonly counts = { inDoubt: 0, late: 0, refused: 0 }
  /** Current session of each connection. */
  readonly #sessions = new Map<string, number>()
  readonly #connections = new Set<Connection>()

  constructor(clock: VirtualClock, dice: Dice, takes: Duration) {
    this.clock = clock
    this.dice = dice
    this.takes = takes
  }

  /** Ends all connections, and forgets the beats, which are not durable. Their numbers do not come again. */
  failOver(time: Duration): void {
    this.goAway(time)
    for (const node of this.queue.nodes.values()) node.beat = this.clock.monotonic()
  }

  goAway(time: Duration): void {
    this.awayUntil = Math.max(this.awayUntil, this.clock.monotonic() + time)
    for (const connection of this.#connections) connection.breakDown()
  }

  /** Counts a request. Returns its delay when it is delivered late. */
  counted(): Duration | undefined {
    return this.lateRequests.get(++this.#requests)
  }

  connect(name: string): Connection {
    const connection = new Connection(this, name)
    this.#connections.add(connection)
    return connection
  }

  disconnect(connection: Connection): void {
    this.#connections.delete(connection)
  }

  /** Begins a session, which ends the earlier session of the same connection. */
  begin(name: string): number {
    const session = this.#current(name) + 1
    this.#sessions.set(name, session)
    return session
  }

  isCurrent(name: string, session: number): boolean {
    return this.#current(name) === session
  }

  #current(name: string): number {
    return this.#sessions.get(name) ?? 0
  }
}

export class Connection {
  readonly #database: Database
  readonly #name: string
  #session: number
  #cutUntil: Duration = 0
  #up = true
  #closed = false
  #waiting: (() => void)[] = []
  /** Called in a new session, before any other call. */
  onReconnect: () => Promise<void> = () => Promise.resolve()

  constructor(database: Database, name: string) {
    this.#database = database
    this.#name = name
    this.#session = database.begin(name)
  }

  /** The machine of the node is dead: nothing is sent any more. */
  close(): void {
    this.#closed = true
    this.#up = false
    this.#database.disconnect(this)
  }

  cut(time: Duration): void {
    this.#cutUntil = Math.max(this.#cutUntil, this.#database.clock.monotonic() + time)
    this.breakDown()
  }

  breakDown(): void {
    if (!this.#up || this.#closed) return
    this.#up = false
    this.#reconnectLater()
  }

  #reconnectLater(): void {
    const { clock } = this.#database
    clock.after(RECONNECT, () => {
      if (this.#closed) return
      if (clock.monotonic() < Math.max(this.#cutUntil, this.#database.awayUntil)) return this.#reconnectLater()
      this.#session = this.#database.begin(this.#name)
      this.onReconnect().then(
        () => this.#resume(),
        () => this.#resume(),
      )
    })
  }

  #resume(): void {
    this.#up = true
    for (const resume of this.#waiting.splice(0)) resume()
  }

  /** Resolves when the connection is up. Rejects with StoreUnavailable after `patience`. */
  async ready(patience: Duration): Promise<void> {
    if (this.#up) return
    const { clock } = this.#database
    const up = new Promise<boolean>((resolve) => {
      this.#waiting.push(() => resolve(true))
      if (patience < Infinity) clock.after(patience, () => resolve(false))
    })
    if (!(await up)) throw new StoreUnavailable('the database cannot be reached')
  }

  /** One request and its answer. Rejects with InDoubt when the answer is lost. */
  async exchange<T>(perform: () => Promise<T>, isOnce: boolean, isChange = false): Promise<T> {
    const { clock, dice, takes, counts } = this.#database
    const session = this.#session
    const delay = isChange ? this.#database.counted() : undefined
    if (delay !== undefined && !isOnce) {
      counts.late++
      clock.after(delay, () => this.#deliver(session, perform))
      this.#database.onLate(this.#name, 1.2 * delay)
      throw new InDoubt()
    }
    const fate = this.#fate(isOnce)
    if (fate === 'late') {
      counts.late++
      clock.after(this.#delay(), () => this.#deliver(session, perform))
    }
    if (fate === 'late' || fate === 'lost') {
      this.breakDown()
      throw new InDoubt()
    }
    if (takes > 0) await new Promise<void>((resolve) => clock.after(takes, resolve))
    if (!this.#up || session !== this.#session) {
      // The packet was under way when the connection broke down.
      if (!isOnce && dice.chance(0.5)) clock.after(this.#delay(), () => this.#deliver(session, perform))
      throw new InDoubt()
    }
    const answer = await perform()
    if (fate === 'well') return answer
    counts.inDoubt++
    this.breakDown()
    throw new InDoubt()
  }

  #fate(isOnce: boolean): 'well' | 'lost' | 'no answer' | 'late' {
    const { dice, disturbance } = this.#database
    if (disturbance === 0 || !dice.chance(disturbance)) return 'well'
    return isOnce ? 'lost' : dice.one(['lost', 'no answer', 'no answer', 'late'])
  }

  /** Delay of a late packet: it may arrive after its node was taken over. */
  #delay(): Duration {
    const { dice } = this.#database
    return dice.number(1, dice.one([SECOND, 30 * SECOND, 300 * SECOND]))
  }

  /** A late packet arrives. The server takes it while its session lasts. */
  #deliver(session: number, perform: () => Promise<unknown>): void {
    const { counts, clock, awayUntil } = this.#database
    if (clock.monotonic() < awayUntil) return
    if (!this.#database.isCurrent(this.#name, session)) {
      counts.refused++
      return
    }
    perform().catch(() => undefined)
  }

  get isUp(): boolean {
    return this.#up
  }
}

/** The NodeTable of one node over its own connection. A call in doubt rejects with StoreUnavailable. */
export function tableOver(nodes: NodeTable, connection: Connection): NodeTable {
  return new Proxy(nodes, {
    get: (target, name: keyof NodeTable) => {
      if (name === 'me') return target.me
      if (name === 'onHint') return (listener: () => void) => target.onHint(() => connection.isUp && listener())
      return async (...args: unknown[]) => {
        await connection.ready(PATIENCE)
        try {
          return await connection.exchange(
            () => (target[name] as (...given: unknown[]) => Promise<unknown>).apply(target, args),
            name === 'takeOver',
          )
        } catch (error) {
          throw error instanceof InDoubt ? new StoreUnavailable(`the answer to ${name} was lost`) : error
        }
      }
    },
  })
}

/** The store of one node over its connection. */
export class StoreOver {
  readonly store: QueueStore
  readonly #inner: QueueStore
  readonly #database: Database
  readonly #connection: Connection
  /** Leases that the node knows, also those that it has only requested. */
  readonly #known = new Set<RecipientId>()
  #claimsInDoubt = 0

  constructor(inner: QueueStore, database: Database, connection: Connection) {
    this.#inner = inner
    this.#database = database
    this.#connection = connection
    connection.onReconnect = () => this.#reconcile()
    this.store = intercepted(inner, (method, args, perform) =>
      method === 'freeSpace' || method === 'tally' ? perform() : this.#call(method, args, perform),
    )
  }

  async #call(method: QueueMethod, args: readonly unknown[], perform: () => Promise<unknown>): Promise<unknown> {
    const requested = leasesRequested(method, args)
    for (const id of requested) this.#known.add(id)
    try {
      const answer = await this.#answer(method, args, perform)
      this.#note(method, args, answer)
      return answer
    } catch (error) {
      for (const id of requested) this.#known.delete(id)
      throw error
    }
  }

  async #answer(method: QueueMethod, args: readonly unknown[], perform: () => Promise<unknown>): Promise<unknown> {
    await this.#connection.ready(PATIENCE)
    for (;;) {
      try {
        return await this.#connection.exchange(perform, hasOnce(method, args), !isRead(method, args))
      } catch (error) {
        if (!(error instanceof InDoubt)) throw error
        if (CLAIMS.has(method)) this.#claimsInDoubt++
        if (CLAIMS.has(method) || hasOnce(method, args)) throw new StoreUnavailable(`the answer to ${method} was lost`)
      }
      await this.#connection.ready(Infinity)
      if (!this.#database.queue.nodes.has(this.#inner.leaseTerms().owner)) throw new Fenced('taken over while in doubt')
      const found = this.#lookUp(method, args)
      if (found !== undefined) return found.answer
    }
  }

  /** Whether a call in doubt was committed. Other calls are repeated, because their repetition has no further effect. */
  #lookUp(method: QueueMethod, args: readonly unknown[]): { readonly answer: unknown } | undefined {
    const { messages, history } = this.#database.queue
    const isThere = (id: number) => messages.has(id) || history.has(id)
    if (method === 'enqueue') return isThere((args[0] as NewMessage).message.id) ? { answer: undefined } : undefined
    if (method !== 'report') return undefined
    const { notices, message } = args[0] as Report
    const [first] = notices
    return first !== undefined && isThere(first.message.id) ? { answer: { entered: true, removed: !messages.has(message) } } : undefined
  }

  #note(method: QueueMethod, args: readonly unknown[], answer: unknown): void {
    for (const id of leasesClaimed(method, answer)) this.#known.add(id)
    for (const id of leasesEnded(method, args)) this.#known.delete(id)
  }

  /** Gives back what a claim leased whose answer was lost. */
  async #reconcile(): Promise<void> {
    if (this.#claimsInDoubt === 0) return
    this.#claimsInDoubt = 0
    const { owner } = this.#inner.leaseTerms()
    const all = [...this.#database.queue.messages.values()].flatMap(({ recipients }) => recipients)
    const unknown = all.filter(({ id, leasedBy }) => leasedBy === owner && !this.#known.has(id)).map(({ id }) => id)
    if (unknown.length > 0) await this.#inner.giveBack(unknown, owner)
  }
}

function leasesRequested(method: QueueMethod, args: readonly unknown[]): readonly RecipientId[] {
  const entries = method === 'enqueue' ? [args[0] as NewMessage] : method === 'report' ? (args[0] as Report).notices : []
  return entries.flatMap(({ message, recipients }) =>
    recipients.flatMap(({ leased }, position) => (leased ? [message.id * 131_072 + position] : [])),
  )
}

function leasesClaimed(method: QueueMethod, answer: unknown): readonly RecipientId[] {
  type Requests = Awaited<ReturnType<QueueStore['claimExpired']>>
  if (method === 'claimSuspect') return answer === undefined ? [] : leasesClaimed('claimExpired', [answer])
  if (method === 'claimDue') return leasesClaimed('claimExpired', (answer as { readonly requests: Requests }).requests)
  return method === 'claimExpired' ? (answer as Requests).flatMap(({ recipients }) => recipients.map(({ id }) => id)) : []
}

function leasesEnded(method: QueueMethod, args: readonly unknown[]): readonly RecipientId[] {
  if (method === 'giveBack') return args[0] as readonly RecipientId[]
  if (method !== 'settle') return []
  return (args[0] as Parameters<QueueStore['settle']>[0]).recipients.map(({ recipient }) => recipient)
}
