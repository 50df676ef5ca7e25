/** Everyday configurations of Postfix, imported: replies and deliveries are equal, and the import states each difference. */
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { greeted } from '../../scripts/bench/child.ts'
import { postfixIsMissing, runPostfix, writeInstance } from '../../scripts/bench/postfix.ts'
import { loadConfig } from '../../src/config/load.ts'
import { startDaemon } from '../../src/daemon/daemon.ts'
import { convertConfiguration } from '../../src/import/configuration/conversion.ts'
import { postfixFiles } from '../../src/import/configuration/postfix-files.ts'
import { writeConfiguration } from '../../src/import/configuration/written-files.ts'
import { systemClock } from '../../src/system/system-clock.ts'
import type { ReceivedMail } from '../../src/testkit/remote/remote-events.ts'
import { Events } from '../../src/telemetry/events.ts'
import { CERTIFICATE, KEY } from '../support/certificates.ts'
import { IMPORTED, type ImportedConfiguration } from '../support/imported-configurations.ts'
import { Operator } from '../support/operator.ts'
import { isFree, portBelowEphemeral } from '../support/ports.ts'
import { reasonToSkip } from '../support/required.ts'
import { Client } from './dialogue.ts'
import { SinkPort } from './systems.ts'

const reason = reasonToSkip('interop', await postfixIsMissing())

const CLIENTS = ['127.0.0.1', '10.0.0.50', '203.0.113.7']
const SENDERS = ['ann@corp.example', 'x@client.example', '']
const RECIPIENTS = ['bob@far.test', 'user@relayed.test', 'nosuch@relayed.test', 'abuse@corp.example', 'nosuch@host.example']

/** Settings of all configurations. */
const COMMON = {
  myhostname: 'host.example',
  myorigin: '$myhostname',
  append_dot_mydomain: 'no',
  smtpd_authorized_xclient_hosts: '127.0.0.1',
  smtpd_error_sleep_time: '0',
  smtpd_hard_error_limit: '100',
  smtpd_soft_error_limit: '100',
  smtpd_relay_restrictions: 'permit_mynetworks, permit_sasl_authenticated, defer_unauth_destination',
}

describe.skipIf(reason !== null)(`imported configurations${reason === null ? '' : ` (${reason})`}`, () => {
  test.each(Object.entries(IMPORTED))('%s', async (_, given) => compare(given), 300_000)
})

