/** `deferd record` between a client and `deferd sink`, as processes: replays, masks, and the file. */
import { mkdtempSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createTransport } from 'nodemailer'
import { afterEach, expect, test } from 'vitest'
import { ForwardingNet, type DialOptions, type Lookup, type MxRecord } from '../../src/system/net.ts'
import { systemNet } from '../../src/system/system-net.ts'
import { createWorld } from '../../src/testkit/create-world.ts'
import { probe } from '../support/probe-client.ts'
import { dialogueAt } from '../support/world-dialogue.ts'
import { realClock } from '../support/real-clock.ts'
import { StartedProcess } from '../support/started-daemon.ts'

const PROGRAM = [process.execPath, join(import.meta.dirname, '../../bin/deferd.js')]
const WAIT = 60_000

const running = new Set<StartedProcess>()
afterEach(() => {
  for (const { child } of running) child.kill('SIGKILL')
  running.clear()
})

/** Starts a command that listens on a free port. */
async function start(command: string, ...args: readonly string[]) {
  const process = new StartedProcess([...PROGRAM, command, '--listen', '127.0.0.1:0', ...args])
  running.add(process)
  await expect.poll(() => process.err, { timeout: WAIT }).toMatch(/listens on \S+:\d+/)
  const port = Number(/listens on \S+:(\d+)/.exec(process.err)?.[1])
  const stop = async () => {
    process.child.kill('SIGINT')
    running.delete(process)
    return process.ended
  }
  return { process, port, stop }
}

/** Leads every domain to one port of this machine. */
class OnePort extends ForwardingNet {
  readonly #port: number

  constructor(port: number) {
    super(systemNet)
    this.#port = port
  }

  override async lookupMx(): Promise<Lookup<MxRecord>> {
    return { kind: 'found', records: [{ preference: 10, exchange: 'mx.example' }] }
  }

  override async lookupAddresses(): Promise<Lookup<string>> {
    return { kind: 'found', records: ['127.0.0.1'] }
  }

  override dial(options: DialOptions) {
    return super.dial({ ...options, address: '127.0.0.1', port: this.#port })
  }
}

const FAULTS = `
[rule.busy]
at = "greeting"
reply = "421 4.3.2 try later"
nth = 20

[rule.unknown]
at = "rcpt"
recipient = "unknown@*"
reply = "550 5.1.1 no such user"

[rule.postponed]
at = "rcpt"
recipient = "postponed@*"
reply = "451 4.3.0 not yet"
first = 1

[rule.moved]
at = "rcpt"
recipient = "moved@*"
drop = "fin"

[rule.gone]
at = "data"
recipient = "gone@*"
drop = "rst"

[rule.nonsense]
at = "rcpt"
recipient = "nonsense@*"
raw = "what?\\r\\n"

[rule.twice]
at = "rcpt"
recipient = "twice@*"
repeat = 2

[rule.slow]
at = "rcpt"
recipient = "slow@*"
delay = "2s"

[rule.spam]
at = "end-of-data"
recipient = "spam@*"
reply = "554 5.7.1 refused"

[rule.lost]
at = "end-of-data"
recipient = "lost@*"
drop = "fin"
first = 1
`
const LOCALS = ['ann', 'unknown', 'postponed', 'moved', 'gone', 'nonsense', 'twice', 'slow', 'spam', 'lost']

/** Results of a strict client that sends to each address twice in succession. */
async function results(port: number, addresses: readonly string[], from: string): Promise<readonly string[]> {
  const net = new OnePort(port)
  const met: string[] = []
  for (const address of addresses.flatMap((one) => [one, one])) {
    const words = await probe(net, realClock, { from, to: [address], idle: 20 })
    met.push(words.replace(/ after (?:(\d+)ms|(\d+)s)/, (_text, ms, s) => ((s ?? Math.floor(Number(ms) / 1_000)) > 0 ? ' slowly' : '')))
  }
  return met
}

test('a sink with the recorded script of ten faults gives a strict client equal results', { timeout: 4 * WAIT }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'deferd-record-'))
  const [script, out] = [join(folder, 'faults.toml'), join(folder, 'session.toml')]
  writeFileSync(script, FAULTS)
  const far = await start('sink', '--script', script)
  const proxy = await start('record', '--relay', `127.0.0.1:${far.port}`, '--out', out)
  const real = LOCALS.map((local) => `${local}@them.example`)
  const original = await results(proxy.port, real, 'app@us.example')
  const { code, err } = await proxy.stop()
  expect([code, err]).toEqual([0, expect.stringMatching(/20 sessions of 1 client: \d+ rules in /)])
  await far.stop()
  expect(statSync(out).mode & 0o777).toBe(0o600)
  const text = readFileSync(out, 'utf8')
  expect(new Set(original).size).toBeGreaterThan(9)
  const masked = LOCALS.map((_local, index) => `r${index + 1}@d2.example`)
  const again = await start('sink', '--script', out)
  expect(await results(again.port, masked, 's1@d1.example'), text).toEqual(original)
  await again.stop()
  // An existing file is kept.
  const refused = await new StartedProcess([...PROGRAM, 'record', '--relay', '127.0.0.1:25', '--out', out]).ended
  expect([refused.code, refused.err]).toEqual([73, `deferd: ${out} exists: name another file with --out, or add --force to replace it\n`])
  expect(readFileSync(out, 'utf8')).toBe(text)
})

