/**
 * A private Postfix on loopback, with its own configuration, spool and log in a folder, separate from an installed instance. It
 * relays all mail to one port.
 */
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { lastLines, output, startChild, within, type Child } from './child.ts'

const PROGRAM = 'postfix'

/** The reason why Postfix cannot run here; null when it can. */
export async function postfixIsMissing(): Promise<string | null> {
  if (process.getuid?.() !== 0) return 'a private instance of Postfix needs root'
  try {
    await defaultOf('daemon_directory')
    return null
  } catch {
    return 'Postfix is not installed'
  }
}

const defaultOf = (parameter: string): Promise<string> => output('postconf', ['-d', '-h', parameter], '/')

export const postfixVersion = async (): Promise<string> => `Postfix ${await defaultOf('mail_version')}`

interface Ports {
  readonly listen: number
  readonly nextHop: number
}

/** Lines of main.cf that replace those of the instance. */
type MainCf = Readonly<Record<string, string>>

/** Starts the instance in a folder. The child is `postfix start-fg`, the ancestor of all its processes. */
export async function startPostfix(folder: string, ports: Ports, settings: MainCf = {}): Promise<Child> {
  await writeInstance(folder, ports, settings)
  return runPostfix(folder)
}

/** Starts an instance that was written before, with the mail in its spool. */
export async function runPostfix(folder: string): Promise<Child> {
  const args = ['-c', join(folder, 'etc'), 'start-fg']
  const child = await startChild('postfix', { program: PROGRAM, args, cwd: folder }, join(folder, 'output'))
  const lastWords = () => [child.lastWords(), lastLines(join(folder, 'log'))].join('\n').trim()
  return { ...child, lastWords, stop: () => stopPostfix(folder, child) }
}

/** Writes main.cf, master.cf and empty folders. */
export async function writeInstance(folder: string, ports: Ports, settings: MainCf = {}): Promise<void> {
  for (const name of ['etc', 'spool', 'data']) mkdirSync(join(folder, name))
  // Postfix' own user has to get through to the spool.
  for (const name of ['', 'etc', 'spool']) chmodSync(join(folder, name), 0o755)
  await output('chown', [await defaultOf('mail_owner'), join(folder, 'data')], folder)
  writeFileSync(join(folder, 'etc/main.cf'), mainCf(folder, ports.nextHop, settings))
  writeFileSync(join(folder, 'etc/master.cf'), masterCf(ports.listen))
  writeFileSync(join(folder, 'log'), '')
}

/** Makes all mail of a running instance due. */
export async function flushPostfix(folder: string): Promise<void> {
  await output('postqueue', ['-c', join(folder, 'etc'), '-f'], folder)
}

/** Ends master, which ends its processes; the shell script above it ends by itself. */
async function stopPostfix(folder: string, child: Child): Promise<void> {
  const master = masterPid(folder)
  if (!child.hasEnded() && master !== null) {
    process.kill(master, 'SIGTERM')
    await within(10_000, child.ended)
  }
  await child.stop()
}

function masterPid(folder: string): number | null {
  try {
    return Number(readFileSync(join(folder, 'spool/pid/master.pid'), 'utf8')) || null
  } catch {
    // Without the file, master has not come so far.
    return null
  }
}

function mainCf(folder: string, nextHop: number, settings: MainCf): string {
  const values = [
    ...defaults(folder, nextHop)
      .trim()
      .split('\n')
      .map((line) => line.split(' =', 2) as [string, string]),
    ...Object.entries(settings),
  ]
  return [...new Map(values)].map(([name, value]) => `${name} = ${value.trim()}\n`).join('')
}

const defaults = (folder: string, nextHop: number): string => `compatibility_level = 3.6
queue_directory = ${folder}/spool
data_directory = ${folder}/data
maillog_file = ${folder}/log
maillog_file_prefixes = ${folder}
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
myhostname = bench.test
mydestination =
mynetworks = 127.0.0.0/8
relayhost = [127.0.0.1]:${nextHop}
smtpd_relay_restrictions = permit_mynetworks, reject
smtpd_peername_lookup = no
disable_dns_lookups = yes
local_recipient_maps =
alias_maps =
alias_database =
`

const masterCf = (listen: number): string => `127.0.0.1:${listen} inet n - n - 100 smtpd
pickup unix n - n 60 1 pickup
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
verify unix - - n - 1 verify
flush unix n - n 1000? 0 flush
proxymap unix - - n - - proxymap
smtp unix - - n - - smtp
relay unix - - n - - smtp
error unix - - n - - error
retry unix - - n - - error
discard unix - - n - - discard
lmtp unix - - n - - lmtp
local unix - n n - - local
showq unix n - n - - showq
anvil unix - - n - 1 anvil
scache unix - - n - 1 scache
tlsmgr unix - - n 1000? 1 tlsmgr
postlog unix-dgram n - n - 1 postlogd
`
