/** A daemon that reports its memory in use on request. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { startDaemon, type BenchDaemon, type Settings } from '../figures/bench-daemon.ts'
import type { Setting } from '../figures/subject.ts'
import { HEAP_FILE, type HeapUse } from './heap-probe.ts'

export interface ProbedDaemon {
  readonly daemon: BenchDaemon
  /** Memory in use now. */
  readonly look: () => Promise<HeapUse>
  /** Memory in use, once it changes no more. */
  readonly use: () => Promise<HeapUse>
}

const PROBE = pathToFileURL(join(import.meta.dirname, 'heap-probe.ts')).href
/** Time between two looks in ms, difference in bytes from which they differ, and the most looks. */
const BETWEEN = 500
const SAME = 100_000
const LOOKS = 40
const ANSWER_LIMIT = 10_000

export async function startProbedDaemon(
  setting: Pick<Setting, 'folder' | 'signal' | 'undo'>,
  name: string,
  settings: Settings,
): Promise<ProbedDaemon> {
  const own = join(setting.folder, name)
  mkdirSync(own, { recursive: true })
  const file = join(own, 'heap')
  writeFileSync(file, '')
  const daemon = await startDaemon(setting, name, settings, { env: { NODE_OPTIONS: `--import=${PROBE}`, [HEAP_FILE]: file } })
  const look = (): Promise<HeapUse> => ask(daemon, file)
  const use = async (): Promise<HeapUse> => {
    let last: HeapUse | null = null
    for (let n = 0; n < LOOKS; n++) {
      const now = await look()
      if (last !== null && Math.abs(now.heap - last.heap) < SAME) return now
      last = now
      await pause(BETWEEN, undefined, { signal: setting.signal })
    }
    throw new Error(`the heap of ${name} still changes after ${(LOOKS * BETWEEN) / 1_000} s`)
  }
  return { daemon, look, use }
}

/** The next line of the probe. */
async function ask({ child }: BenchDaemon, file: string): Promise<HeapUse> {
  const before = linesOf(file).length
  process.kill(child.pid, 'SIGUSR2')
  for (const deadline = performance.now() + ANSWER_LIMIT; performance.now() < deadline; await pause(20)) {
    if (child.hasEnded()) throw new Error(`${child.name} ended (${await child.ended}): ${child.lastWords()}`)
    const line = linesOf(file)[before]
    if (line !== undefined) return JSON.parse(line) as HeapUse
  }
  throw new Error(`${child.name} did not tell its memory in ${ANSWER_LIMIT / 1_000} s`)
}

/** The complete lines of a file. */
const linesOf = (file: string): readonly string[] => (existsSync(file) ? readFileSync(file, 'utf8').split('\n').slice(0, -1) : [])
