import { readdirSync, renameSync, statSync, writeFileSync } from 'node:fs'
import * as files from 'node:fs/promises'
import { createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { defaultConfig } from '../../../src/config/load.ts'
import { Acceptor } from '../../../src/queue/intake/acceptor.ts'
import { Maildrop } from '../../../src/queue/intake/maildrop.ts'
import { prepareMaildrop } from '../../../src/queue/intake/maildrop-writer.ts'
import { systemClock } from '../../../src/system/system-clock.ts'
import { realClock } from '../../support/real-clock.ts'
import { Events, type QueueEvent } from '../../../src/telemetry/events.ts'
import { normalizeInput, recipientFields } from '../../../src/cli/postfix/sendmail-input.ts'
import { fieldsOf } from '../../../src/mail/headers.ts'
import { maildropEnvelopes } from '../../support/maildrop-files.ts'
import { NOW, Operator, type Ran, type Terminal } from '../../support/operator.ts'
import { RecordingIntake, type Taken } from '../../support/smtpd-harness.ts'

let operator: Operator
let intake: RecordingIntake
const servers: Server[] = []
const seen: QueueEvent[] = []

beforeEach(async () => {
  operator = new Operator()
  intake = new RecordingIntake(() => systemClock.now())
  seen.length = 0
  await prepareMaildrop(operator.directory)
})
afterEach(() => {
  for (const server of servers.splice(0)) server.close()
  operator.leave()
})

const drop = () => join(operator.directory, 'maildrop')

function events(): Events {
  const made = new Events(() => systemClock.now())
  made.listen((event) => seen.push(event))
  return made
}

const config = defaultConfig('relay.example').config

/** Passes over the maildrop once, as the daemon does. */
const takeIn = (): Promise<number> =>
  new Maildrop({
    queueDirectory: operator.directory,
    files,
    acceptor: new Acceptor({ intake, config, clock: realClock, events: events() }),
    refusal: async () => undefined,
    sizeLimit: () => 0,
    returnToSender: async () => undefined,
    store: { maildropFiles: async () => [], forgetMaildropFiles: async () => undefined },
    clock: realClock,
    events: events(),
  }).takeIn()

const send = (argv: readonly string[], stdin: string | Uint8Array, more: Terminal = {}): Promise<Ran> =>
  operator.run(['sendmail', ...argv], { stdin, ...more })

async function taken(argv: readonly string[], stdin: string | Uint8Array): Promise<Taken> {
  expect(await send(argv, stdin)).toMatchObject({ code: 0, out: '', err: '' })
  expect(await takeIn()).toBe(1)
  const message = intake.taken.at(-1)
  if (message === undefined) throw new Error('nothing was taken')
  return message
}

const addresses = (message: Taken) => message.recipients.map(({ address }) => address)

describe('sendmail', () => {
  test('sends what it reads to the recipients named', async () => {
    const message = await taken(['-f', 'App@US.Example', 'ann@far.example', 'root'], 'Subject: hi\n\nIt works.\n')
    expect(message.message.sender).toBe('App@us.example')
    expect(addresses(message)).toEqual(['ann@far.example', 'root@relay.example'])
    expect(message.original).toMatch(/^From: App@us\.example\r\nSubject: hi\r\n[^]*\r\n\r\nIt works\.\r\n$/)
  })

  test('-t adds the recipients of the header, and Bcc is removed', async () => {
    const header =
      'From: a@us.example\nTo: "Ann, A." <ann@far.example>,\n bob@far.example\nCc: Group: eve@far.example;\nBcc: secret@far.example\nSubject: x\n\nhi\n'
    const message = await taken(['-t', '-i', 'also@far.example'], header)
    expect(addresses(message).toSorted()).toEqual(
      ['also@far.example', 'ann@far.example', 'bob@far.example', 'eve@far.example', 'secret@far.example'].toSorted(),
    )
    expect(message.original).not.toContain('secret')
  })

  test('the sender is the calling user unless given; <> is the null sender', async () => {
    expect((await taken(['ann@far.example'], 'x: y\n\nz\n')).message.sender).toBe('operator@relay.example')
    expect((await taken(['-f', '<>', 'ann@far.example'], 'x: y\n\nz\n')).message.sender).toBe('')
  })

  test('the full name is used in an added From field', async () => {
    const message = await taken(['-F', 'Ann "A" Example', '-f', 'ann@us.example', 'bob@far.example'], 'Subject: x\n\ny\n')
    expect(message.original).toContain('From: "Ann \\"A\\" Example" <ann@us.example>\r\n')
  })

  test('any bytes but NUL pass unchanged', async () => {
    const bytes = Buffer.from([
      ...Buffer.from('Subject: x\n\n'),
      ...Array.from({ length: 255 }, (_, i) => (i === 9 || i === 12 ? 65 : i + 1)),
      10,
    ])
    const message = await taken(['ann@far.example'], bytes)
    expect(message.text.endsWith(bytes.subarray(12, -1).toString('latin1') + '\r\n')).toBe(true)
  })

  test('-O maximum_attempts limits the attempts of the message', async () => {
    const { message } = await taken(['-O', 'maximum_attempts=3', 'ann@far.example'], 'a: b\n\nc\n')
    expect(message).toMatchObject({ maxAttempts: 3 })
    for (const wrong of ['0', '1.5', 'many', ''])
      expect(await send(['-O', `maximum_attempts=${wrong}`, 'ann@far.example'], 'a: b\n\nc\n')).toMatchObject({ code: 64 })
  })

  test('requests DSNs with -N, -R and -V', async () => {
    const { message, recipients } = await taken(['-N', 'success,failure', '-R', 'hdrs', '-V', 'id-1', 'ann@far.example'], 'a: b\n\nc\n')
    expect(message).toMatchObject({ ret: 'hdrs', envid: 'id-1' })
    expect(recipients[0]?.notify).toEqual(['success', 'failure'])
  })

  test('an invalid address exits with 65, and nothing is sent', async () => {
    const bad = ['foo@bad..example', '<x y@far.example>', 'x@[192.0.2.256]']
    const { code, err } = await send([...bad, 'ann@far.example'], 'a: b\n\nc\n')
    expect(code).toBe(65)
    expect(err.match(/^deferd: sendmail: fatal: bad recipient address syntax: .*$/gm)).toHaveLength(3)
    expect(readdirSync(drop())).toEqual([])
    expect(await send(['-f', 'a b', 'ann@far.example'], 'a: b\n\nc\n')).toMatchObject({ code: 65 })
  })

  test('the maildrop is writable for all users and readable for none', () => {
    expect(statSync(drop()).mode & 0o7777).toBe(0o1733)
    expect(statSync(operator.directory).mode & 0o777).toBe(0o711)
  })

  test('stores the mail for the next start, which queues it once', async () => {
    expect(await send(['-f', 'app@us.example', '-N', 'never', 'ann@far.example'], 'Subject: hi\n\nbody\n')).toMatchObject({
      code: 0,
      out: '',
      err: '',
    })
    expect(readdirSync(drop())).toHaveLength(1)
    expect(await takeIn()).toBe(1)
    const [message] = intake.taken
    expect(message).toMatchObject({ uid: process.getuid?.(), client: null, recipients: [{ address: 'ann@far.example', notify: 'never' }] })
    expect(message?.original).toContain('From: app@us.example\r\nSubject: hi\r\n')
    expect(message?.text).toMatch(/^Received: by relay\.example \(Deferd, from userid \d+\)\r\n/)
    expect(readdirSync(drop())).toEqual([])
    expect(await takeIn()).toBe(0)
  })

  test('mail that cannot be queued now stays in the maildrop', async () => {
    expect((await send(['ann@far.example'], 'a: b\n\nc\n')).code).toBe(0)
    intake.unavailable = true
    expect(await takeIn()).toBe(0)
    intake.unavailable = false
    expect(await takeIn()).toBe(1)
  })

  test('more recipients than a file may have are divided among files', async () => {
    const to = Array.from({ length: 2_500 }, (_, i) => `r${i}@far.example`)
    expect(await send(['-t'], `To: ${to.join(',\n ')}\n\nhi\n`)).toMatchObject({ code: 0, err: '' })
    const parts = maildropEnvelopes(operator.directory).map(({ recipients }) => recipients.map(({ address }) => address))
    expect(parts.every((recipients) => recipients.length <= 1_000)).toBe(true)
    expect(parts.flat().toSorted()).toEqual(to.toSorted())
    expect(await takeIn()).toBe(parts.length)
    expect(readdirSync(drop())).toEqual([])
  })

  test('a stray CR becomes a blank; NUL characters are refused with 65', async () => {
    expect((await send(['ann@far.example'], 'a: b\r\n\r\nx\ry\r\r\n')).code).toBe(0)
    expect(await takeIn()).toBe(1)
    expect(intake.taken[0]?.text.endsWith('\r\n\r\nx y \r\n')).toBe(true)
    expect(await send(['ann@far.example'], 'a: b\n\nx\0y\n')).toMatchObject({ code: 65 })
    expect(readdirSync(drop())).toEqual([])
  })

  test('without a maildrop 69, with an unwritable one 75', async () => {
    const nowhere = { env: { DEFERD_QUEUE_DIRECTORY: join(operator.directory, 'nowhere') } }
    expect(await send(['ann@far.example'], 'a: b\n\nc\n', nowhere)).toMatchObject({ code: 69 })
    writeFileSync(join(operator.directory, 'file'), '')
    const broken = { env: { DEFERD_QUEUE_DIRECTORY: join(operator.directory, 'file') } }
    const { code, err } = await send(['ann@far.example'], 'a: b\n\nc\n', broken)
    expect([code, err.startsWith('deferd: cannot queue mail: ')]).toEqual([75, true])
  })

  test('a message beyond the limit is refused', async () => {
    const limit = { env: { DEFERD_MESSAGE_SIZE_LIMIT: '100' } }
    expect(await send(['ann@far.example'], `a: b\n\n${'c'.repeat(100)}\n`, limit)).toMatchObject({ code: 69 })
    expect(readdirSync(drop())).toEqual([])
  })
})

describe('-v', () => {
  /** A socket at the place of the daemon's, with this server. */
  async function socket(server: Server): Promise<string> {
    const path = join(operator.directory, 'pickup.sock')
    await new Promise<void>((resolve) => servers[servers.push(server) - 1]?.listen(path, resolve))
    return path
  }

  const verbose = (more: Terminal = {}) => send(['-v', 'ann@far.example'], 'x', more)

  test('prints that no daemon runs: none since the last stop, none since a kill', async () => {
    const out = 'stored in the maildrop; no daemon runs, and the next one assigns the queue id\n'
    expect(await verbose({ clock: systemClock })).toMatchObject({ code: 0, out })
    // A killed daemon leaves its socket, to which no connection is made.
    const path = await socket(createServer())
    renameSync(path, join(operator.directory, 'kept'))
    servers.pop()?.close()
    renameSync(join(operator.directory, 'kept'), path)
    expect(await verbose()).toMatchObject({ code: 0, out })
  })

  test('prints that no id came within ten seconds', async () => {
    let connections = 0
    await socket(createServer((one) => void (connections++, one.on('error', () => undefined))))
    const sent = verbose()
    await expect.poll(() => connections).toBe(1)
    while (operator.clock.runNext());
    expect(await sent).toMatchObject({
      code: 0,
      out: 'stored in the maildrop; the daemon has not assigned a queue id within 10 seconds\n',
    })
    expect(operator.clock.now() - NOW).toBe(10_000)
  })

  test('asks again after the daemon has closed the connection', async () => {
    let connections = 0
    const server = createServer((one) => {
      one.on('error', () => undefined)
      if (++connections === 1) one.destroy()
      else one.on('data', () => void one.write('queued as 4jYFTw6HfSz1\u001b[2J\n'))
    })
    await socket(server)
    expect(await verbose({ clock: systemClock })).toMatchObject({ code: 0, out: 'queued as 4jYFTw6HfSz1?[2J\n' })
  })
})

describe('options of sendmail', () => {
  beforeEach(() => operator.own(async () => undefined))
  const run = (...argv: readonly string[]) => send(argv, 'To: ann@far.example\n\nx\n')

  test('without recipients 64', async () => {
    expect(await run()).toMatchObject({ code: 64, err: 'deferd: sendmail: fatal: no recipient addresses\n' })
    expect(await send(['-t'], 'Subject: nobody\n\nx\n')).toMatchObject({ code: 64 })
  })

  test.each([[['-n', 'a']], [['-R', 'some', 'a']], [['-B', '9BIT', 'a']], [['-f']], [['-Xlog', 'a']]])(
    '%j is a usage error',
    async (argv) => {
      expect((await run(...argv)).code).toBe(64)
    },
  )

  test.each([
    ['-XV', '-XV (VERP) is not supported: give each recipient a message with its own sender (-f)'],
    ['-XV+=', '-XV+= (VERP) is not supported: give each recipient a message with its own sender (-f)'],
    ['-Xlog', 'unsupported: -Xlog'],
    [
      '-bv',
      '-bv is not supported: see the route of an address with "deferd check domain DOMAIN", and its rewriting with "deferd map query"',
    ],
    ['-bd', '-bd is not supported: start the daemon with "deferd start"'],
    ['-bt', 'unsupported: -bt'],
  ])('%s is refused with 64 and sends nothing', async (option, reason) => {
    expect(await run(option, 'ann@far.example')).toMatchObject({ code: 64, out: '', err: `deferd: sendmail: fatal: ${reason}\n` })
    expect(readdirSync(drop())).toEqual([])
  })

  test.each([[['-bh']], [['-bH']], [['-q15m']], [['-oi', '-oem', '-O', 'x=y', '-G', '-U', '-A', 'c', '-t']]])(
    '%j is accepted',
    async (argv) => {
      expect(await run(...argv)).toMatchObject({ code: 0, err: '' })
    },
  )

  test.each([
    [['-bp', 'x'], 'display queue'],
    [['-q', 'x'], 'flush queue'],
    [['-bi', 'x'], 'alias initialization'],
    [['-bs', 'x'], 'stand-alone'],
  ])('%j is refused as in Postfix: 64', async (argv, mode) => {
    const { code, out, err } = await run(...argv)
    expect({ code, out, err }).toEqual({ code: 64, out: '', err: `deferd: sendmail: fatal: ${mode} mode requires no recipient\n` })
  })

  test('-bp and mailq list, -q flushes', async () => {
    expect((await run('-bp')).out).toBe('Mail queue is empty\n')
    expect((await operator.run([], { calledAs: 'mailq' })).out).toBe('Mail queue is empty\n')
    expect((await run('-q')).code).toBe(0)
    expect((await run('-qInonsense')).code).toBe(0)
    // As `postqueue -s`: the site is not in fast_flush_domains.
    expect((await run('-qRfar.example')).code).toBe(69)
  })

  test.each([['newaliases'], ['sendmail', '-I'], ['sendmail', '-bi']])(
    '%s %s reads the tables of alias_maps',
    async (calledAs, ...argv) => {
      const aliases = join(operator.directory, 'aliases')
      const read = () => operator.run([...argv, '-o', `alias_maps=texthash:${aliases}`], { calledAs })
      writeFileSync(aliases, 'root: ops@example.com\n')
      expect(await read()).toMatchObject({ code: 0, out: '', err: '' })
      writeFileSync(aliases, 'root: |/usr/bin/program\n')
      const { code, err } = await read()
      expect([code, err]).toEqual([78, expect.stringMatching(/^deferd: newaliases: fatal: alias_maps: .*program/)])
    },
  )

  test('invalid -N and -V only warn', async () => {
    const { code, err } = await run('-N', 'sometimes', '-V', 'x'.repeat(101), 'ann@far.example')
    expect([code, err.split('\n').map((line) => line.slice(0, 27))]).toEqual([
      0,
      ['sendmail: warning: bad -N o', 'sendmail: warning: ignoring', ''],
    ])
  })
})

describe('-bs', () => {
  const smtp = (input: string, env: Terminal['env'] = {}) => send(['-bs'], input, { env, clock: systemClock })
  const session = (...lines: readonly string[]) => smtp(lines.map((line) => `${line}\r\n`).join(''))
  const codes = (out: string) => out.split('\r\n').flatMap((line) => (/^\d{3} /.test(line) ? [line.slice(0, 3)] : []))

  test('answers until QUIT', async () => {
    expect(await session('QUIT', 'NOOP')).toMatchObject({
      code: 0,
      out: '220 relay.example ESMTP Deferd\r\n221 2.0.0 Bye\r\n',
      err: '',
    })
  })

  test.each(['\r\n', '\n'])('accepts a script that sends everything at once, with line ends %j, without a daemon', async (end) => {
    const script = [
      'EHLO x',
      'MAIL FROM:<a@us.example> RET=HDRS',
      'RCPT TO:<ann@far.example> NOTIFY=NEVER',
      'DATA',
      'Subject: x',
      '',
      '..y',
      '.',
    ]
    const { out, code } = await smtp(script.map((line) => line + end).join(''))
    expect([code, codes(out)]).toEqual([0, ['220', '250', '250', '250', '354', '250']])
    const [name = ''] = readdirSync(drop())
    expect(out).toContain(`250 2.0.0 Ok: queued as ${name}\r\n`)
    expect(await takeIn()).toBe(1)
    expect(intake.taken).toMatchObject([
      {
        uid: process.getuid?.(),
        message: { sender: 'a@us.example', ret: 'hdrs' },
        recipients: [{ address: 'ann@far.example', notify: 'never' }],
      },
    ])
    expect(intake.taken[0]?.text).toMatch(/^Received: by relay\.example \(Deferd, from userid \d+\)\r\n[^]*\r\n\r\n\.y\r\n$/)
  })

  test('asks nothing that clients of the network are asked for, and sends to any domain', async () => {
    const env = {
      DEFERD_SMTPD_LISTEN: '',
      DEFERD_MYNETWORKS: '192.0.2.0/24',
      DEFERD_SMTPD_CLIENT_RESTRICTIONS: 'reject',
      DEFERD_SMTPD_UPSTREAM_PROXY_PROTOCOL: 'haproxy',
    }
    const script =
      'HELO x\nMAIL FROM:<>\nRCPT TO:<ann@far.example>\nDATA\n\n.\nMAIL FROM:<b@us.example>\nRCPT TO:<bob@far.example>\nDATA\n\n.\n'
    const { out } = await smtp(script, env)
    expect(codes(out)).toEqual(['220', '250', '250', '250', '354', '250', '250', '250', '354', '250'])
    expect(await takeIn()).toBe(2)
  })

  test('accepts chunks', async () => {
    const { out } = await smtp('EHLO x\r\nMAIL FROM:<>\r\nRCPT TO:<a@b.example>\r\nBDAT 6\r\na: b\r\nBDAT 5 LAST\r\n\r\nc\r\nQUIT\r\n')
    expect(codes(out)).toEqual(['220', '250', '250', '250', '250', '250', '221'])
    expect(await takeIn()).toBe(1)
    expect(intake.taken[0]?.original).toContain('a: b\r\n')
  })

  test('replies 552 to a message beyond the limit, 451 when it cannot be stored, and goes on', async () => {
    const message = ['MAIL FROM:<>', 'RCPT TO:<a@b.example>', 'DATA', `a: ${'b'.repeat(200)}`, '.']
    const limit = { DEFERD_MESSAGE_SIZE_LIMIT: '100' }
    const script = ['HELO x', ...message, 'QUIT'].join('\n') + '\n'
    expect((await smtp(script, limit)).out).toMatch(/\r\n552 5\.3\.4 .*\r\n221 /)
    const nowhere = { DEFERD_QUEUE_DIRECTORY: join(operator.directory, 'nowhere') }
    const { out, err } = await smtp(script, nowhere)
    expect([out, err]).toEqual([
      expect.stringMatching(/\r\n451 4\.3\.0 .*\r\n221 /),
      expect.stringContaining('sendmail: warning: there is no maildrop in '),
    ])
    expect(readdirSync(drop())).toEqual([])
  })
})

describe('input', () => {
  test('a line with a dot ends it, unless -i; CR before LF and From_ lines are removed', () => {
    expect(normalizeInput('From ann Fri\n>From bob\na: b\r\n\r\nx\n.\ny\n', true)).toBe('a: b\r\n\r\nx\r\n')
    expect(normalizeInput('a\n.\nFrom b\n', false)).toBe('a\r\n.\r\nFrom b\r\n')
    expect(normalizeInput('no end', false)).toBe('no end\r\n')
    expect(normalizeInput('', true)).toBe('')
  })

  test('Resent- fields replace the others when there are any', () => {
    const fields = [...fieldsOf(Buffer.from('To: a@x\r\nResent-To: b@x\r\nResent-Cc: c@x\r\n\r\nTo: d@x\r\n'))]
    expect(recipientFields(fields)).toEqual(['b@x', 'c@x'])
  })
})
