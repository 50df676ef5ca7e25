/** Options of a world, and the opening of its queue. */
import { copyFileSync, existsSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { DeliveryAgent } from '../../delivery/delivery-agent.ts'
import type { RelayConfig } from '../../config/relay-config.ts'
import type { Clock, WallTime } from '../../system/clock.ts'
import { emptyQueue, type MemoryQueue } from '../../store/memory/queue-state.ts'
import { openMemoryStore } from '../../store/memory/memory-store.ts'
import type { QueueReader } from '../../store/queue-reader.ts'
import { openInlineStore } from '../../store/sqlite/open-store.ts'
import type { QueueStore } from '../../store/queue-store.ts'
import type { Incarnation } from '../virtual/incarnation.ts'

export type { RelayConfig as WorldConfig } from '../../config/relay-config.ts'

/** Options of `createWorld`; all are optional. */
export interface WorldOptions {
  /** Seed of all random numbers; default 1. */
  readonly seed?: number | undefined
  /** Configuration of the relay. */
  readonly config?: RelayConfig | undefined
  /** Script of the remote network, as TOML (docs/faults.md). */
  readonly script?: string | undefined
  /** Queue in plain memory (default), in an SQLite database in memory, or in SQLite in a folder. */
  readonly store?: 'memory' | 'sqlite' | { readonly directory: string } | undefined
  /** TLS at the port that `openPort` opens, with a certificate of WORLD_CA for localhost; none when absent. */
  readonly tls?: 'none' | 'starttls' | undefined
  /** Passwords of the users that may log in, by name; they need `tls`. */
  readonly users?: Readonly<Record<string, string>> | undefined
  /** Returns the offset in minutes and the name of the local zone at an instant (milliseconds since 1970); UTC when absent. */
  readonly zone?: ((at: WallTime) => ReturnType<Clock['zone']>) | undefined
}

export const WORLD_OPTIONS = [
  'seed',
  'config',
  'script',
  'store',
  'zone',
  'tls',
  'users',
] as const satisfies readonly (keyof WorldOptions)[]

/** Wrappers around the ports of the relay, for simulations of the relay itself. */
export interface Interceptors {
  readonly store?: (store: QueueStore, life: Incarnation) => QueueStore
  readonly agent?: (agent: DeliveryAgent, life: Incarnation) => DeliveryAgent
  /** An open queue to use in place of `WorldOptions.store`. */
  readonly queue?: OpenedQueue
}

/** An open queue of a world. */
export interface OpenedQueue {
  readonly store: QueueStore
  readonly reader: QueueReader
  /** True if the queue is kept after its owner has ended. */
  readonly survives: boolean
  /**
   * Copies the state that a killed owner would leave at this moment, and resolves with the queue opened again. Throws if that
   * state is lost with the owner.
   */
  reopen(): Promise<OpenedQueue>
}

export async function openQueue(place: NonNullable<WorldOptions['store']>): Promise<OpenedQueue> {
  return typeof place === 'string' ? NAMED[place]() : inFolder(place.directory)
}

/** An engine of a queue without a folder. */
export type NamedStore = Extract<WorldOptions['store'], string>

const NAMED: Readonly<Record<NamedStore, () => OpenedQueue | Promise<OpenedQueue>>> = {
  memory: () => inMaps(emptyQueue()),
  sqlite: () => withoutFile(),
}

function inMaps(queue: MemoryQueue): OpenedQueue {
  const { store, reader } = openMemoryStore(queue)
  return { store, reader, survives: true, reopen: async () => inMaps(queue) }
}

async function withoutFile(): Promise<OpenedQueue> {
  const { store, reader } = await openInlineStore({ memory: true })
  const reopen = () => {
    throw new Error("a queue in SQLite without a file ends with its relay: create the world with store 'memory' or { directory }")
  }
  return { store, reader, survives: false, reopen }
}

/** Files that remain after a kill: the database and its write-ahead log. */
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
      // Closing checkpoints the log, which a killed process does not do. So the copies then replace the closed files.
      await store.close()
      for (const name of [...OUTLIVES, 'queue.db-shm']) rmSync(join(directory, name), { force: true })
      for (const file of files) renameSync(`${file}.left`, file)
      return inFolder(directory)
    },
  }
}
