/**
 * The store in the thread of its caller: for worlds under virtual time and for commands. What is asked in one turn is
 * committed together.
 */
import type { QueueReader } from '../reader.ts'
import { StoreUnavailable, type QueueStore } from '../store.ts'
import { Batches } from './batches.ts'
import { coreOver, type Call, type Outcome } from './calls.ts'
import type { Quarantined } from './corrupt.ts'
import { openForWriting, openInMemory, type Database } from './database.ts'
import { storeOver } from './queued-store.ts'
import { takeUp } from './recovery.ts'
import { BallastFile, noReserve } from './reserve.ts'
import { SqliteReader } from './sqlite-reader.ts'

export type Place = { readonly directory: string } | { readonly memory: true }

export interface StoreOptions {
  /** Told of each message that turns out to be unreadable while the store is open. */
  readonly onQuarantined?: ((message: Quarantined) => void) | undefined
}

export interface OpenedStore {
  readonly store: QueueStore
  readonly opened: {
    /** Mail that was set aside because the daemon died in its delivery three times. */
    readonly quarantined: readonly Quarantined[]
    /** Contents that never became mail and were swept. */
    readonly swept: number
  }
}

/** The reader sees what the store has committed; in memory there is no other way to look. */
export async function openInlineStore(place: Place, options: StoreOptions = {}): Promise<OpenedStore & { readonly reader: QueueReader }> {
  const directory = 'directory' in place ? place.directory : null
  const db = directory === null ? openInMemory() : openForWriting(directory)
  const core = coreOver(db)
  const { quarantined, swept, lastId } = takeUp(db, core.corrupt)
  const batches = new Batches(db, core, directory === null ? noReserve : new BallastFile(directory))
  const run = (calls: readonly Call[]): Outcome[] => {
    const outcomes = batches.run(calls)
    for (const message of core.corrupt.takeNews()) options.onQuarantined?.(message)
    return outcomes
  }
  const store = storeOver({ ...gathering(db, run), lastId, directory })
  return { store, opened: { quarantined, swept }, reader: new SqliteReader(db) }
}

interface Waiting {
  readonly call: Call
  readonly resolve: (value: unknown) => void
  readonly reject: (error: Error) => void
}

/** Gathers the calls of one turn into one run. */
function gathering(db: Database, run: (calls: readonly Call[]) => Outcome[]) {
  let waiting: Waiting[] = []
  const flush = (): void => {
    const batch = waiting
    waiting = []
    if (batch.length === 0) return
    const outcomes = run(batch.map(({ call }) => call))
    batch.forEach(({ resolve, reject }, n) => {
      const outcome = outcomes[n]
      if (outcome?.ok === true) resolve(outcome.value)
      else reject(outcome?.error ?? new Error('a call was not answered'))
    })
  }
  return {
    submit: (call: Call): Promise<unknown> => {
      if (!db.open) return Promise.reject(new StoreUnavailable('the store is closed'))
      return new Promise((resolve, reject) => {
        if (waiting.push({ call, resolve, reject }) === 1) queueMicrotask(flush)
      })
    },
    close: async (): Promise<void> => {
      flush()
      db.close()
    },
  }
}
