/**
 * `sendmail` beside a running daemon: its mail is taken in at once, whatever the daemon asks of clients of the network, and the log has
 * the uid of its user, as with Postfix's pickup(8).
 */
import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { configFrom, type LoadedConfig } from '../../src/config/load.ts'
import { startDaemon, type Daemon } from '../../src/daemon/daemon.ts'
import { queueIdOf } from '../../src/mail/message.ts'
import { Events, type QueueEvent } from '../../src/telemetry/events.ts'
import { CERTIFICATE, KEY } from '../support/certificates.ts'
import { Operator, type Ran } from '../support/operator.ts'
import { portBelowEphemeral } from '../support/ports.ts'

const DEFERD = join(import.meta.dirname, '../../bin/deferd.js')
const OWN_UID = process.getuid?.() ?? 0
/** Another user, if the test may act as one. */
const OTHER_UID = OWN_UID === 0 ? 65_534 : OWN_UID

let home: string
let operator: Operator
let port: number
let secondPort: number
const daemons: Daemon[] = []
const sockets: Socket[] = []
const seen: QueueEvent[] = []

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'deferd-submit-'))
  chmodSync(home, 0o755)
  operator = new Operator()
  port = await portBelowEphemeral()
  secondPort = await portBelowEphemeral()
})
beforeEach(() => void (seen.length = 0))
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy()
})
afterAll(async () => {
  for (const daemon of daemons) await daemon.stop()
  operator.leave()
  rmSync(home, { recursive: true, force: true })
})

type Values = Readonly<Record<string, string | number | boolean | readonly string[]>>

const path = (name: string) => join(home, name)

/** Settings of all tests, which discard all mail; also in a file, for sendmail. */
function configured(values: Values) {
  const given: Values = { queue_directory: path('queue'), myhostname: 'relay.example', smtpd_listen: [`127.0.0.1:${port}`], ...values }
  const lines = Object.entries(given).map(([name, value]) => `${name} = ${JSON.stringify(value)}`)
  writeFileSync(path('deferd.toml'), `${lines.join('\n')}\n[transport_maps]\n"*" = "discard:"\n`)
  return configFrom({ ...given, transport_maps: { '*': 'discard:' } }, 'relay.example')
}

/** The daemon of most tests with these settings. */
async function daemonWith(values: Values = {}): Promise<Daemon> {
  const loaded = configured(values)
  const [running] = daemons
  if (running === undefined) return start(loaded)
  await running.reload(loaded)
  return running
}

async function start(loaded: LoadedConfig): Promise<Daemon> {
  const events = new Events(() => Date.now())
  events.listen((event) => seen.push(event))
  const daemon = await startDaemon({ loaded, events })
  daemons.push(daemon)
  return daemon
}

const TEXT = 'Subject: hi\n\nIt works.\n'

const run = (...argv: readonly string[]): Promise<Ran> =>
  operator.run(argv, { stdin: TEXT, env: { DEFERD_QUEUE_DIRECTORY: path('queue') } })

const send = (...argv: readonly string[]): Promise<Ran> => run('sendmail', '-C', path('deferd.toml'), ...argv)

const of = <K extends QueueEvent['kind']>(kind: K) => seen.filter((one): one is Extract<QueueEvent, { kind: K }> => one.kind === kind)
const delivered = (): readonly string[] =>
  of('attempted').flatMap(({ request, attempts }) => {
    const ids = new Set(attempts.filter(({ outcome }) => outcome === 'delivered').map(({ recipient }) => recipient))
    return request.recipients.filter(({ id }) => ids.has(id)).map(({ address }) => address)
  })

/** Waits for a condition; a pass of the minute comes later. */
const soon = (condition: () => unknown): Promise<void> => expect.poll(condition, { timeout: 20_000, interval: 10 }).toBeTruthy()

