/** The contract of the store, without disks; on-disk.test.ts and postgres.test.ts have the others. */
import type { OwnerId } from '../../src/mail/message.ts'
import { SHARDS } from '../../src/store/membership/shards.ts'
import { joinMemoryQueue } from '../support/memory-node-table.ts'
import { MemoryMoves } from '../support/memory-moves.ts'
import { emptyQueue, type MemoryQueue } from '../../src/store/memory/queue-state.ts'
import { openMemoryStore } from '../../src/store/memory/memory-store.ts'
import { openInlineStore } from '../../src/store/sqlite/clients/inline-store.ts'
import { T0, type Subject } from './mail.ts'
import { describeQueueStore } from './queue-store.ts'

describeQueueStore('the store in memory', async () => inMemory(), { survivesCrashes: true, moves: true })
describeQueueStore('the store in memory, shared by nodes', () => joined(emptyQueue()), { survivesCrashes: true, shared: true })

describeQueueStore(
  'the SQLite store, inline, in memory, with values copied as between threads',
  async () => {
    const { store, reader } = await openInlineStore({ memory: true })
    const copying = withCopiedValues(store)
    return { store: copying, moves: copying, reader, ...NOTHING_TO_CLOSE, done: () => store.close() }
  },
  { survivesCrashes: false, moves: true },
)

/** The same store, whose arguments and results are copies. A value that cannot go to another thread rejects. */
const withCopiedValues = <S extends object>(store: S): S =>
  new Proxy(store, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name)
      if (typeof member !== 'function') return member
      // A listener stays in its thread.
      if (name === 'onShares') return member.bind(target) as unknown
      return (...given: readonly unknown[]): unknown => {
        const result: unknown = member.apply(target, structuredClone(given))
        return result instanceof Promise ? result.then((value: unknown) => structuredClone(value)) : structuredClone(result)
      }
    },
  })

const NOTHING_TO_CLOSE = { quarantined: [], swept: 0, done: async () => undefined, crash: undefined }

/** The maps are what survives the owner. */
function inMemory(queue = emptyQueue()): Subject {
  const { store, reader, recovery } = openMemoryStore(queue)
  const moves = new MemoryMoves(queue)
  return { store, moves, reader, ...recovery, done: async () => undefined, crash: async () => inMemory(queue) }
}

/** A node that owns all shards. */
async function joined(queue: MemoryQueue, before?: OwnerId): Promise<Subject> {
  const another = () => ({ ...joinMemoryQueue(queue, { name: 'test', now: () => T0 }), done: async () => undefined })
  const { store, reader, nodes } = another()
  const staged = queue.staged.size
  const takeover = before === undefined ? null : await nodes.takeOver(before, queue.nodes.get(before)?.beat ?? 0)
  await nodes.takeShards(SHARDS)
  return {
    store,
    reader,
    done: async () => undefined,
    quarantined: (takeover?.corrupt ?? []).map((queueId) => ({ queueId, why: '' })),
    swept: staged - queue.staged.size,
    crash: () => joined(queue, nodes.me),
    shared: { nodes, join: async () => another() },
  }
}