test('a sink with a dialogue that a relay has kept fails like its host', { timeout: WAIT }, async () => {
  const script = join(mkdtempSync(join(tmpdir(), 'deferd-dialogue-')), 'dialogue.txt')
  await using world = await createWorld()
  world.destination('far.example').fails({ at: 'rcpt', reply: '550 5.1.1 no such user' })
  const id = await world.submit({ to: 'ann@far.example' })
  await world.advance('1s')
  writeFileSync(script, (await world.dialogue(id)) ?? '')
  const sink = await start('sink', '--script', script)
  expect(await dialogueAt(sink.port, ['EHLO us.example', 'MAIL FROM:<a@us.example>', 'RCPT TO:<ann@far.example>'])).toContain(
    '550 5.1.1 no such user',
  )
  await sink.stop()
})

const CONTENT =
  'From: "Grace Hopper" <grace@corporation.example>\r\nSubject: Quarterly figures\r\nX-Case: 8842-KL\r\n\r\nTurnover was 4711 million.\r\n'

/** Replies that repeat what a client has said. */
const ECHOES = `
[rule.mail]
at = "mail"
reply = "451 4.7.1 grace@corporation.example (grace, corporation.example, 127.0.0.1) is not known to us"
first = 1

[rule.rcpt]
at = "rcpt"
reply = "451 4.7.1 <Treasurer@customers.example>: treasurer is busy; user smtp-login, password pa55-Word!x"
first = 1

[rule.content]
at = "end-of-data"
reply = "554 5.7.1 Quarterly figures of Hopper (8842-KL) say Turnover 4711, by login smtp-login"
first = 1
`

test.each([[['--tls']], [[]]])('the file has no login, address or content of a session: %j', { timeout: 4 * WAIT }, async (options) => {
  const folder = mkdtempSync(join(tmpdir(), 'deferd-record-'))
  const [script, out] = [join(folder, 'faults.toml'), join(folder, 'session.toml')]
  writeFileSync(script, ECHOES)
  const far = await start('sink', '--script', script, '--tls', '--auth', 'smtp-login:pa55-Word!x', '--keep', join(folder, 'far'))
  const proxy = await start('record', '--relay', `127.0.0.1:${far.port}`, '--out', out, ...options)
  for (const authMethod of ['PLAIN', 'LOGIN', 'PLAIN', 'PLAIN']) {
    const transport = createTransport({
      host: '127.0.0.1',
      port: proxy.port,
      name: 'desk.corporation.example',
      requireTLS: options.length > 0,
      tls: { rejectUnauthorized: false },
      auth: { user: 'smtp-login', pass: 'pa55-Word!x' },
      authMethod,
    })
    const envelope = { from: 'grace@corporation.example', to: 'treasurer@customers.example' }
    await transport.sendMail({ envelope, raw: CONTENT }).catch(() => undefined)
    transport.close()
  }
  await proxy.stop()
  const { out: events } = await far.stop()
  expect(events.split('\n').filter((line) => line.includes('"event":"message"')).length).toBe(2)
  const text = readFileSync(out, 'utf8')
  expect(text).toContain(options.length > 0 ? 'TLS ended at the proxy' : 'STARTTLS was removed')
  expect(text).toContain('with From, Subject, X-Case')
  const secrets = [
    'pa55',
    'smtp-login',
    'grace',
    'treasurer',
    'corporation',
    'customers',
    'hopper',
    'quarterly',
    'figures',
    '8842',
    'turnover',
    '4711 million',
    'desk.',
  ]
  const encoded = ['smtp-login', 'pa55-Word!x', '\0smtp-login\0pa55-Word!x'].map((one) => Buffer.from(one).toString('base64').toLowerCase())
  for (const secret of [...secrets, ...encoded]) expect(text.toLowerCase(), secret).not.toContain(secret)
  expect([...text.matchAll(/^reply = "(.*)"$/gm)].map(([, reply]) => reply)).toEqual([
    '451 4.7.1 s1@d1.example (s1, d1.example, 192.0.2.1) is not known to us',
    '451 4.7.1 <r1@d2.example>: r1 is busy; user ***, password ***',
    expect.stringMatching(/^554 5\.7\.1 \*\*\* \*\*\* of \*\*\* \(\*\*\*\) say \*\*\* \*\*\*, by login \*\*\*$/),
  ])
})
