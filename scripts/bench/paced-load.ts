/** Mail at a constant rate from a process of its own, with the times to greetings meanwhile (paced-source.ts). */
import { join } from 'node:path'
import { resultOf, startChild, type Child } from './child.ts'
import type { Paced } from './paced-source.ts'

export interface PacedLoad {
  /** Port of the relay on 127.0.0.1. */
  readonly port: number
  /** Messages per second. */
  readonly rate: number
  readonly seconds: number
}

/** Starts the load. Its output goes to the file `log`. */
export function startPacedLoad({ port, rate, seconds }: PacedLoad, log: string): Promise<Child> {
  const script = join(import.meta.dirname, 'paced-source.ts')
  return startChild('the source', { program: process.execPath, args: [script, ...[port, rate, seconds].map(String)], cwd: '/' }, log)
}

/** Waits for the end of the load. Throws when it failed. */
export const resultOfLoad = (load: Child): Promise<Paced> => resultOf<Paced>(load)
