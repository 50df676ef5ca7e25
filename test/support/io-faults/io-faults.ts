/**
 * Fails system calls of a daemon on purpose, with a small library that is compiled on this machine and interposed by
 * LD_PRELOAD (Linux; needs a C compiler).
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync } from 'node:fs'
import { constants, tmpdir } from 'node:os'
import { join } from 'node:path'

export interface IoFault {
  readonly call: 'sync' | 'write' | 'truncate' | 'open' | 'unlink'
  /** Number of the first call that fails, from 1. */
  readonly from: number
  /** Number of calls that fail from there on; all when absent. */
  readonly count?: number
  /** Error of the call; SIGKILL ends the process before the call is made. */
  readonly error: 'EIO' | 'ENOSPC' | 'SIGKILL'
  /** Only files whose path contains this text, or ends with the text after a leading `*`. */
  readonly path?: string
}

/** Why faults cannot be injected on this machine; null when they can. */
export function noFaultsBecause(): string | null {
  if (process.platform !== 'linux') return 'system calls are interposed on Linux only'
  return spawnSync('cc', ['--version']).status === 0 ? null : 'there is no C compiler (cc)'
}

let library: string | undefined

function interposed(): string {
  if (library !== undefined) return library
  const path = join(mkdtempSync(join(tmpdir(), 'deferd-faults-')), 'interpose.so')
  const { status, stderr } = spawnSync('cc', ['-shared', '-fPIC', '-O1', '-o', path, join(import.meta.dirname, 'interpose.c'), '-ldl'], {
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(`interpose.c does not compile: ${stderr}`)
  return (library = path)
}

/** The environment that makes a process meet the fault. `log` gets a line per failed call. */
export const faultyEnvironment = ({ call, from, count = 0, error, path = 'queue.db' }: IoFault, log: string): Record<string, string> => ({
  LD_PRELOAD: interposed(),
  IO_FAULT_CALL: call,
  IO_FAULT_FROM: String(from),
  IO_FAULT_COUNT: String(count),
  IO_FAULT_ERRNO: String(error === 'SIGKILL' ? 0 : constants.errno[error]),
  IO_FAULT_PATH: path,
  IO_FAULT_LOG: log,
})

/** When syncs take longer. */
interface Slowness {
  /** File without which none takes longer. */
  readonly during?: string
  /** File by which the syncs of all processes run one after the other. */
  readonly lock?: string | undefined
}

/** The environment that makes each sync of a process take so many ms longer. */
export const delayedSyncs = (ms: number, { during, lock }: Slowness = {}): Record<string, string> => ({
  LD_PRELOAD: interposed(),
  IO_FAULT_DELAY: String(ms),
  ...(during === undefined ? {} : { IO_FAULT_WHILE: during }),
  ...(lock === undefined ? {} : { IO_FAULT_LOCK: lock }),
})

/** The first failed call: its time in ms since the epoch, and its path; null when none has failed, or while its line is being written. */
export function firstFault(log: string): { readonly at: number; readonly path: string } | null {
  const [line, ...rest] = existsSync(log) ? readFileSync(log, 'utf8').split('\n') : []
  if (line === undefined || rest.length === 0) return null
  const [at, ...path] = line.split(' ')
  return { at: Number(at), path: path.join(' ') }
}
