/**
 * The lock of Postfix's master on its spool (master(8), pid/master.pid). While this program holds the lock, Postfix refuses to start
 * on the spool. flock(1) of util-linux takes it, since Node has no function for it.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { errorMessage } from '../../system/caught-error.ts'
import { SpoolUnusable } from './postfix-spool.ts'

interface MasterLock {
  /** Resolves when Postfix may start again. */
  release(): Promise<void>
}

const TEMPORARY = 75
const UNAVAILABLE = 69
/** In seconds. The processes of a Postfix that was just stopped may hold the lock for a moment. */
const LOCK_LIMIT = '2'
/** Exit code of flock(1) when another process holds the lock. */
const LOCKED = 100

/**
 * Takes the lock. Null when Postfix has never run on the spool. Throws SpoolUnusable when Postfix runs (75), or when the lock cannot be
 * taken.
 */
export async function lockSpool(spool: string): Promise<MasterLock | null> {
  const path = join(spool, 'pid/master.pid')
  if (!existsSync(path)) return null
  // cat repeats one line once the lock is taken. It ends with its input, also when this process is killed.
  const holder = spawn('flock', ['--timeout', LOCK_LIMIT, '--conflict-exit-code', String(LOCKED), path, 'cat'], {
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  holder.stdin.on('error', () => undefined)
  const ended = new Promise<number | Error>((resolve) => {
    holder.once('error', resolve)
    holder.once('close', (code) => resolve(code ?? -1))
  })
  holder.stdin.write('\n')
  const outcome = await Promise.race([ended, once(holder.stdout, 'data').then(() => 'locked' as const)])
  if (outcome === 'locked') {
    return {
      async release() {
        holder.stdin.end()
        await ended
      },
    }
  }
  if (outcome === LOCKED)
    throw new SpoolUnusable(TEMPORARY, `Postfix runs on ${spool} (process ${masterOf(path)}): stop it first, postfix stop`)
  const why = outcome instanceof Error ? errorMessage(outcome) : `flock ended with ${outcome}`
  throw new SpoolUnusable(UNAVAILABLE, `cannot lock ${path} with flock(1), by which Postfix is kept from starting: ${why}`)
}

function masterOf(path: string): string {
  return /\d+/.exec(readFileSync(path, 'utf8'))?.[0] ?? 'unknown'
}
