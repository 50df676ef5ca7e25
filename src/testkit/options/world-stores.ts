/** Engines of the queues of worlds that have no folder, by name. */
import type { NamedStore } from './world-options.ts'

const NAMED: Readonly<Record<NamedStore, true>> = { memory: true, sqlite: true }

export const WORLD_STORES = Object.keys(NAMED) as readonly NamedStore[]
export const DEFAULT_STORE: NamedStore = 'memory'
