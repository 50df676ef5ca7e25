/** Configurations of Postfix, imported: `deferd check` passes, and mail is routed as Postfix's trivial-rewrite routes it. */
import { execFile, execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { postfixIsMissing, startPostfix } from '../../scripts/bench/postfix.ts'
import { greeted } from '../../scripts/bench/child.ts'
import { loadConfig } from '../../src/config/load.ts'
import { formatNextHop, parseNextHop } from '../../src/config/values/next-hop.ts'
import { Router } from '../../src/delivery/routing/router.ts'
import { openRoutingTables } from '../../src/delivery/routing/routing-tables.ts'
import { parseMainCf } from '../../src/import/configuration/main-cf.ts'
import { CONFIGURATIONS } from '../support/postfix-configurations.ts'
import { reasonToSkip } from '../support/required.ts'
import { portBelowEphemeral } from '../support/ports.ts'

const reason = reasonToSkip('interop', await postfixIsMissing())

const SENDERS = ['', 'ann@example.com', 'bob@example.com', 'x@news.example.com', 'other@host.example']
const RECIPIENTS = [
  'a@far.test',
  'a@direct.test',
  'a@via.test',
  'box@via.test',
  'a@sub.via.test',
  'a@slow.test',
  'a@gone.test',
  'a@drop.test',
  'a@relayed.test',
  'a@x.relayed.test',
  'a@x.sub.test',
]

/** Programs that deferd has under the names of Postfix's services. */
const PROGRAMS: Readonly<Record<string, string>> = {
  smtp: 'smtp',
  relay: 'smtp',
  slow: 'smtp',
  lmtp: 'lmtp',
  discard: 'discard',
  error: 'error',
}

test.skipIf(reason !== null).each(Object.keys(CONFIGURATIONS))('%s', async (name) => {
  const given = CONFIGURATIONS[name]
  if (given === undefined) throw new Error(`no configuration is called ${name}`)
  const folder = mkdtempSync('/tmp/deferd-routing-')
  const [tables, instance] = [join(folder, 'tables'), join(folder, 'postfix')]
  chmodSync(folder, 0o755)
  for (const path of [tables, instance]) mkdirSync(path)
  const main = given.main.replaceAll('CONFIG', tables)
  for (const [table, text] of Object.entries(given.tables)) {
    writeFileSync(join(tables, table), text.replaceAll('CONFIG', tables))
    if (new RegExp(`hash:${tables}/${table}$|hash:${tables}/${table},`, 'm').test(main)) {
      execFileSync(table === 'aliases' ? 'postalias' : 'postmap', [`hash:${tables}/${table}`], { stdio: 'ignore' })
    }
  }
  const port = await portBelowEphemeral()
  const own = {
    inet_interfaces: '127.0.0.1',
    inet_protocols: 'ipv4',
    smtpd_tls_security_level: '',
    smtp_tls_wrappermode: 'no',
    ...(/^relayhost/m.test(main) ? {} : { relayhost: '' }),
  }
  const postfix = await startPostfix(instance, { listen: port, nextHop: 25 }, { ...Object.fromEntries(parseMainCf(main).values), ...own })
  try {
    await greeted(postfix, port, new AbortController().signal)
    const config = join(folder, 'config')
    mkdirSync(config)
    writeFileSync(join(config, 'main.cf'), main)
    writeFileSync(join(config, 'master.cf'), given.master)
    const queue = join(folder, 'queue')
    const file = join(folder, 'deferd/deferd.toml')
    const args = ['--config', file, '-o', `queue_directory=${queue}`]
    const imported = await deferd('import', 'postfix', '--config-dir', config, '--spool', join(instance, 'spool'), '--dry-run', ...args)
    expect(imported.code).toBe(0)
    const socket = join(instance, 'spool/private/rewrite')
    const expected = await Promise.all(pairs().map(([sender, recipient]) => resolve(socket, sender, recipient)))
    await postfix.stop()
    // The last processes of Postfix may hold the lock of the spool a moment longer than master: 75 until then.
    const importing = () => deferd('import', 'postfix', '--config-dir', config, '--spool', join(instance, 'spool'), ...args)
    await expect.poll(async () => (await importing()).code, { interval: 500 }).toBe(0)
    expect((await deferd('check', '--config', file)).out.split('\n').filter((line) => line.startsWith('error'))).toEqual([])
    const loaded = loadConfig({ file, env: {}, overrides: [], uid: 0, calledAs: 'deferd' }).config
    const router = new Router(loaded, openRoutingTables(loaded).tables)
    const routes = pairs().map(([sender, recipient]) => routeOf(router, sender, recipient))
    const different = pairs().flatMap((pair, i) =>
      PROGRAMS[expected[i]?.transport ?? ''] === undefined || routes[i] === inWords(expected[i]!)
        ? []
        : [{ pair, deferd: routes[i], postfix: inWords(expected[i]!) }],
    )
    expect(different).toEqual([])
  } finally {
    await postfix.stop()
    rmSync(folder, { recursive: true, force: true })
  }
})

const pairs = (): readonly (readonly [sender: string, recipient: string])[] =>
  SENDERS.flatMap((sender) => RECIPIENTS.map((recipient) => [sender, recipient] as const))

const PROGRAM = join(import.meta.dirname, '../../bin/deferd.js')

const deferd = (...args: readonly string[]): Promise<{ readonly code: number; readonly out: string; readonly err: string }> =>
  new Promise((resolve_) => {
    const child = execFile(process.execPath, [PROGRAM, ...args], { env: { PATH: process.env['PATH'] } }, (_, out, err) =>
      resolve_({ code: child.exitCode ?? -1, out, err }),
    )
  })

interface Resolved {
  readonly transport: string
  readonly nexthop: string
}

/** Asks trivial-rewrite(8) for the route of an address. */
function resolve(path: string, sender: string, address: string): Promise<Resolved> {
  return new Promise((found, failed) => {
    const socket = connect(path)
    let heard = ''
    socket.on('error', failed)
    socket.on('data', (data) => {
      heard += data.toString('latin1')
      const fields = heard.split('\0')
      const value = (name: string) => fields[fields.indexOf(name) + 1] ?? ''
      if (!fields.includes('recipient') || !heard.endsWith('\0\0')) return
      socket.destroy()
      found({ transport: value('transport'), nexthop: value('nexthop') })
    })
    const fields = ['request', 'resolve', 'sender', sender, 'address', address]
    socket.write(`${fields.map((field) => `${field}\0`).join('')}\0`)
  })
}

const hopsOf = (text: string): string =>
  text
    .split(/[,\s]+/)
    .map((one) => {
      const hop = parseNextHop(one, { port: 25, origin: 'relayhost', mx: true })
      return hop === undefined ? one : formatNextHop(hop, 25)
    })
    .join(',')

function inWords({ transport, nexthop }: Resolved): string {
  const program = PROGRAMS[transport] ?? transport
  if (program === 'error') return `error ${nexthop.replace(/^[45]\.\d+\.\d+ /, '').trim()}`
  return program === 'smtp' ? `smtp ${hopsOf(nexthop)}` : program === 'lmtp' ? `lmtp ${nexthop}` : program
}

function routeOf(router: Router, sender: string, recipient: string): string {
  const route = router.route(recipient, sender)
  if (route.transport === 'error') return `error ${route.text}`
  if (route.transport === 'discard') return 'discard'
  return `${route.transport} ${route.nexthops.map((hop) => formatNextHop(hop, 25)).join(',')}`
}
