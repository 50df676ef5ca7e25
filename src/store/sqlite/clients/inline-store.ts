/**
 * The store in the thread of its caller, for commands and for tests under virtual time. Calls made in one turn of the event loop
 * are committed together.
 */
import type { Quarantined } from '../writing/quarantine.ts'
import type { QueueReader } from '../../queue-reader.ts'
import { IdBuffer } from '../../id-buffer.ts'
import { directReader } from '../../reader-methods.ts'
import { pending, type Call, type Outcome, type PendingCall } from '../../methods.ts'
import type { MovableStore } from '../../move-store.ts'
import { StoreUnavailable, type StoreFailed } from '../../queue-store.ts'
import { ShareFeed } from '../../share-counts.ts'
import type { Repair } from '../../repair-report.ts'
import { openCore, runSynced } from '../core/open-core.ts'
import { createStoreClient, type CallTransport } from './store-client.ts'
import type { RecoveryReport } from '../core/recovery.ts'
import { createSqliteReader } from '../reading/sqlite-reader.ts'

export type Place = { readonly directory: string } | { readonly memory: true }

export interface StoreOptions {
  /** Called for each message that is quarantined while the store is open. */
  readonly onQuarantined?: ((message: Quarantined) => void) | undefined
  /** Called when the file was found damaged in operation and was rebuilt. */
  readonly onRepaired?: ((repair: Repair) => void) | undefined
  /** Called once, when the store has failed. Only a new process may open the queue again. */
  readonly onFailed?: ((failure: StoreFailed) => void) | undefined
}

export interface OpenedStore {
  readonly store: MovableStore
  readonly recovery: RecoveryReport
}

/** Opens the store and a reader over the same connection. A queue in memory can only be read through this connection. */
export async function openInlineStore(place: Place, options: StoreOptions = {}): Promise<OpenedStore & { readonly reader: QueueReader }> {
  const directory = 'directory' in place ? place.directory : null
  const opened = openCore(directory, { inThread: false })
  const { db, core, batches, terms, recovery } = opened
  const shares = new ShareFeed()
  const run = (calls: readonly Call[]): Outcome[] => {
    const outcomes = runSynced(opened, calls)
    const changes = core.usage.takeChanges()
    if (changes !== null) shares.changed(changes)
    for (const message of core.corrupt.takeQuarantined()) options.onQuarantined?.(message)
    return outcomes
  }
  const afterAnswers = (): void => {
    const failure = batches.checkpoint()
    if (failure !== null) options.onFailed?.(failure)
  }
  const reserve = db.transaction((count: number) => core.run<'nextIds'>({ method: 'nextIds', args: [count] }))
  const ids = new IdBuffer((count) => reserve.immediate(count))
  const close = (): void => {
    opened.log?.close()
    db.close()
  }
  const transport = gathering({ isOpen: () => db.open, run, afterAnswers, close })
  const store = createStoreClient({ ...transport, onShares: (listener) => shares.listen(listener), ids, terms })
  // The reader's connection is closed with the store.
  const reader = { ...directReader(createSqliteReader(db)), close: async () => undefined }
  return { store, recovery, reader }
}

interface Runner {
  readonly isOpen: () => boolean
  readonly run: (calls: readonly Call[]) => Outcome[]
  readonly afterAnswers: () => void
  readonly close: () => void
}

/** Collects the calls of one turn of the event loop and runs them together; `afterAnswers` follows their answers. */
function gathering({ isOpen, run, afterAnswers, close }: Runner): Pick<CallTransport, 'submit' | 'close'> {
  let waiting: PendingCall[] = []
  const flush = (): void => {
    const batch = waiting
    waiting = []
    if (batch.length === 0) return
    const outcomes = run(batch.map(({ call }) => call))
    batch.forEach((one, n) =>
      one.settle(outcomes[n] ?? { ok: false, error: new Error('the store returned no outcome for a call; this is a bug') }),
    )
    afterAnswers()
  }
  return {
    submit: (call) => {
      if (!isOpen()) return Promise.reject(new StoreUnavailable('the store is closed'))
      return pending(call, (one) => {
        if (waiting.push(one) === 1) queueMicrotask(flush)
      })
    },
    close: async () => {
      flush()
      close()
    },
  }
}
