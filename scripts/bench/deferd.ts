/** Commands of deferd, of the working tree or of another checkout. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { shortId } from './base-commit.ts'
import type { SetUp } from './cases.ts'
import { output, startChild, type Child, type Command } from './child.ts'
import { daemonEnvironment, memoryOptions } from '../../src/system/node-version.js'

/** The working tree. */
export const ROOT = join(import.meta.dirname, '../..')

export interface Deferd {
  readonly checkout: string
  /** Path in the checkout. */
  readonly script: string
  /** Options of `deferd start` that are added. */
  readonly more?: readonly string[]
  /** False for a script that is started without the launcher, and gets its limits of memory here. */
  readonly hasLauncher?: false
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
  large: { message_size_limit: '40000000' },
  'smtp-sink': {},
  deferring: { minimal_backoff_time: '36000s', maximal_backoff_time: '36000s' },
  holding: { smtpd_sender_restrictions: 'check_sender_access static:HOLD' },
}

/** As of bin/deferd.js. */
const NODE_OPTIONS = memoryOptions(process.versions.v8)

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
export const deferdCommand = ({ checkout, script, hasLauncher }: Deferd, folder: string, args: readonly string[]): Command => ({
  program: process.execPath,
  args: [...(hasLauncher === false ? NODE_OPTIONS : []), join(checkout, script), ...args, '-o', `queue_directory=${queueOf(folder)}`],
  cwd: folder,
  ...(hasLauncher === false && { env: daemonEnvironment }),
})

/** The commit of the working tree, with a + when files differ from it. */
export async function treeVersion(): Promise<string> {
  if (!existsSync(join(ROOT, '.git'))) return 'git names no commit'
  const changes = await output('git', ['status', '--porcelain', '--untracked-files=no'], ROOT)
  return `${await shortId(ROOT, 'HEAD')}${changes === '' ? '' : '+'}`
}
