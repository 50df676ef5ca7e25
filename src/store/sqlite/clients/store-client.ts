/** Implements the QueueStore port over a transport of calls, which leads to a core in the same thread or in a worker thread. */
import type { LeaseTerms } from '../../../mail/message.ts'
import type { IdBuffer } from '../../id-buffer.ts'
import { remoteMethods, type Answers, type Call, type Method } from '../../methods.ts'
import type { MovableStore } from '../../move-store.ts'
import type { ShareCounting } from '../../share-counts.ts'

/** Carries calls to the store's core. */
export interface CallTransport {
  /**
   * Submits a call. Calls are answered in order, each when the change of its transaction is durable. `written` is called before that, unless
   * both are at once.
   */
  submit<M extends Method>(call: Call<M>, written?: () => void): Promise<Answers[M]>
  readonly onShares: ShareCounting['onShares']
  close(): Promise<void>
  readonly ids: IdBuffer
  readonly terms: LeaseTerms
}

export function createStoreClient(transport: CallTransport): MovableStore {
  const { ids, terms } = transport
  const methods = remoteMethods((call, written) => transport.submit(call, written))
  return {
    ...methods,
    nextId: () => ids.next(),
    leaseTerms: () => terms,
    shares: { ...methods.shares, onShares: (listener) => transport.onShares(listener) },
    close: () => transport.close(),
  }
}
