/**
 * The store's methods as data: what is called with what, and how it went. So calls can be gathered into one
 * transaction and sent to another thread, whatever shell the store core wears.
 */
import type { Database } from 'better-sqlite3'
import { StoreUnavailable, type QueueStore } from '../store.ts'
import { Corrupt } from './corrupt.ts'
import { Debts } from './debts.ts'
import { Departures } from './departed.ts'
import { Housekeeping } from './housekeeping.ts'
import { Contents, Intake } from './intake.ts'
import { Leases } from './leases.ts'
import { Operating } from './operating.ts'
import { Outcomes } from './outcomes.ts'
import { Requeueing } from './requeueing.ts'

/** What goes to the database; the rest is answered beside it. */
export type Method = Exclude<keyof QueueStore, 'nextId' | 'freeSpace' | 'close'>

export type Call = { [M in Method]: { readonly method: M; readonly args: Parameters<QueueStore[M]> } }[Method]
export type Answer<M extends Method> = Awaited<ReturnType<QueueStore[M]>>

/** How a call went. */
export type Outcome = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly error: Error }

type Operations = { readonly [M in Method]: (...args: Parameters<QueueStore[M]>) => Answer<M> }

export interface Core {
  run(call: Call): unknown
  readonly corrupt: Corrupt
  readonly housekeeping: Housekeeping
}

/** Everything the store does, over one connection. All statements are prepared here, once. */
export function coreOver(db: Database): Core {
  const corrupt = new Corrupt(db)
  const departures = new Departures(db)
  const intake = new Intake(db)
  const operating = new Operating(db, departures, new Requeueing(db, departures))
  const housekeeping = new Housekeeping(db, operating)
  const parts = { corrupt, departures, intake, operating, housekeeping }
  const operations = operationsOf({
    ...parts,
    contents: new Contents(db),
    leases: new Leases(db, corrupt),
    outcomes: new Outcomes(db, departures),
    debts: new Debts(db, parts),
  })
  // The union of calls and the table of methods belong together by construction; TypeScript cannot follow that.
  const run = ({ method, args }: Call): unknown => (operations[method] as (...args: unknown[]) => unknown)(...args)
  return { run, corrupt, housekeeping }
}

interface Parts {
  readonly corrupt: Corrupt
  readonly intake: Intake
  readonly contents: Contents
  readonly leases: Leases
  readonly outcomes: Outcomes
  readonly debts: Debts
  readonly operating: Operating
  readonly housekeeping: Housekeeping
}

const operationsOf = ({ corrupt, intake, contents, leases, outcomes, debts, operating, housekeeping }: Parts): Operations => ({
  stage: (body, from, chunks) => intake.stage(body, from, chunks),
  unstage: (body) => intake.unstage(body),
  enqueue: (entry) => intake.enqueue(entry),
  readBody: (body, index) => contents.read(body, index),
  claimDue: (claim) => leases.claimDue(claim),
  claimSuspect: (now) => leases.claimSuspect(now),
  claimExpired: (now, limit, except) => leases.claimExpired(now, limit, except),
  giveBack: (recipients) => leases.giveBack(recipients),
  settle: (settlement) => outcomes.settle(settlement),
  quarantine: (message, why) => corrupt.quarantine(message, why),
  indebted: (after, limit) => debts.indebted(after, limit),
  debtsOf: (message) => debts.debtsOf(message),
  claimWarnings: (now, limit) => debts.claimWarnings(now, limit),
  postponeWarning: (message, warnAt) => debts.postponeWarning(message, warnAt),
  oweDelay: (message, recipients) => debts.oweDelay(message, recipients),
  report: (report) => debts.report(report),
  destinationsDue: () => housekeeping.destinationsDue(),
  nextDeadlines: () => housekeeping.nextDeadlines(),
  destinations: () => housekeeping.destinations(),
  saveDestination: (record) => housekeeping.saveDestination(record),
  operate: (operations, auditedAs) => operating.operate(operations, auditedAs),
  move: (moves) => operating.move(moves),
  audit: (record) => operating.audit(record),
  prune: (limits) => housekeeping.prune(limits),
  ping: () => housekeeping.ping(),
})

/** Outcomes and what else must get through when the disk is full. */
export const MAY_USE_RESERVE: ReadonlySet<Method> = new Set<Method>(['settle', 'report', 'giveBack', 'quarantine', 'postponeWarning'])

/** What makes new work or takes new room: refused until the reserve is back. `ping` tells that it is not. */
export const NEEDS_ROOM: ReadonlySet<Method> = new Set<Method>(['stage', 'enqueue', 'claimDue', 'claimSuspect', 'claimExpired', 'ping'])

export const unavailable = (error: Error & { readonly code?: unknown }): StoreUnavailable =>
  new StoreUnavailable(`the queue cannot be written: ${error.message}${typeof error.code === 'string' ? ` (${error.code})` : ''}`, {
    cause: error,
  })
