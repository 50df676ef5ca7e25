/** Kills `deferd import postfix` at a given progress, and imports again until it ends by itself. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { expect } from 'vitest'
import { queueIdOf } from '../../src/mail/message.ts'
import { ANY_MESSAGE } from '../../src/store/message-conditions.ts'
import { openStoreReadOnly } from '../../src/store/sqlite/open-store.ts'
import { BuiltSpool, submission } from './built-spool.ts'
import { record } from './queue-file-builder.ts'

const PROGRAM = join(import.meta.dirname, '../../bin/deferd.js')

interface ImportRun {
  readonly spool: string
  readonly config: string
  readonly queue: string
}

/** Runs an import; kills it when the queue has `bytes` bytes (Infinity for never). Resolves with its exit code or signal. */
async function runImport({ spool, config, queue }: ImportRun, bytes: number): Promise<number | string> {
  const env = { PATH: process.env['PATH'], DEFERD_QUEUE_DIRECTORY: queue }
  const args = [PROGRAM, 'import', 'postfix', '--config-dir', config, '--spool', spool, '--config', join(config, 'deferd.toml')]
  const child = spawn(process.execPath, args, { env, stdio: 'ignore' })
  const ended = once(child, 'exit') as Promise<[number | null, string | null]>
  while (child.exitCode === null && child.signalCode === null && Number.isFinite(bytes)) {
    if (sizeOf(queue) >= bytes) child.kill('SIGKILL')
    await pause(1)
  }
  const [code, signal] = await ended
  return signal ?? code ?? -1
}

/** Bytes of the queue and its log; 0 without a queue. */
const sizeOf = (queue: string): number =>
  ['queue.db', 'queue.db-wal'].reduce((sum, name) => {
    const path = join(queue, name)
    return sum + (existsSync(path) ? (statSync(path, { throwIfNoEntry: false })?.size ?? 0) : 0)
  }, 0)

/** Texts of the queue, one for each message: sender, recipients and content. */
async function textsOf(queue: string): Promise<readonly string[]> {
  const { reader, close } = openStoreReadOnly(queue)
  try {
    const texts: string[] = []
    for (const { message } of await reader.list(ANY_MESSAGE, { after: 0, limit: 100_000 })) {
      const story = await reader.details(queueIdOf(message))
      const chunks: Uint8Array[] = []
      for (let n = 0, chunk; (chunk = await reader.readChunk(message, n)) !== undefined; n++) chunks.push(chunk)
      const recipients = story?.recipients.map(({ address }) => address).join(' ') ?? ''
      texts.push(`${message.sender} ${recipients} ${Buffer.concat(chunks).toString('latin1')}`)
    }
    return texts.toSorted()
  } finally {
    await close()
  }
}

const MESSAGES = 400
const QUEUES = ['active', 'incoming', 'deferred', 'hold'] as const

/** Writes mail to all queues. */
function fill(spool: BuiltSpool): void {
  for (let n = 0; n < MESSAGES; n++) {
    const id = `A${String(n).padStart(7, '0')}`
    const arrival = `1763600000 ${String(n).padStart(6, '0')}`
    const queue = QUEUES[n % 5]
    if (queue === undefined) spool.add('maildrop', id, submission(`s${n}@a.test`, [`r${n}@b.test`], arrival))
    else {
      const envelope = [record('S', `s${n}@a.test`), record('R', `r${n}@b.test`), record('R', `t${n}@c.test`)]
      spool.add(queue, id, { arrival, envelope, content: [record('N', `Subject: ${n}`), record('N'), record('N', 'x'.repeat(2000))] })
    }
  }
}

/**
 * Imports 400 messages, killed when the queue has each of these numbers of bytes, then to the end, and once more. Each message must be
 * in the queue once. Resolves with the number of kills.
 */
export async function killAndRepeat(sizes: readonly number[]): Promise<number> {
  const spool = new BuiltSpool('myhostname = relay.example\n')
  try {
    fill(spool)
    const run = { spool: spool.spool, config: spool.config, queue: join(spool.folder, 'queue') }
    const ends: (number | string)[] = []
    for (const bytes of [...sizes, Infinity]) ends.push(await runImport(run, bytes))
    expect(ends.at(-1)).toBe(0)
    const texts = await textsOf(run.queue)
    expect(texts.length).toBe(MESSAGES)
    expect(new Set(texts.map((text) => text.split(' ', 1)[0])).size).toBe(MESSAGES)
    expect(await runImport(run, Infinity)).toBe(0)
    expect(await textsOf(run.queue)).toEqual(texts)
    return ends.filter((end) => end === 'SIGKILL').length
  } finally {
    spool.remove()
  }
}
