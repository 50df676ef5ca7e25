/**
 * Measures deferd, on one machine, and prints medians with their spread. docs/bench.md explains the subjects and their results.
 *
 *   npm run bench -- --quick --base main    CPU time per message beside other relays
 *   npm run bench -- postgres               the queue in PostgreSQL beside the one in SQLite
 *   npm run bench -- page                   a daemon with the page open beside one without
 *   npm run bench -- dkim                   signed mail beside unsigned mail
 *   npm run bench -- events                 mail with webhooks beside mail without
 *   npm run bench -- queue                  a queue with a million messages
 *   npm run bench -- memory                 memory of a destination, a message, a connection
 *   npm run bench -- slow-disk              a disk whose sync takes 10 ms
 *   npm run bench -- tls                    handshakes beside Postfix
 *   npm run bench -- report FILE...         results to docs/performance.md
 */
import { existsSync } from 'node:fs'
import { runSubject } from './bench/figures/subject.ts'
import { DKIM } from './bench/dkim/dkim-subject.ts'
import { EVENTS } from './bench/events/events-subject.ts'
import { MEMORY } from './bench/memory/memory-subject.ts'
import { UsageError } from './bench/options.ts'
import { PAGE } from './bench/page/page-subject.ts'
import { POSTGRES } from './bench/postgres/postgres-subject.ts'
import { QUEUE } from './bench/queue/queue-subject.ts'
import { runRelays } from './bench/relays.ts'
import { SLOW_DISK } from './bench/slow-disk/slow-disk-subject.ts'
import { TLS } from './bench/tls/tls-subject.ts'
import { report } from './performance/publish-files.ts'

const EX_USAGE = 64
const say = (line: string): void => void process.stdout.write(`${line}\n`)

async function main(args: readonly string[]): Promise<number> {
  const interrupted = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, () => interrupted.abort(new Error(`ended by ${name}`)))
  // A closed pipe must not end the bench before it has stopped what it started.
  process.stdout.on('error', (cause) => interrupted.abort(new Error(`the output cannot be written: ${cause.message}`, { cause })))
  process.stderr.on('error', (cause) => interrupted.abort(new Error('the terminal is gone', { cause })))
  try {
    if (!existsSync('/proc/self/stat')) throw new Error('CPU times are read from /proc, which this system lacks: run the bench on Linux')
    await run(args, interrupted.signal)
    return 0
  } catch (error) {
    const reason: unknown = interrupted.signal.aborted ? interrupted.signal.reason : error
    process.stderr.write(`bench: ${reason instanceof Error ? reason.message : String(reason)}\n`)
    // An interrupted part may wait for ever.
    if (interrupted.signal.aborted) process.exit(1)
    return error instanceof UsageError ? EX_USAGE : 1
  }
}

function run(args: readonly string[], signal: AbortSignal): Promise<void> {
  const [name, ...others] = args
  if (name === 'report') return Promise.resolve(report(others, say))
  const subject = [POSTGRES, PAGE, DKIM, EVENTS, QUEUE, MEMORY, SLOW_DISK, TLS].find((one) => one.name === name)
  return subject === undefined ? runRelays(args, { signal, say }) : runSubject(subject, others, { signal, say })
}

process.exitCode = await main(process.argv.slice(2))
