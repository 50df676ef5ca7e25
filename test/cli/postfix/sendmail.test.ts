import { readdirSync, statSync, writeFileSync } from 'node:fs'
import * as files from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { defaultConfig } from '../../../src/config/load.ts'
import type { Config } from '../../../src/config/options.ts'
import { Acceptor } from '../../../src/queue/intake/acceptor.ts'
import { Maildrop } from '../../../src/queue/intake/maildrop.ts'
import { prepareMaildrop } from '../../../src/queue/intake/maildrop-writer.ts'
import { openAccess } from '../../../src/access/access-tables.ts'
import { startSmtpd, type Smtpd } from '../../../src/smtpd/server.ts'
import { systemClock } from '../../../src/system/system-clock.ts'
import { SystemNet } from '../../../src/system/system-net.ts'
import { systemRandom } from '../../../src/system/system-random.ts'
import { Events, type QueueEvent } from '../../../src/telemetry/events.ts'
import { normalizeInput, recipientFields } from '../../../src/cli/postfix/sendmail-input.ts'
import { fieldsOf } from '../../../src/mail/headers.ts'
import { maildropEnvelopes } from '../../support/maildrop-files.ts'
import { Operator, type Ran, type Terminal } from '../../support/operator.ts'
import { RecordingIntake, type Taken } from '../../support/smtpd-harness.ts'

let operator: Operator
let intake: RecordingIntake
let smtpd: Smtpd | undefined
const seen: QueueEvent[] = []

beforeEach(() => {
  operator = new Operator()
  intake = new RecordingIntake(() => systemClock.now())
  seen.length = 0
})
afterEach(async () => {
  await smtpd?.close(0)
  smtpd = undefined
  operator.leave()
})

const NOBODY_LISTENS = '127.0.0.1:1'

function events(): Events {
  const made = new Events(() => systemClock.now())
  made.listen((event) => seen.push(event))
  return made
}

const config = defaultConfig('relay.example').config
const acceptor = () => new Acceptor({ intake, config, clock: systemClock, events: events() })

/** Passes over the maildrop once. */
const takeIn = (): Promise<number> =>
  new Maildrop({
    queueDirectory: operator.directory,
    files,
    acceptor: acceptor(),
    refusal: async () => undefined,
    sizeLimit: () => 0,
    returnToSender: async () => undefined,
    store: { maildropFiles: async () => [], forgetMaildropFiles: async () => undefined },
    clock: systemClock,
    events: events(),
  }).takeIn()

/** The SMTP side of a daemon on a real port; returns its address. */
async function daemon(settings: Partial<Config> = {}): Promise<string> {
  const parts = {
    config: { ...config, ...settings, smtpd_listen: ['127.0.0.1:0'] },
    net: new SystemNet(),
    clock: systemClock,
    random: systemRandom,
  }
  const access = openAccess(parts.config).access
  const deadEnds = { refusalOf: async () => undefined }
  smtpd = await startSmtpd({ ...parts, events: events(), acceptor: acceptor(), intake, flushDomain: () => false, access, deadEnds })
  return `127.0.0.1:${smtpd.listeners[0]?.port}`
}

const send = (listen: string, argv: readonly string[], stdin: string | Uint8Array, more: Terminal = {}): Promise<Ran> =>
  operator.run(['sendmail', ...argv], { stdin, ...more, env: { DEFERD_SMTPD_LISTEN: listen, ...more.env } })

async function taken(argv: readonly string[], stdin: string | Uint8Array): Promise<Taken> {
  expect(await send(await daemon(), argv, stdin)).toMatchObject({ code: 0, err: '' })
  const [message] = intake.taken
  if (message === undefined) throw new Error('nothing was taken')
  return message
}

const addresses = (message: Taken) => message.recipients.map(({ address }) => address)

