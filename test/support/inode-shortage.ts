/**
 * Uses up the inodes of a small disk through the maildrop of a real daemon, and restarts the daemon. Runs in a mount namespace of
 * its own (`unshare -Urm node inode-shortage.ts FOLDER`); prints the results as JSON.
 */
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { greeting, startDaemon, stopDaemon } from './maildrop-daemon.ts'

const [folder = ''] = process.argv.slice(2)
execFileSync('mount', ['-t', 'tmpfs', '-o', 'nr_inodes=60,size=64m,mode=711', 'tmpfs', folder])
const queue = join(folder, 'queue')
mkdirSync(queue)
let next = 0

/** Creates files until no inode is free. Every second file is refused by the daemon; the others remain. */
function takeInodes(): number {
  for (;;) {
    const path = join(queue, 'maildrop', `x${next++}`)
    try {
      writeFileSync(path, '', { mode: 0o600 })
      if (next % 2 === 0) chmodSync(path, 0o644)
    } catch {
      return statfsSync(folder).ffree
    }
  }
}

const left: number[] = []
const first = await startDaemon(folder, undefined)
left.push(takeInodes())
await greeting(first.port)
first.child.kill('SIGKILL')
await first.ended
const second = await startDaemon(folder, undefined)
const exits = [await stopDaemon(second)]
left.push(takeInodes())
const third = await startDaemon(folder, undefined)
await greeting(third.port)
exits.push(await stopDaemon(third))
left.push(takeInodes())
const fourth = await startDaemon(folder, undefined)
exits.push(await stopDaemon(fourth))
process.stdout.write(JSON.stringify({ left, exits, errors: [first, second, third, fourth].flatMap(({ errors }) => errors) }))
