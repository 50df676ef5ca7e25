/**
 * A private Haraka on loopback, which npm installs into the folder of the run. It relays all mail to one port, and writes its queue to
 * disk without a sync.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { output, startChild, type Child } from './child.ts'

const VERSION = '3.3.4'

export const HARAKA = `Haraka ${VERSION}, whose queue is not synced to disk`

interface Ports {
  readonly listen: number
  readonly nextHop: number
}

/** Installs and starts an instance in a folder. Throws an Error when npm cannot install it, as without a network. */
export async function startHaraka(folder: string, ports: Ports, signal: AbortSignal): Promise<Child> {
  const npm = ['install', `Haraka@${VERSION}`, '--prefix', folder, '--ignore-scripts', '--omit=optional', '--no-audit', '--no-fund']
  await output('npm', npm, folder, signal)
  const program = join(folder, 'node_modules/Haraka/bin/haraka')
  const instance = join(folder, 'instance')
  await output(process.execPath, [program, '-i', instance], folder, signal)
  for (const [name, text] of Object.entries(filesOf(ports))) writeFileSync(join(instance, name), text)
  return startChild('haraka', { program: process.execPath, args: [program, '-c', instance], cwd: folder }, join(folder, 'log'))
}

/** Files of the instance: one process, a plugin that relays everything, errors only in the log. */
const filesOf = ({ listen, nextHop }: Ports): Readonly<Record<string, string>> => ({
  'config/smtp.ini': `listen=127.0.0.1:${listen}\nnodes=0\n`,
  'config/plugins': 'to_sink\n',
  'config/loglevel': 'CRIT\n',
  'config/me': 'bench.test\n',
  'config/outbound.ini': 'enable_tls=false\nlocal_mx_ok=true\nconcurrency_max=100\n',
  'plugins/to_sink.js': `
exports.hook_connect = (next, connection) => { connection.relaying = true; next() }
exports.hook_rcpt = (next) => next(OK)
exports.hook_get_mx = (next) => next(OK, { priority: 0, exchange: '127.0.0.1', port: ${nextHop} })
`,
})
