/** Starts the real daemon for tests of its maildrop, as another user if the test has the permission. */
import { spawn, type ChildProcess } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

const DEFERD = join(import.meta.dirname, '../../bin/deferd.js')

export interface Running {
  readonly port: number
  readonly child: ChildProcess
  readonly ended: Promise<number | null>
  /** Time from the start of the process to the greeting, in ms. */
  readonly greetedAfter: number
  /** Recipients with `status=sent` in the log, with repetitions. */
  readonly sent: string[]
  readonly errors: string[]
}

/** Starts the daemon of the queue in `folder`, which discards all mail; rejects when the daemon ends before it listens. */
export async function startDaemon(folder: string, user: number | undefined): Promise<Running> {
  writeFileSync(join(folder, 'deferd.toml'), '[transport_maps]\n"*" = "discard:"\n')
  const began = performance.now()
  const child = spawn(process.execPath, [DEFERD, 'start', '--config', join(folder, 'deferd.toml')], {
    env: { ...process.env, DEFERD_QUEUE_DIRECTORY: join(folder, 'queue'), DEFERD_SMTPD_LISTEN: '127.0.0.1:0' },
    cwd: '/',
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(user === undefined ? {} : { uid: user, gid: user }),
  })
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve))
  const sent: string[] = []
  const errors: string[] = []
  createInterface({ input: child.stderr }).on('line', (line) => {
    const address = / to=<([^>]*)>.* status=sent /.exec(line)?.[1]
    if (address !== undefined) sent.push(address)
    if (/\b(?:error|fatal|panic):|^\s+at /.test(line)) errors.push(line)
  })
  const port = await new Promise<number>((resolve, reject) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      const listening = /^deferd listens on 127\.0\.0\.1:(\d+)/.exec(line)
      if (listening !== null) resolve(Number(listening[1]))
    })
    child.once('exit', (code) => reject(new Error(`the daemon ended with ${code}: ${errors.join('\n')}`)))
  })
  await greeting(port)
  return { child, port, ended, greetedAfter: performance.now() - began, sent, errors }
}

/** Resolves when the SMTP server has sent its greeting. */
export const greeting = (port: number): Promise<void> =>
  new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('error', reject)
    socket.once('data', () => {
      socket.destroy()
      resolve()
    })
  })

export async function stopDaemon({ child, ended }: Running): Promise<number | null> {
  child.kill('SIGTERM')
  return ended
}
