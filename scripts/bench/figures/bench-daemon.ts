/**
 * A daemon of the working tree with settings of its own, whose SMTP port is known.
 */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { freePort, greeted, startChild, type Child } from '../child.ts'
import { ROOT } from '../deferd.ts'
import type { Setting } from './subject.ts'

export interface BenchDaemon {
  readonly name: string
  readonly child: Child
  readonly port: number
  /** Its queue directory. */
  readonly queue: string
  /** File of its standard output and error. */
  readonly log: string
  /** Time from its start until it greeted, in ms. */
  readonly greetedAfter: number
}

export type Settings = Readonly<Record<string, string>>

/** More options and variables of a daemon. */
export interface More {
  readonly args?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
}

/** Starts a daemon that greets when this resolves. It ends with the part at the latest. */
export async function startDaemon(
  { folder, signal, undo }: Pick<Setting, 'folder' | 'signal' | 'undo'>,
  name: string,
  settings: Settings,
  { args: more = [], env = {} }: More = {},
): Promise<BenchDaemon> {
  const own = join(folder, name)
  mkdirSync(own, { recursive: true })
  const port = await freePort()
  const [queue, log] = [join(own, 'queue'), join(own, 'log')]
  const all = { queue_directory: queue, smtpd_listen: `127.0.0.1:${port}`, myhostname: 'bench.test', ...settings }
  const args = [join(ROOT, 'bin/deferd.js'), 'start', ...more, ...Object.entries(all).flatMap(([key, value]) => ['-o', `${key}=${value}`])]
  const began = performance.now()
  const child = await startChild(name, { program: process.execPath, args, cwd: own, env }, log)
  undo.defer(() => child.stop())
  await greeted(child, port, signal)
  return { name, child, port, queue: all.queue_directory, log, greetedAfter: performance.now() - began }
}