async function compare(given: ImportedConfiguration): Promise<void> {
  const folder = mkdtempSync('/tmp/deferd-imported-')
  chmodSync(folder, 0o755)
  const sink = await new SinkPort({}).open()
  const port = await portBelowEphemeral()
  try {
    await writePostfix(folder, given, { port, sink: sink.port })
    const reference = await observePostfix(folder, given, { port, received: sink.received })
    const { own, toml } = await observeDeferd(folder, given, { port, received: sink.received })
    expect(untold(given, { own, reference, toml })).toEqual([])
  } finally {
    sink.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Lines that only one of the systems has, and that no comment of the import explains; and explanations without a difference. */
function untold(
  { told = [] }: ImportedConfiguration,
  { own, reference, toml }: { readonly own: readonly string[]; readonly reference: readonly string[]; readonly toml: string },
): readonly string[] {
  const differences = [
    ...own.filter((line) => !reference.includes(line)).map((line) => `deferd: ${line}`),
    ...reference.filter((line) => !own.includes(line)).map((line) => `Postfix: ${line}`),
  ]
  const comments = toml.split('\n').filter((line) => line.startsWith('#'))
  const isTold = (line: string) =>
    told.some(({ difference, told: text }) => difference.test(line) && comments.some((one) => one.includes(text)))
  const unused = told.filter(({ difference }) => !differences.some((line) => difference.test(line)))
  return [...differences.filter((line) => !isTold(line)), ...unused.map(({ difference }) => `no difference matches ${String(difference)}`)]
}

async function writePostfix(
  folder: string,
  { main, master = '', server = '', tables = {} }: ImportedConfiguration,
  { port, sink }: { readonly port: number; readonly sink: number },
): Promise<void> {
  await writeInstance(folder, { listen: port, nextHop: sink }, COMMON)
  const etc = join(folder, 'etc')
  const filled = (text: string) => text.replaceAll('CONFIG', etc).replaceAll('SINK', `[127.0.0.1]:${sink}`)
  // A second entry of a parameter is a warning, which postlogd sends to its own socket while it reads main.cf: when the queue of that
  // socket is full (net.unix.max_dgram_qlen), postlogd waits for itself, and every process of Postfix for postlogd.
  const own = main.replace(/^MYNETWORKS_UNSET.*\n/m, '')
  const named = new Set([...main.matchAll(/^(\w+) *=/gm)].map(([, name]) => (name === 'MYNETWORKS_UNSET' ? 'mynetworks' : name)))
  const common = readFileSync(join(etc, 'main.cf'), 'utf8').split(/(?<=\n)/)
  const others = common.filter((line) => !named.has(line.split(' =', 1)[0]))
  writeFileSync(join(etc, 'main.cf'), others.join('') + filled(own))
  const services = readFileSync(join(etc, 'master.cf'), 'utf8').replace(/(?<= smtpd)$/m, ` ${server}`)
  writeFileSync(join(etc, 'master.cf'), services + filled(master))
  for (const [name, text] of Object.entries({ ...tables, 'cert.pem': CERTIFICATE, 'key.pem': KEY })) {
    writeFileSync(join(etc, name), filled(text))
    if (main.includes(`hash:CONFIG/${name}`) && !main.includes(`texthash:CONFIG/${name}`))
      execFileSync(name === 'aliases' ? 'postalias' : 'postmap', ['-c', etc, `hash:${etc}/${name}`])
  }
}

interface Machine {
  readonly port: number
  readonly received: readonly ReceivedMail[]
}

async function observePostfix(folder: string, given: ImportedConfiguration, machine: Machine): Promise<readonly string[]> {
  const postfix = await runPostfix(folder)
  try {
    await greeted(postfix, machine.port, new AbortController().signal)
    return await observe(given, machine)
  } finally {
    await postfix.stop()
  }
}

async function observeDeferd(
  folder: string,
  given: ImportedConfiguration,
  machine: Machine,
): Promise<{ readonly own: readonly string[]; readonly toml: string }> {
  const own = join(folder, 'deferd')
  mkdirSync(own)
  const facts = { configDirectory: join(folder, 'etc'), folder: own, hostname: 'host.example', queueDirectory: join(folder, 'queue') }
  const converted = convertConfiguration(facts, postfixFiles)
  const file = join(own, 'deferd.toml')
  writeConfiguration(file, converted, { force: true, owner: null, replaces: () => false })
  const operator = new Operator()
  const checked = await operator.run(['check', '--config', file])
  expect(checked.out.split('\n').filter((line) => line.startsWith('error'))).toEqual([])
  expect(checked.code).toBe(0)
  const loaded = loadConfig({ file, env: {}, overrides: [], uid: 0, calledAs: 'deferd' })
  // The processes of Postfix end some time after master.
  await expect.poll(() => isFree(machine.port), { timeout: 20_000 }).toBe(true)
  const daemon = await startDaemon({ loaded, events: new Events(() => systemClock.now()) })
  try {
    return { own: await observe(given, machine), toml: converted.toml }
  } finally {
    await daemon.stop()
    operator.leave()
  }
}

/** The replies to all recipients of all clients and senders, and the mail that the next hop got. */
async function observe(
  { clients = [], senders = [], recipients = [], contents = [] }: ImportedConfiguration,
  { port, received }: Machine,
): Promise<readonly string[]> {
  const before = received.length
  const lines: string[] = []
  for (const client of [...CLIENTS, ...clients]) {
    for (const sender of [...SENDERS, ...senders]) {
      const dialogue = await send(port, { client, sender, recipients: [...RECIPIENTS, ...recipients], content: `${client} ${sender}` })
      lines.push(...dialogue)
    }
  }
  for (const content of contents) {
    const dialogue = await send(port, {
      client: '127.0.0.1',
      sender: 'ann@corp.example',
      recipients: ['bob@far.test'],
      content,
      isCompared: true,
    })
    lines.push(...dialogue)
  }
  await quiet(() => received.length, lines.some((line) => /RCPT.*: 250/.test(line)) ? 1 : 0)
  return [...lines, ...received.slice(before).flatMap(delivered)]
}

/** A message. The reply to its content is compared where all recipients are accepted. */
interface Sent {
  readonly client: string
  readonly sender: string
  readonly recipients: readonly string[]
  readonly content: string
  readonly isCompared?: boolean
}

async function send(port: number, { client, sender, recipients, content, isCompared = false }: Sent): Promise<readonly string[]> {
  const smtp = await Client.open(port, '127.0.0.1')
  const about = `${client} <${sender}>`
  const lines: string[] = []
  const say = async (text: string): Promise<string> => {
    smtp.send(`${text}\r\n`)
    const reply = await smtp.reply()
    if (reply.startsWith('(no reply)')) throw new Error(`${about}: no reply to ${text.slice(0, 80)} in 20 s`)
    return reply.replace(/queued as \S+/, 'queued').replaceAll('\n', ' / ')
  }
  try {
    await smtp.reply()
    await say('EHLO probe.example')
    await say(`XCLIENT ADDR=${client} NAME=[UNAVAILABLE]`)
    lines.push(`${about} MAIL before EHLO: ${await say('MAIL FROM:<early@client.example>')}`)
    await say('EHLO client.example')
    lines.push(`${about} MAIL: ${await say(`MAIL FROM:<${sender}>`)}`)
    for (const recipient of recipients) lines.push(`${about} RCPT <${recipient}>: ${await say(`RCPT TO:<${recipient}>`)}`)
    const go = await say('DATA')
    if (!go.startsWith('354')) return lines
    const text = `From: <${sender}>\r\nTo: <bob@far.test>\r\nSubject: ${content.replaceAll('\n', '\r\n')}\r\n\r\ntext\r\n.`
    const reply = await say(text)
    return isCompared ? [...lines, `${about} end of ${JSON.stringify(content)}: ${reply}`] : lines
  } finally {
    smtp.close()
  }
}

/** Fields whose values are different by their nature. */
const GENERATED = /^(?:Received|Message-Id|Date|Delivered-To|X-Original-To):/i

/** Fields that Postfix rewrites as those of local mail although XCLIENT named another client. */
const OF_OTHERS = /^(?:From|To):/i

/** A delivery, one line for each recipient. Of notices, the recipient only. */
function delivered({ sender, recipients, content }: ReceivedMail): readonly string[] {
  const text = content.toString('latin1').replaceAll('\r\n', '\n')
  const [head = ''] = text.split('\n\n', 1)
  const isOfOthers = /^Subject: (?!127\.)\d+\./m.test(head)
  const fields = head.split(/\n(?![ \t])/).filter((field) => !GENERATED.test(field) && !(isOfOthers && OF_OTHERS.test(field)))
  const isNotice = sender === '' && /MAILER-DAEMON/i.test(head)
  return recipients.map((recipient) => `mail from <${sender}> to <${recipient}>: ${isNotice ? 'notice' : fields.join(' | ')}`)
}

/** Resolves when a count has not changed for a time, and is not below `least`. */
async function quiet(count: () => number, least: number): Promise<void> {
  const begun = Date.now()
  let [last, since] = [-1, begun]
  while (Date.now() - begun < 15_000 && (Date.now() - since < 1500 || (count() < least && Date.now() - begun < 8000))) {
    if (count() !== last) [last, since] = [count(), Date.now()]
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