describe('sendmail with a daemon', () => {
  test('sends what it reads to the recipients named', async () => {
    const message = await taken(['-f', 'App@US.Example', 'ann@far.example', 'root'], 'Subject: hi\n\nIt works.\n')
    expect(message.message.sender).toBe('App@us.example')
    expect(addresses(message)).toEqual(['ann@far.example', 'root@relay.example'])
    expect(message.original).toMatch(/^From: App@us\.example\r\nSubject: hi\r\n[^]*\r\n\r\nIt works\.\r\n$/)
  })

  test('-v prints the queue id, or that the mail waits in the maildrop', async () => {
    const sent = await send(await daemon(), ['-v', 'ann@far.example'], 'x')
    expect(sent).toMatchObject({ code: 0, out: expect.stringMatching(/^queued as \w+\n$/) as string })
    await prepareMaildrop(operator.directory)
    expect((await send(NOBODY_LISTENS, ['-v', 'ann@far.example'], 'x')).out).toBe(
      'stored in the maildrop; the daemon assigns the queue id\n',
    )
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
    expect((await taken(['-f', '<>', 'ann@far.example'], 'x: y\n\nz\n')).message.sender).toBe('operator@relay.example')
    expect(intake.taken.at(-1)?.message.sender).toBe('')
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

  test('requests DSNs with -N, -R and -V', async () => {
    const { message, recipients } = await taken(['-N', 'success,failure', '-R', 'hdrs', '-V', 'id-1', 'ann@far.example'], 'a: b\n\nc\n')
    expect(message).toMatchObject({ ret: 'hdrs', envid: 'id-1' })
    expect(recipients[0]?.notify).toEqual(['success', 'failure'])
  })

  test('a 5xx reply is reported', async () => {
    intake.refusing = { code: 554, status: '5.7.1', text: 'No' }
    const { code, err } = await send(await daemon(), ['ann@far.example'], 'a: b\n\nc\n')
    expect([code, err]).toEqual([69, 'deferd: 554 5.7.1 No\n'])
  })

  test('an invalid address exits with 65, and nothing is sent', async () => {
    const bad = ['foo@bad..example', '<x y@far.example>', 'x@[192.0.2.256]']
    const { code, err } = await send(await daemon(), [...bad, 'ann@far.example'], 'a: b\n\nc\n')
    expect(code).toBe(65)
    expect(err.match(/^deferd: sendmail: fatal: bad recipient address syntax: .*$/gm)).toHaveLength(3)
    expect(intake.taken).toEqual([])
    expect(await send(NOBODY_LISTENS, ['-f', 'a b', 'ann@far.example'], 'a: b\n\nc\n')).toMatchObject({ code: 65 })
  })

  test('a message refused with 4xx is stored in the maildrop', async () => {
    await prepareMaildrop(operator.directory)
    const listen = await daemon({ smtpd_recipient_limit: 1 })
    expect(await send(listen, ['-N', 'never', 'ann@far.example', 'bob@far.example'], 'a: b\n\nc\n')).toMatchObject({ code: 0, err: '' })
    expect(await takeIn()).toBe(1)
    expect(intake.taken.map(({ recipients }) => recipients)).toMatchObject([
      [{ address: 'ann@far.example', notify: 'never' }],
      [{ address: 'bob@far.example', notify: 'never' }],
    ])
  })

  test('a recipient refused with 5xx is reported after the others were sent', async () => {
    const server = createServer((socket) => {
      const answer = (line: string) =>
        line === 'RCPT TO:<bob@far.example>'
          ? '550 5.1.1 Nobody here'
          : line === 'DATA'
            ? '354 Go on'
            : line === 'QUIT'
              ? '221 Bye'
              : '250 Ok'
      socket.write('220 relay.example ESMTP\r\n')
      socket.on('data', (chunk: Buffer) => {
        for (const line of chunk.toString().match(/^(?:EHLO|MAIL|RCPT|DATA|QUIT|\.$).*$/gm) ?? [])
          socket.write(`${answer(line.trim())}\r\n`)
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const address = server.address()
    const port = typeof address === 'object' && address !== null ? address.port : 0
    expect(await send(`127.0.0.1:${port}`, ['ann@far.example', 'bob@far.example'], 'a: b\n\nc\n')).toMatchObject({
      code: 69,
      err: 'deferd: bob@far.example: 550 5.1.1 Nobody here\n',
    })
    server.close()
  })
})

describe('sendmail without a daemon', () => {
  const drop = () => join(operator.directory, 'maildrop')

  beforeEach(() => prepareMaildrop(operator.directory))

  test('the maildrop is writable for all users and readable for none', () => {
    expect(statSync(drop()).mode & 0o7777).toBe(0o1733)
    expect(statSync(operator.directory).mode & 0o777).toBe(0o711)
  })

  test('stores the mail for the next start, which queues it once', async () => {
    expect(await send(NOBODY_LISTENS, ['-f', 'app@us.example', '-N', 'never', 'ann@far.example'], 'Subject: hi\n\nbody\n')).toMatchObject({
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

  test('also while the daemon replies with a temporary failure, or not at all', async () => {
    intake.refusing = { code: 452, status: '4.3.1', text: 'Insufficient system storage' }
    expect((await send(await daemon(), ['ann@far.example'], 'a: b\n\nc\n')).code).toBe(0)
    expect(readdirSync(drop())).toHaveLength(1)
    // Mail that must wait stays where it is.
    intake.unavailable = true
    expect(await takeIn()).toBe(0)
    intake.unavailable = false
    expect(await takeIn()).toBe(1)
  })

  test('a daemon that disconnects counts as no reply', async () => {
    const server = createServer((socket) => socket.destroy())
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const address = server.address()
    const port = typeof address === 'object' && address !== null ? address.port : 0
    expect((await send(`127.0.0.1:${port}`, ['ann@far.example'], 'a: b\n\nc\n')).code).toBe(0)
    server.close()
    expect(readdirSync(drop())).toHaveLength(1)
  })

  test('more recipients than a file may have are divided among files', async () => {
    const to = Array.from({ length: 2_500 }, (_, i) => `r${i}@far.example`)
    expect(await send(NOBODY_LISTENS, ['-t'], `To: ${to.join(',\n ')}\n\nhi\n`)).toMatchObject({ code: 0, err: '' })
    const parts = maildropEnvelopes(operator.directory).map(({ recipients }) => recipients.map(({ address }) => address))
    expect(parts.every((recipients) => recipients.length <= 1_000)).toBe(true)
    expect(parts.flat().toSorted()).toEqual(to.toSorted())
    expect(await takeIn()).toBe(parts.length)
    expect(readdirSync(drop())).toEqual([])
  })

  test('a stray CR becomes a blank; NUL characters are refused with 65', async () => {
    expect((await send(NOBODY_LISTENS, ['ann@far.example'], 'a: b\r\n\r\nx\ry\r\r\n')).code).toBe(0)
    expect(await takeIn()).toBe(1)
    expect(intake.taken[0]?.text.endsWith('\r\n\r\nx y \r\n')).toBe(true)
    expect(await send(NOBODY_LISTENS, ['ann@far.example'], 'a: b\n\nx\0y\n')).toMatchObject({ code: 65 })
    expect(readdirSync(drop())).toEqual([])
  })

  test('without a maildrop 69, with an unwritable one 75', async () => {
    const nowhere = { env: { DEFERD_QUEUE_DIRECTORY: join(operator.directory, 'nowhere') } }
    expect(await send(NOBODY_LISTENS, ['ann@far.example'], 'a: b\n\nc\n', nowhere)).toMatchObject({ code: 69 })
    writeFileSync(join(operator.directory, 'file'), '')
    const broken = { env: { DEFERD_QUEUE_DIRECTORY: join(operator.directory, 'file') } }
    const { code, err } = await send(NOBODY_LISTENS, ['ann@far.example'], 'a: b\n\nc\n', broken)
    expect([code, err.startsWith('deferd: cannot queue mail: ')]).toEqual([75, true])
  })

  test('a message beyond the limit is refused', async () => {
    const limit = { env: { DEFERD_MESSAGE_SIZE_LIMIT: '100' } }
    expect(await send(NOBODY_LISTENS, ['ann@far.example'], `a: b\n\n${'c'.repeat(100)}\n`, limit)).toMatchObject({ code: 69 })
    expect(readdirSync(drop())).toEqual([])
  })
})

describe('options of sendmail', () => {
  beforeEach(() => operator.own(() => prepareMaildrop(operator.directory)))
  const run = (...argv: readonly string[]) => send(NOBODY_LISTENS, argv, 'To: ann@far.example\n\nx\n')

  test('without recipients 64', async () => {
    expect(await run()).toMatchObject({ code: 64, err: 'deferd: sendmail: fatal: no recipient addresses\n' })
    expect(await send(NOBODY_LISTENS, ['-t'], 'Subject: nobody\n\nx\n')).toMatchObject({ code: 64 })
  })

  test.each([[['-n', 'a']], [['-R', 'some', 'a']], [['-B', '9BIT', 'a']], [['-bv', 'a']], [['-f']]])(
    '%j is a usage error',
    async (argv) => {
      expect((await run(...argv)).code).toBe(64)
    },
  )

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
    expect((await run('-qRfar.example')).code).toBe(0)
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

  test('-bs connects to the daemon', async () => {
    const { out } = await send(await daemon(), ['-bs'], 'QUIT\r\n')
    expect(out).toMatch(/^220 relay\.example ESMTP Deferd\r\n221 2\.0\.0 Bye\r\n$/)
  })

  test('-bs accepts a script that sends everything at once', async () => {
    const script = 'EHLO x\nMAIL FROM:<a@us.example>\nRCPT TO:<ann@far.example>\nDATA\nSubject: x\n\n..y\n.\nQUIT\n'
    const { out, code } = await send(await daemon(), ['-bs'], script.replaceAll('\n', '\r\n'))
    expect([
      code,
      out
        .split('\r\n')
        .slice(-4)
        .map((line) => line.slice(0, 3)),
    ]).toEqual([0, ['354', '250', '221', '']])
    expect(intake.taken[0]?.text).toContain('\r\n\r\n.y\r\n')
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
