/**
 * A private Haraka on loopback, which npm installs into the folder of the run. It relays all mail to one port, and writes its queue to
 * disk without a sync.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { output, startChild, type Child } from './child.ts'

const VERSION = '3.3.4'

export const HARAKA = `Haraka ${VERSION}, whose queue is not synced to disk`

interface Instance {
  readonly listen: number
  readonly nextHop: number
  /** True for one whose retries come after ten hours. */
  readonly isDeferring: boolean
}

/** Installs Haraka into a folder. Throws an Error when npm cannot, as without a network. */
export async function installHaraka(folder: string, signal: AbortSignal): Promise<void> {
  const npm = ['install', `Haraka@${VERSION}`, '--prefix', folder, '--ignore-scripts', '--omit=optional', '--no-audit', '--no-fund']
  await output('npm', npm, folder, signal)
}

/** Starts an instance in a folder, of a program that was installed into another one. */
export async function startHaraka(installed: string, folder: string, settings: Instance): Promise<Child> {
  const program = join(installed, 'node_modules/Haraka/bin/haraka')
  const instance = join(folder, 'instance')
  await output(process.execPath, [program, '-i', instance], folder)
  for (const [name, text] of Object.entries(filesOf(settings))) writeFileSync(join(instance, name), text)
  return startChild('haraka', { program: process.execPath, args: [program, '-c', instance], cwd: folder }, join(folder, 'log'))
}

/** Files of the instance: one process, a plugin that relays everything, errors only in the log. */
const filesOf = ({ listen, nextHop, isDeferring }: Instance): Readonly<Record<string, string>> => ({
  'config/smtp.ini': `listen=127.0.0.1:${listen}\nnodes=0\n`,
  'config/plugins': 'to_sink\n',
  'config/loglevel': 'CRIT\n',
  'config/me': 'bench.test\n',
  'config/outbound.ini': `enable_tls=false\nlocal_mx_ok=true\nconcurrency_max=100\n${isDeferring ? 'temp_fail_intervals=10h\n' : ''}`,
  'plugins/to_sink.js': `
exports.hook_connect = (next, connection) => { connection.relaying = true; next() }
exports.hook_rcpt = (next) => next(OK)
exports.hook_get_mx = (next) => next(OK, { priority: 0, exchange: '127.0.0.1', port: ${nextHop} })
`,
})
