/** Kills `deferd import postfix` at a given progress, and imports again until it ends by itself. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { queueIdOf } from '../../src/mail/message.ts'
import { ANY_MESSAGE } from '../../src/store/queue-reader.ts'
import { openStoreReadOnly } from '../../src/store/sqlite/open-store.ts'

const PROGRAM = join(import.meta.dirname, '../../bin/deferd.js')

export interface ImportRun {
  readonly spool: string
  readonly config: string
  readonly queue: string
}

/** Runs an import; kills it when the queue has `bytes` bytes (Infinity for never). Resolves with its exit code or signal. */
export async function runImport({ spool, config, queue }: ImportRun, bytes: number): Promise<number | string> {
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
export async function textsOf(queue: string): Promise<readonly string[]> {
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
