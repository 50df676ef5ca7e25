/**
 * The writing session: commits the calls that wait in batches, reconnects after a loss, and finds out whether a batch was committed whose
 * answer was lost. The new session waits for the end of the old one's transaction and makes its later statements fail; only then are
 * the tables asked.
 */
import { eventLoopTurn } from '../../../system/event-loop.ts'
import { seconds, sleep, type Duration } from '../../../system/clock.ts'
import type { ShardKeys } from '../../membership/shard-keys.ts'
import type { Shard } from '../../membership/shards.ts'
import type { Outcome } from '../../methods.ts'
import { Fenced, OutcomeUnknown, StoreUnavailable } from '../../queue-store.ts'
import { int8s } from '../session/arrays.ts'
import type { Connection } from '../session/database-connection.ts'
import { DatabaseAway } from '../../membership/database-errors.ts'
import { answersAfterCommit, wasCommitted } from './doubt.ts'
import { fence } from '../session/node-queries.ts'
import type { OwnLease, OwnLeases } from '../writing/own-leases.ts'
import type { RecentMail } from './recent-mail.ts'
import type { WritingEvent } from '../../membership/writing-events.ts'
import type { WantedTypes } from '../writing/transaction-events.ts'
import { refreshKeys } from '../session/key-changes.ts'
import * as sql from '../writing/queries.ts'
import { RequestRepeated } from '../../records/audit-log.ts'
import { databaseAway, failureKind, isRepetition, LOCK_HELD, rejected } from '../session/sql-errors.ts'
import type { StoreSide } from '../../store-health.ts'
import { WritingSession, type WritingSessionDeps } from './writing-session.ts'
import { batchOf, tryBatch, type PendingWrite, type Tried, type Writers } from './write-batch.ts'

/** Time without a session, or without a lock, after which calls reject, so that mail is refused. */
const AWAY_AFTER: Duration = seconds(2)
/** Time after which a call whose outcome is unknown rejects. */
const DOUBT_LIMIT: Duration = seconds(60)
/** Waits between tries to connect. */
const FIRST_PAUSE: Duration = 150
const LONGEST_PAUSE: Duration = 500
type InDoubt = Extract<Tried, { readonly outcome: 'in doubt' }>

/** A batch in doubt, and what is known of it. */
interface Doubt extends InDoubt {
  /** None after they were rejected. */
  batch: readonly PendingWrite[]
  isCommitted: boolean | null
}

/** Number of repetitions of a call that meets transactions of other nodes. */
const REPETITIONS = 20
const REPETITION_PAUSE: Duration = 20

interface WriterDeps extends WritingSessionDeps {
  /** Parameter `node_name`. */
  readonly name: string
  readonly writers: Writers
  readonly leases: OwnLeases
  readonly wanted: WantedTypes
  readonly keys: ShardKeys
  /** Called after a commit with shards whose owners find messages. */
  readonly wake: (shards: readonly Shard[]) => void
  /** Called once, when another node has taken this one over. */
  readonly onFenced: () => void
  readonly recent: RecentMail
  readonly onEvent: (event: WritingEvent) => void
}

export class Writer implements StoreSide {
  readonly #deps: WriterDeps
  readonly #session: WritingSession
  /** Number of transactions so far. */
  #number = 0
  /** Number of transactions that the database has answered. */
  #answered = 0
  #waiting: PendingWrite[] = []
  #running: Promise<void> | null = null
  #failure: StoreUnavailable | null = null
  #isAway = false
  #isClosed = false
  /** The batch whose commit is looked up. */
  #doubt: Doubt | null = null
  readonly #abandon = new AbortController()

  /** `connection` is that of the first session of the node. */
  constructor(connection: Connection, deps: WriterDeps) {
    this.#session = new WritingSession(connection, deps)
    this.#deps = deps
  }

  get answered(): number {
    return this.#answered
  }

  get isWaiting(): boolean {
    return this.#running !== null || (this.#isClosed && !this.#session.connection.isLost)
  }

