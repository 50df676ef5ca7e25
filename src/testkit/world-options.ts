/** How a world is made, and the queue it keeps its mail in. */
import type { OptionName } from '../config/options.ts'
import type { Clock, Instant } from '../mail/clock.ts'
import { openMemoryStore } from '../queue/memory-store.ts'
import type { QueueReader } from '../queue/reader.ts'
import { openInlineStore } from '../queue/sqlite/inline-store.ts'
import type { QueueStore } from '../queue/store.ts'

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

export interface OpenedQueue {
  readonly store: QueueStore
  readonly reader: QueueReader
}

export async function openQueue(place: NonNullable<WorldOptions['store']>): Promise<OpenedQueue> {
  if (place === 'memory') return openMemoryStore()
  return openInlineStore(place === 'sqlite' ? { memory: true } : place)
}
