/** The recorded calls of a process on the files of a queue folder (record.c; Linux, needs a C compiler). */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { daemonEnvironment } from '../../../src/system/node-version.js'

/** File in the queue folder with the states of the queue, one a line: `written NUMBER STATE`, and `durable NUMBER` later. */
export const MARKS = 'acknowledged'

/** One call. Files are known by their number; names belong to the folder. */
export type DiskCall =
  | { readonly kind: 'create'; readonly file: number; readonly name: string }
  | { readonly kind: 'unlink'; readonly name: string }
  | { readonly kind: 'rename'; readonly name: string; readonly to: string }
  | { readonly kind: 'write'; readonly file: number; readonly at: number; readonly bytes: Buffer }
  | { readonly kind: 'truncate'; readonly file: number; readonly size: number }
  /** A sync of a file, by the thread that makes it. It makes durable what was written when it began. */
  | { readonly kind: 'begin' | 'sync'; readonly file: number; readonly thread: number }
  | { readonly kind: 'sync folder' }
  /** The queue has a state. */
  | { readonly kind: 'written'; readonly state: string }
  /** The first states were acknowledged; `state` is the number of the last one, from 0. */
  | { readonly kind: 'durable'; readonly state: number }

/** Runs writer.ts in an empty folder and returns its calls. `fault`: a pragma for its connections, or `written` for answers before their sync. */
export function recordWriter(seed: number, fault = ''): readonly DiskCall[] {
  const folder = mkdtempSync(join(tmpdir(), 'deferd-record-'))
  try {
    const library = join(folder, 'record.so')
    const compiled = spawnSync(
      'cc',
      ['-shared', '-fPIC', '-O1', '-o', library, join(import.meta.dirname, 'record.c'), '-ldl', '-lpthread'],
      {
        encoding: 'utf8',
      },
    )
    if (compiled.status !== 0) throw new Error(`record.c does not compile: ${compiled.stderr}`)
    const queue = mkdtempSync(join(folder, 'queue-'))
    const file = join(folder, 'calls')
    const env = { ...process.env, ...daemonEnvironment, LD_PRELOAD: library, IO_RECORD_FOLDER: queue, IO_RECORD_FILE: file }
    const { status, stderr } = spawnSync(process.execPath, [join(import.meta.dirname, 'writer.ts'), queue, String(seed), fault], {
      env,
      encoding: 'utf8',
    })
    if (status !== 0) throw new Error(`writer.ts failed: ${stderr}`)
    return parse(readFileSync(file))
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function parse(bytes: Buffer): readonly DiskCall[] {
  const calls: DiskCall[] = []
  const files = new Map<string, number>()
  for (let at = 0; at < bytes.length;) {
    const end = bytes.indexOf('\n', at)
    const [kind = '', inode = '', offset = '', length = '', name = ''] = bytes.toString('latin1', at, end).split(' ')
    const data = bytes.subarray(end + 1, end + 1 + Number(length))
    at = end + 1 + Number(length)
    // A file system reuses the inodes of removed files.
    if (kind === 'create' || !files.has(inode)) files.set(inode, files.size === 0 ? 1 : Math.max(...files.values()) + 1)
    const call = callOf({ kind, file: files.get(inode) ?? 0, offset: Number(offset), data, name })
    if (call !== null) calls.push(call)
  }
  return calls
}

interface Parsed {
  readonly kind: string
  readonly file: number
  readonly offset: number
  readonly data: Buffer
  readonly name: string
}

function callOf({ kind, file, offset, data, name }: Parsed): DiskCall | null {
  if (kind === 'syncdir') return { kind: 'sync folder' }
  if (name === MARKS) return kind === 'write' ? markOf(data.toString().trim()) : null
  if (!/^(queue\.db|generation)/.test(name) || name.endsWith('-shm')) return null
  switch (kind) {
    case 'create':
      return { kind, file, name }
    case 'unlink':
      return { kind, name }
    case 'rename':
      return { kind, name, to: data.toString() }
    case 'write':
      return { kind, file, at: offset, bytes: data }
    case 'truncate':
      return { kind, file, size: offset }
    case 'begin':
    case 'sync':
      return { kind, file, thread: offset }
    default:
      throw new Error(`unknown call ${kind}`)
  }
}

function markOf(line: string): DiskCall {
  const [kind = '', number = '', state = ''] = line.split(' ')
  return kind === 'written' ? { kind, state } : { kind: 'durable', state: Number(number) }
}