  /** Aborted by `abandon`. */
  get abandoned(): AbortSignal {
    return this.#abandon.signal
  }

  add(call: PendingWrite): void {
    if (this.#failure !== null) return call.settle({ ok: false, error: this.#failure })
    if (this.#isAway) return call.settle({ ok: false, error: new DatabaseAway('the database of the queue cannot be reached') })
    this.#waiting.push(call)
    this.#start()
  }

  /** Runs the calls that wait. All calls of one turn of the event loop share a transaction. */
  #start(): void {
    this.#running ??= eventLoopTurn()
      .then(() => this.#run())
      .finally(() => {
        this.#running = null
        if (this.#waiting.length > 0) this.#start()
      })
  }

  /** Ends the session after the calls so far. */
  async close(): Promise<void> {
    this.#isClosed = true
    const abandoned = untilAborted(this.abandoned)
    await Promise.race([this.#running, abandoned])
    this.#fail(new StoreUnavailable('the store is closed'))
    await Promise.race([this.#session.connection.end(), abandoned])
  }

  /** Closes the session at once, like the end of the process. */
  destroy(): void {
    this.#isClosed = true
    this.#session.connection.destroy()
  }

  async abandon(): Promise<boolean> {
    this.#abandon.abort()
    this.destroy()
    if (this.#doubt !== null) this.#giveUp(this.#doubt)
    this.#fail(new StoreUnavailable('the database of the queue did not answer, and its session was ended'))
    return true
  }

  async #run(): Promise<void> {
    while (this.#waiting.length > 0 && this.#failure === null) {
      if (this.#session.connection.isLost && !(await this.#reconnected())) continue
      const batch = this.#waiting.splice(0, batchOf(this.#waiting))
      const until = this.#deps.clock.monotonic() + AWAY_AFTER
      const tried = await this.#try(batch)
      if (tried.outcome === 'failed' && batch.length > 1) await this.#commitOneByOne(batch, until)
      else await this.#repeat(batch, tried, until)
    }
  }

  /**
   * Runs each call of a failed batch alone, so that only the failing calls are rejected. When two in a row meet a lock, which is one of
   * a table then, all calls that wait are rejected.
   */
  async #commitOneByOne(batch: readonly PendingWrite[], until: Duration): Promise<void> {
    let locked = 0
    for (const [n, one] of batch.entries()) {
      if (this.#session.connection.isLost) return void this.#waiting.unshift(...batch.slice(n))
      locked = (await this.#repeat([one], await this.#try([one]), until)) ? locked + 1 : 0
      if (locked === 2) return this.#reject([...batch.slice(n + 1), ...this.#waiting.splice(0)], new DatabaseAway(LOCK_HELD))
    }
  }

  async #try(batch: readonly PendingWrite[]): Promise<Tried> {
    const { node, name, writers, wanted, keys, clock, onEvent } = this.#deps
    const terms = { node, name, session: this.#session.number, number: ++this.#number, writers, wanted, keys }
    const calls = batch.map(({ call }) => call)
    const begun = clock.monotonic()
    const run = (): Promise<Tried> => this.#session.limited((connection) => tryBatch(connection, calls, terms))
    let version = keys.version
    let tried = await run()
    // A change of the providers that this node has not seen fails its transactions too.
    while (tried.outcome === 'fenced') {
      const failure = await this.#refreshed()
      if (failure !== null) return { outcome: 'lost', error: failure }
      if (keys.version === version) break
      version = keys.version
      tried = await run()
    }
    if (tried.outcome !== 'lost' && tried.outcome !== 'in doubt') this.#answered++
    if (tried.outcome === 'committed') onEvent({ kind: 'committed', took: clock.monotonic() - begun })
    return tried
  }

  /** Reads the changes of the providers. Returns the failure that has ended the session; null without. */
  async #refreshed(): Promise<unknown> {
    const { node, keys } = this.#deps
    try {
      await this.#session.limited((connection) => refreshKeys(connection, node, keys))
      return null
    } catch (error) {
      this.#session.connection.destroy()
      return error
    }
  }

  /**
   * Repeats a failed call that may succeed, one that waits for a lock until a time, and rejects it otherwise. Resolves with true when
   * another session held the lock to the end. A deadlock is repeated without a limit of time, because PostgreSQL detects it only after
   * deadlock_timeout, and the other transaction continues then.
   */
  async #repeat(batch: readonly PendingWrite[], first: Tried, until: Duration): Promise<boolean> {
    const { clock } = this.#deps
    let tried = first
    const mayRepeat = () =>
      tried.outcome === 'failed' &&
      (tried.kind === 'unmet' || tried.kind === 'again' || (tried.kind === 'locked' && clock.monotonic() < until))
    for (let n = 0; n < REPETITIONS && mayRepeat(); n++) {
      if (tried.outcome === 'failed' && tried.kind === 'unmet') await this.#readLeases(batch)
      else await sleep(clock, REPETITION_PAUSE)
      tried = await this.#try(batch)
    }
    await this.#conclude(batch, tried)
    return tried.outcome === 'failed' && tried.kind === 'locked'
  }

  async #conclude(batch: readonly PendingWrite[], tried: Tried): Promise<void> {
    switch (tried.outcome) {
      case 'committed':
        if (tried.told.length > 0) this.#deps.wake(tried.told)
        batch.forEach(({ call }, n) => this.#deps.recent.committed(call, tried.answers[n]))
        return answer(batch, (n) => ({ ok: true, value: tried.answers[n] }))
      case 'fenced':
        return this.#fenced(batch)
      case 'failed':
        return answer(batch, () => ({ ok: false, error: rejectionOf(tried) }))
      case 'lost':
        this.#waiting.unshift(...batch)
        return
      case 'in doubt':
        return this.#resolve(batch, tried)
    }
  }

  /** Finds out whether a batch was committed. Answers it, or puts it back. */
  async #resolve(batch: readonly PendingWrite[], tried: InDoubt): Promise<void> {
    const doubt = (this.#doubt = { ...tried, batch, isCommitted: null as boolean | null })
    const limit = this.#deps.clock.after(DOUBT_LIMIT, () => this.#giveUp(doubt))
    try {
      while (!(await this.#isResolved(doubt)));
    } finally {
      limit.cancel()
      this.#doubt = null
    }
    if (doubt.batch.length > 0)
      this.#deps.onEvent({ kind: 'in-doubt', resolution: doubt.isCommitted === true ? 'committed' : 'not-committed' })
  }

  /** Rejects the calls of a batch that stays in doubt. */
  #giveUp(doubt: Doubt): void {
    const error = new OutcomeUnknown('the database ended the session before it answered a commit: the change may have been made')
    answer(doubt.batch, () => ({ ok: false, error }))
    doubt.batch = []
    this.#deps.onEvent({ kind: 'in-doubt', resolution: 'unknown' })
  }

  /** One try to resolve a batch. */
  async #isResolved(doubt: Doubt): Promise<boolean> {
    if (!(await this.#reconnected({ patient: true }))) {
      if (this.#failure === null) return false
      // The commit may have preceded the takeover, so that a refusal would be wrong.
      if (doubt.batch.length > 0) this.#giveUp(doubt)
      return true
    }
    try {
      await this.#session.limited(() => this.#look(doubt))
      return true
    } catch (error) {
      if (failureKind(error) === 'call') throw error
      this.#session.connection.destroy()
      return false
    }
  }

  async #look(doubt: Doubt): Promise<void> {
    const { node, leases } = this.#deps
    const calls = doubt.batch.map(({ call }) => call)
    if (doubt.isCommitted === null) {
      doubt.isCommitted = await wasCommitted(this.#session.connection, { node, leases, number: doubt.number }, calls)
      // The leases of calls that were rejected meanwhile are not known, and so are given back.
      if (doubt.isCommitted && doubt.batch.length > 0) this.#deps.wake(doubt.tx.committed())
    }
    const found = doubt.isCommitted
      ? await answersAfterCommit(this.#session.connection, node, calls, doubt.answers)
      : new Map<number, unknown>()
    await this.#giveBackUnknown()
    const { batch } = doubt
    this.#waiting.unshift(...batch.filter((_, n) => !found.has(n)))
    for (const [n, value] of found) {
      const one = batch[n]
      if (one === undefined) continue
      this.#deps.recent.committed(one.call, value)
      one.settle({ ok: true, value })
    }
  }

  /** Gives back what a claim has leased whose answer was lost. */
  async #giveBackUnknown(): Promise<void> {
    const { node, leases } = this.#deps
    await this.#session.connection.command('begin')
    await this.#session.connection.query(fence, [node, this.#session.number])
    await this.#session.connection.query(sql.giveBackUnknown, [node, int8s(leases.all)])
    await this.#session.connection.command('commit')
  }

  /** Reads the leases anew that a settlement was wrong about. */
  async #readLeases(batch: readonly PendingWrite[]): Promise<void> {
    const { node, leases } = this.#deps
    for (const { call } of batch) {
      if (call.method !== 'settle') continue
      const ids = call.args[0].recipients.map(({ recipient }) => recipient)
      const found = await this.#session.connection.query<OwnLease>(sql.ownLeasesAmong, [node, int8s(ids)]).catch(() => [])
      leases.end(ids)
      leases.add(found)
    }
  }

  /**
   * Opens the next session. Returns false when the node is fenced. Calls that wait are rejected after AWAY_AFTER, except those of
   * which one is in doubt.
   */
  async #reconnected({ patient = false } = {}): Promise<boolean> {
    if (!this.#session.connection.isLost) return true
    const timer = this.#deps.clock.after(AWAY_AFTER, () => this.#away())
    let pause = FIRST_PAUSE
    try {
      for (;;) {
        const opened = this.abandoned.aborted ? 'failed' : await this.#session.renew()
        if (opened === 'fenced') this.#fenced([])
        if (opened !== 'failed') return opened === 'open'
        if (this.#isClosed) this.#fail(new StoreUnavailable('the store is closed'))
        if (this.#failure !== null || (!patient && this.#waiting.length === 0 && !this.#isAway)) return false
        await sleep(this.#deps.clock, pause)
        pause = Math.min(2 * pause, LONGEST_PAUSE)
      }
    } finally {
      timer.cancel()
      this.#isAway = false
    }
  }

  /** Rejects the calls that wait, none of which was sent. */
  #away(): void {
    this.#isAway = true
    this.#reject(this.#waiting.splice(0), new DatabaseAway('the database of the queue cannot be reached'))
  }

  #reject(calls: readonly PendingWrite[], error: Error): void {
    for (const one of calls) one.settle({ ok: false, error })
  }

  #fenced(batch: readonly PendingWrite[]): void {
    const isFirst = this.#failure === null
    const failure = new Fenced(`node ${this.#deps.node} was taken over by another node`)
    this.#fail(failure)
    answer(batch, () => ({ ok: false, error: failure }))
    if (isFirst) this.#deps.onFenced()
  }

  #fail(failure: StoreUnavailable): void {
    this.#failure ??= failure
    this.#reject(this.#waiting.splice(0), failure)
  }
}

const untilAborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => (signal.aborted ? resolve() : signal.addEventListener('abort', () => resolve(), { once: true })))

function answer(
  batch: readonly PendingWrite[],
  outcomeOf: (position: number) => { readonly ok: boolean; readonly value?: unknown; readonly error?: Error },
): void {
  batch.forEach((one, n) => one.settle(outcomeOf(n) as Outcome))
}

function rejectionOf({ kind, error }: Extract<Tried, { outcome: 'failed' }>): Error {
  if (isRepetition(error)) return new RequestRepeated('a request with the same key was carried out before', { cause: error })
  return kind === 'call' ? rejected(error) : databaseAway(error)
}
