/** The contract of the store over PostgreSQL. */
import { describe } from 'vitest'
import type { DatabaseUrl } from '../../src/config/values/database-url.ts'
import type { OwnerId } from '../../src/mail/message.ts'
import { SHARDS } from '../../src/store/membership/shards.ts'
import { takeOverNode } from '../../src/store/postgres/node.ts'
import { openPostgresStore } from '../../src/store/postgres/open-store.ts'
import { PostgresNodeTable } from '../../src/store/postgres/postgres-node-table.ts'
import type { MovableStore } from '../../src/store/move-store.ts'
import { realClock } from '../support/real-clock.ts'
import { connectTo, usePostgres, WITHOUT_POSTGRES } from '../support/postgres-queue.ts'
import type { SharedNode, Subject } from './mail.ts'
import { describeQueueStore } from './queue-store.ts'

const LABELS = { program: '1.0.0', settings: '', hostname: '', draining: false }

describe.skipIf(WITHOUT_POSTGRES.skip)(`PostgreSQL${WITHOUT_POSTGRES.why}`, () => {
  const { emptyQueue } = usePostgres()
  describeQueueStore('the store in PostgreSQL', async () => opened(await emptyQueue()), {
    survivesCrashes: true,
    shared: true,
    moves: true,
  })
})

/** A node that owns all shards. */
async function opened(url: DatabaseUrl, before?: OwnerId): Promise<Subject> {
  const node = await join(url, 'test')
  const takeover = before === undefined ? null : await takenOver(url, before)
  await node.nodes.takeShards(SHARDS)
  const { store, reader, nodes, done } = node
  return {
    store,
    moves: store,
    reader,
    done,
    quarantined: (takeover?.corrupt ?? []).map((queueId) => ({ queueId, why: '' })),
    swept: takeover?.swept ?? 0,
    crash: async () => {
      await node.destroy()
      return opened(url, nodes.me)
    },
    shared: { nodes, join: () => join(url, 'other') },
  }
}

async function join(url: DatabaseUrl, name: string): Promise<SharedNode & { readonly store: MovableStore; destroy(): Promise<void> }> {
  const { node, store, reader, keys, close, destroy } = await openPostgresStore({
    url,
    durability: 'primary',
    labels: { ...LABELS, name },
    clock: realClock,
    tallyKeptFor: 0,
  })
  const nodes = new PostgresNodeTable({ me: node, terms: { url, durability: 'primary' }, clock: realClock, keys })
  return {
    store,
    reader,
    nodes,
    done: async () => {
      await close()
      await nodes.close()
    },
    destroy: async () => {
      await destroy()
      await nodes.close()
    },
  }
}

async function takenOver(url: DatabaseUrl, node: OwnerId) {
  const session = await connectTo(url)
  const [pulse] = await session.query<{ beat: number }>('select beat from pulse where node = $1', [node])
  const takeover = await takeOverNode(session, node, pulse?.beat ?? 0)
  await session.end()
  return takeover
}
