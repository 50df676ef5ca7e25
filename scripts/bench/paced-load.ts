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
  /** Number of destinations; sink.test alone when absent. */
  readonly destinations?: number
}

/** Starts the load. Its output goes to the file `log`. */
export function startPacedLoad({ port, rate, seconds, destinations = 0 }: PacedLoad, log: string): Promise<Child> {
  const script = join(import.meta.dirname, 'paced-source.ts')
  const args = [script, ...[port, rate, seconds, destinations].map(String)]
  return startChild('the source', { program: process.execPath, args, cwd: '/' }, log)
}

/** Waits for the end of the load. Throws when it failed. */
export const resultOfLoad = (load: Child): Promise<Paced> => resultOf<Paced>(load)
