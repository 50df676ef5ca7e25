/** Commands of deferd, of the working tree or of another checkout. */
import { join } from 'node:path'
import type { SetUp } from './cases.ts'
import { startChild, type Child, type Command } from './child.ts'

/** The working tree. */
export const ROOT = join(import.meta.dirname, '../..')

export interface Deferd {
  readonly checkout: string
  /** Path in the checkout. */
  readonly script: string
  /** Options of `deferd start` that are added. */
  readonly more?: readonly string[]
}

export interface DeferdSite {
  readonly folder: string
  readonly port: number
  readonly metrics: number | null
  readonly setUp: SetUp
  readonly sinkPort: number
}

/** The queue directory of an instance. */
export const queueOf = (folder: string): string => join(folder, 'queue')

const SETTINGS: Readonly<Record<SetUp, Readonly<Record<string, string>>>> = {
  usual: {},
  metered: {},
  deferring: { minimal_backoff_time: '36000s', maximal_backoff_time: '36000s' },
  holding: { smtpd_sender_restrictions: 'check_sender_access static:HOLD' },
}

/** Name of the destination of all mail. */
export const relayhostOf = (sinkPort: number): string => `[127.0.0.1]:${sinkPort}`

export function startDeferd(name: string, program: Deferd, { folder, port, metrics, setUp, sinkPort }: DeferdSite): Promise<Child> {
  const settings = {
    smtpd_listen: `127.0.0.1:${port}`,
    relayhost: relayhostOf(sinkPort),
    myhostname: 'bench.test',
    ...(metrics === null ? {} : { http_listen: `127.0.0.1:${metrics}` }),
    ...SETTINGS[setUp],
  }
  const options = Object.entries(settings).flatMap(([key, value]) => ['-o', `${key}=${value}`])
  return startChild(name, deferdCommand(program, folder, ['start', ...(program.more ?? []), ...options]), join(folder, 'log'))
}

/** A command for the queue in a folder. */
export const deferdCommand = ({ checkout, script }: Deferd, folder: string, args: readonly string[]): Command => ({
  program: process.execPath,
  args: [join(checkout, script), ...args, '-o', `queue_directory=${queueOf(folder)}`],
  cwd: folder,
})
