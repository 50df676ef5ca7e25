/** How a world is made, and the queue it keeps its mail in. */
import { copyFileSync, existsSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { DeliveryAgent } from '../delivery/delivery-agent.ts'
import type { OptionName } from '../config/options.ts'
import type { Clock, Instant } from '../mail/clock.ts'
import { emptyQueue, type MemoryQueue } from '../queue/memory/held.ts'
import { openMemoryStore } from '../queue/memory/memory-store.ts'
import type { QueueReader } from '../queue/reader.ts'
import { openInlineStore } from '../queue/sqlite/inline-store.ts'
import type { QueueStore } from '../queue/store.ts'
import type { Incarnation } from './incarnation.ts'

type Value = string | number | boolean | readonly string[]

/** Parameters and tables as in a configuration file. */
export type WorldConfig = { readonly [Name in OptionName]?: Value } & {
  readonly transport_maps?: Readonly<Record<string, string>>
  readonly destination?: Readonly<Record<string, Readonly<Record<string, Value>>>>
}

export interface WorldOptions {
  /** Decides everything that is left to chance; 1 when absent. */
  readonly seed?: number | undefined
  readonly config?: WorldConfig | undefined
  /** A script of the far side, as TOML; see docs/faults.md. */
  readonly script?: string | undefined
  /** Where the queue is kept: in memory (default), in SQLite without a file, or in a folder. */
  readonly store?: 'memory' | 'sqlite' | { readonly directory: string } | undefined
  /** The local zone by instant; UTC when absent. */
  readonly zone?: ((at: Instant) => ReturnType<Clock['zone']>) | undefined
}

/** Stands between the relay and its ports: for simulations of the relay itself, which look on and step in. */
export interface Between {
  readonly store?: (store: QueueStore, life: Incarnation) => QueueStore
  readonly agent?: (agent: DeliveryAgent, life: Incarnation) => DeliveryAgent
}

export interface OpenedQueue {
  readonly store: QueueStore
  readonly reader: QueueReader
  /** Does it outlive its owner? */
  readonly survives: boolean
  /** What a dead owner leaves behind is taken as it is now; the promise is of the queue opened again. Throws when nothing is left. */
  reopen(): Promise<OpenedQueue>
}

export async function openQueue(place: NonNullable<WorldOptions['store']>): Promise<OpenedQueue> {
  if (place === 'memory') return inMaps(emptyQueue())
  return place === 'sqlite' ? withoutFile() : inFolder(place.directory)
}

function inMaps(queue: MemoryQueue): OpenedQueue {
  const { store, reader } = openMemoryStore(queue)
  return { store, reader, survives: true, reopen: async () => inMaps(queue) }
}

async function withoutFile(): Promise<OpenedQueue> {
  const { store, reader } = await openInlineStore({ memory: true })
  const reopen = () => {
    throw new Error("a queue in SQLite without a file dies with its relay: give the world { directory }, or 'memory'")
  }
  return { store, reader, survives: false, reopen }
}

/** The queue and its write-ahead log are all that outlives a process; what lies beside them died with it. */
const OUTLIVES = ['queue.db', 'queue.db-wal']

async function inFolder(directory: string): Promise<OpenedQueue> {
  const { store, reader } = await openInlineStore({ directory })
  return {
    store,
    reader,
    survives: true,
    reopen: async () => {
      const files = OUTLIVES.map((name) => join(directory, name)).filter((file) => existsSync(file))
      for (const file of files) copyFileSync(file, `${file}.left`)
      // Closing would tidy up as no dead process does: what it leaves is replaced by what was there before.
      await store.close()
      for (const name of [...OUTLIVES, 'queue.db-shm']) rmSync(join(directory, name), { force: true })
      for (const file of files) renameSync(`${file}.left`, file)
      return inFolder(directory)
    },
  }
}
