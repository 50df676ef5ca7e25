/** Connects the API to the open queue. Its routes outlast an opening of the queue; while none is open, they answer 503. */
import { Api } from '../api/api.ts'
import type { QueueView } from '../api/queries/queue-view.ts'
import type { LoadedConfig } from '../config/load.ts'
import { StoreUnavailable } from '../store/queue-store.ts'
import { completeTally } from '../store/queue-tally.ts'
import { onOffset } from '../store/wall-reader.ts'
import type { Clock } from '../system/clock.ts'
import { systemRandom } from '../system/system-random.ts'
import { ownQueue, sharedQueue } from './live-queue.ts'
import type { OpenParts } from './opening.ts'

export interface QueueApiDeps {
  readonly clock: Clock
  readonly loaded: () => LoadedConfig
  /** The open queue; null while there is none. */
  readonly parts: () => ApiParts | null
}

/** Parts of an open queue that the API uses. */
export type ApiParts = Pick<OpenParts, 'relay' | 'store' | 'reader' | 'node' | 'operations'>

const NOT_OPEN = 'the queue is not open: the daemon starts, or this node joins it'

const viewOf = (parts: ApiParts, { clock, loaded }: QueueApiDeps): QueueView => {
  const { relay, store, reader, node } = parts
  return {
    clock,
    loaded,
    reader: onOffset(reader, () => clock.wallOffset()),
    live: node === null ? ownQueue(relay, clock) : sharedQueue(relay, clock, node.peers),
    operations: () => {
      if (parts.operations === null) throw new StoreUnavailable(NOT_OPEN)
      return parts.operations
    },
    policies: () => relay.policies,
    tally: (largest) => completeTally(() => store.tally(largest)),
    end: () => store.nextId(),
  }
}

/** The API of the queue. */
export function queueApi(deps: QueueApiDeps): Api {
  let last: { readonly parts: ApiParts; readonly view: QueueView } | null = null
  const parts = (): ApiParts => {
    const opened = deps.parts()
    if (opened === null) throw new StoreUnavailable(NOT_OPEN)
    return opened
  }
  const open = (): QueueView => {
    const opened = parts()
    if (last?.parts !== opened) last = { parts: opened, view: viewOf(opened, deps) }
    return last.view
  }
  const view: QueueView = {
    clock: deps.clock,
    loaded: deps.loaded,
    get reader() {
      return open().reader
    },
    get live() {
      return open().live
    },
    operations: () => open().operations(),
    policies: () => open().policies(),
    tally: (largest) => open().tally(largest),
    end: () => open().end(),
  }
  const tokens = () => ({ reader: open().reader, store: parts().store, clock: deps.clock })
  return new Api(view, { tokens, random: systemRandom })
}
