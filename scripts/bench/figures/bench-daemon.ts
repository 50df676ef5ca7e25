/**
 * A daemon of the working tree with settings of its own, whose SMTP port is known.
 */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { freePort, greeted, startChild, type Child } from '../child.ts'
import { ROOT } from '../contestants.ts'
import type { Setting } from './subject.ts'

export interface BenchDaemon {
  readonly name: string
  readonly child: Child
  readonly port: number
  /** Its queue directory. */
  readonly queue: string
  /** Time from its start until it greeted, in ms. */
  readonly greetedAfter: number
}

export type Settings = Readonly<Record<string, string>>

/** Starts a daemon, with `more` options, which greets when this resolves. It ends with the part at the latest. */
export async function startDaemon(
  { folder, signal, undo }: Setting,
  name: string,
  settings: Settings,
  more: readonly string[] = [],
): Promise<BenchDaemon> {
  const own = join(folder, name)
  mkdirSync(own, { recursive: true })
  const port = await freePort()
  const queue = join(own, 'queue')
  const all = { queue_directory: queue, smtpd_listen: `127.0.0.1:${port}`, myhostname: 'bench.test', ...settings }
  const args = [join(ROOT, 'bin/deferd.js'), 'start', ...more, ...Object.entries(all).flatMap(([key, value]) => ['-o', `${key}=${value}`])]
  const began = performance.now()
  const child = await startChild(name, { program: process.execPath, args, cwd: own }, join(own, 'log'))
  undo.defer(() => child.stop())
  await greeted(child, port, signal)
  return { name, child, port, queue: all.queue_directory, greetedAfter: performance.now() - began }
}
