/**
 * The machine and the folder of a measurement, kept with its result: numbers of two machines do not compare.
 */
import { statfsSync } from 'node:fs'
import { availableParallelism, cpus } from 'node:os'

/** File systems in memory, by their magic numbers (statfs(2)): a sync costs nothing there. */
const IN_MEMORY: ReadonlyMap<number, string> = new Map([
  [0x01021994, 'tmpfs'],
  [0x858458f6, 'ramfs'],
])

export interface Machine {
  readonly node: string
  readonly processor: string
  readonly cores: number
  /** The folder above all queues. */
  readonly folder: string
  /** The name of its file system when that is in memory. */
  readonly inMemory: string | null
}

export function describeMachine(folder: string): Machine {
  return {
    node: process.version,
    processor: cpus()[0]?.model ?? 'unknown',
    cores: availableParallelism(),
    folder,
    inMemory: IN_MEMORY.get(statfsSync(folder).type) ?? null,
  }
}