const files = (): Values => {
  writeFileSync(path('cert.pem'), CERTIFICATE)
  writeFileSync(path('key.pem'), KEY, { mode: 0o600 })
  return { smtpd_tls_cert_file: path('cert.pem'), smtpd_tls_key_file: path('key.pem') }
}

const CONFIGURATIONS: readonly (readonly [string, () => Values])[] = [
  ['TLS is required', () => ({ ...files(), smtpd_tls_security_level: 'encrypt' })],
  ['all clients are refused', () => ({ smtpd_client_restrictions: ['reject'] })],
  [
    'the first listener has an address that mynetworks lacks',
    () => ({ smtpd_listen: [`127.0.0.2:${port}`], mynetworks: ['192.0.2.0/24'] }),
  ],
  [
    'a listener at all addresses, and mynetworks without loopback',
    () => ({ smtpd_listen: [`*:${secondPort}`], mynetworks: ['192.0.2.0/24'] }),
  ],
  ['clients come through a proxy', () => ({ smtpd_upstream_proxy_protocol: 'haproxy' })],
  ['there is no listener', () => ({ smtpd_listen: [] })],
  ['a stranger may send to the domain only', () => ({ mynetworks: [], relay_domains: ['far.example'] })],
  ['an access table refuses the sender', () => ({ smtpd_sender_restrictions: ['check_sender_access inline:{{us.example=REJECT}}'] })],
  ['the policy server is down', () => ({ smtpd_recipient_restrictions: ['check_policy_service inet:127.0.0.1:1'] })],
  ['one connection is allowed, and used', () => ({ smtpd_process_limit: 1 })],
]

describe('mail of sendmail is delivered at once, with the uid in the log, although', () => {
  test.each(CONFIGURATIONS)('%s', async (_what, values) => {
    const [first] = (await daemonWith(values())).listeners
    if (first !== undefined) sockets.push(connect(first.port, first.address === '::' ? '127.0.0.1' : first.address))
    expect(await send('-f', 'app@us.example', 'ann@far.example')).toMatchObject({ code: 0, out: '', err: '' })
    await soon(() => delivered().length > 0)
    expect(delivered()).toEqual(['ann@far.example'])
    expect(of('accepted')).toMatchObject([{ client: null, uid: OWN_UID, message: { messageId: expect.any(String) as string } }])
  })
})

test('another user is named by the log, the header is completed, and DSN parameters are kept', async () => {
  await daemonWith({
    header_checks: 'regexp:{{/^Subject: hi/ HOLD}}',
    local_header_rewrite_clients: [],
    canonical_maps: 'inline:{root@relay.example=ops@us.example}',
  })
  const args = ['sendmail', '-C', path('deferd.toml'), '-N', 'never', '-R', 'hdrs', '-V', 'id-1', '-f', 'app', 'root']
  const sent = spawnSync(process.execPath, [DEFERD, ...args], {
    input: `To: root\n${TEXT}`,
    encoding: 'utf8',
    uid: OTHER_UID,
    gid: OTHER_UID,
    cwd: '/',
  })
  expect(sent).toMatchObject({ status: 0, stderr: '' })
  await soon(() => of('accepted').length > 0)
  const [accepted] = of('accepted')
  expect(accepted).toMatchObject({ uid: OTHER_UID, message: { sender: 'app@relay.example', ret: 'hdrs', envid: 'id-1' } })
  const id = queueIdOf(accepted?.message ?? { id: 0, createdAt: 0 })
  const { out: content } = await run('queue', 'cat', id)
  expect(content).toContain(`Received: by relay.example (Deferd, from userid ${OTHER_UID})\r\n\tid ${id}; `)
  for (const field of [/^From: .*<?app@relay\.example>?\r$/m, /^To: ops@us\.example\r$/m, /^Date: /m, /^Message-Id: </m])
    expect(content).toMatch(field)
  const shown = JSON.parse((await run('queue', 'list', '--json')).out) as object
  expect(shown).toMatchObject({ queue_name: 'hold', recipients: [{ address: 'ops@us.example' }] })
})

describe('-v', () => {
  test('prints the queue id', async () => {
    await daemonWith()
    const { code, out } = await send('-v', 'ann@far.example')
    const [accepted] = of('accepted')
    expect([code, out]).toEqual([0, `queued as ${accepted === undefined ? '' : queueIdOf(accepted.message)}\n`])
  })

  test('prints an id for each part of a message with many recipients', async () => {
    await daemonWith()
    const { out } = await send('-v', ...Array.from({ length: 1_500 }, (_, i) => `r${i}@far.example`))
    expect(out).toMatch(/^queued as \w+\nqueued as \w+\n$/)
  })

  test('tells that the mail is returned to its sender', async () => {
    await daemonWith({ header_checks: 'regexp:{{/^Subject: hi/ REJECT not so}}' })
    expect(await send('-v', 'ann@far.example')).toMatchObject({ code: 0, out: 'returned to sender: 550 5.7.1 not so\n' })
  })
})

test('mail of many calls is taken in', async () => {
  await daemonWith()
  const to = Array.from({ length: 200 }, (_, i) => `r${i}@far.example`)
  for (let from = 0; from < to.length; from += 20) {
    const sent = await Promise.all(to.slice(from, from + 20).map((one) => send(one)))
    expect(sent.filter(({ code }) => code !== 0)).toEqual([])
  }
  const mail = () => delivered().filter((one) => to.includes(one))
  await soon(() => mail().length >= to.length)
  expect(mail().toSorted()).toEqual(to.toSorted())
  expect(readdirSync(path('queue/maildrop'))).toEqual([])
})

describe('the socket', () => {
  test('is open to all users, and closed when the daemon stops', async () => {
    const daemon = await start(configured({ queue_directory: path('second'), smtpd_listen: [] }))
    await soon(() => existsSync(path('second/pickup.sock')))
    expect(statSync(path('second/pickup.sock')).mode & 0o222).toBe(0o222)
    expect(statSync(path('second')).mode & 0o777).toBe(0o711)
    await daemon.stop()
    expect(existsSync(path('second/pickup.sock'))).toBe(false)
  })

  test('is not needed: a daemon that cannot open it says so, and sendmail stores its mail', async () => {
    mkdirSync(path('second/pickup.sock/x'), { recursive: true })
    const daemon = await start(configured({ queue_directory: path('second'), smtpd_listen: [] }))
    const warned = ({ level, text }: { readonly level: string; readonly text: string }): boolean =>
      level === 'warning' && text.includes('pickup.sock, so that mail of sendmail waits for up to a minute')
    await soon(() => of('note').some(warned))
    const env = { DEFERD_QUEUE_DIRECTORY: path('second') }
    expect(await operator.run(['sendmail', 'ann@far.example'], { stdin: TEXT, env })).toMatchObject({ code: 0, err: '' })
    await daemon.stop()
    expect(readdirSync(path('second/maildrop')).length + of('accepted').length).toBe(1)
  })

  test('a user who connects all the time does not delay other mail', async () => {
    await daemonWith()
    const flooding = new AbortController()
    let connections = 0
    const flood = async (): Promise<void> => {
      while (!flooding.signal.aborted) {
        const socket = connect(path('queue/pickup.sock'))
        socket.on('error', () => undefined)
        socket.write('x\n'.repeat(100))
        connections++
        await new Promise((resolve) => socket.once('close', resolve).setTimeout(50, () => socket.destroy()))
      }
    }
    const floods = Promise.all(Array.from({ length: 20 }, flood))
    await soon(() => connections > 200)
    for (const to of ['a@far.example', 'b@far.example', 'c@far.example']) {
      expect((await send(to)).code).toBe(0)
      await soon(() => delivered().includes(to))
    }
    flooding.abort()
    await floods
    expect(of('note').filter(({ level }) => level !== 'info' && level !== 'warning')).toEqual([])
  })
})
