import { chmodSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { defaultConfig } from '../../src/config/load.ts'
import type { Config } from '../../src/config/options.ts'
import { Acceptor } from '../../src/queue/accept.ts'
import { leaveMail, Maildrop, prepareMaildrop } from '../../src/queue/maildrop.ts'
import { startSmtpd, type Smtpd } from '../../src/smtpd/server.ts'
import { systemClock } from '../../src/system/clock.ts'
import { SystemNet } from '../../src/system/net.ts'
import { systemRandom } from '../../src/system/random.ts'
import { Events, type QueueEvent } from '../../src/telemetry/events.ts'
import { headerFields, headerRecipients, normalizeInput } from '../../src/cli/submission.ts'
import { Operator, type Ran, type Terminal } from '../support/operator.ts'
import { RecordingIntake, type Taken } from '../support/reception.ts'

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

/** The SMTP side of a daemon on a real port; says where it listens. */
async function daemon(settings: Partial<Config> = {}): Promise<string> {
  const parts = {
    config: { ...config, ...settings, smtpd_listen: ['127.0.0.1:0'] },
    net: new SystemNet(),
    clock: systemClock,
    random: systemRandom,
  }
  smtpd = await startSmtpd({ ...parts, events: events(), acceptor: acceptor(), intake })
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

  test('-t takes the recipients of the header beside those named, and Bcc does not leave', async () => {
    const header =
      'From: a@us.example\nTo: "Ann, A." <ann@far.example>,\n bob@far.example\nCc: Group: eve@far.example;\nBcc: secret@far.example\nSubject: x\n\nhi\n'
    const message = await taken(['-t', '-i', 'also@far.example'], header)
    expect(addresses(message).toSorted()).toEqual(
      ['also@far.example', 'ann@far.example', 'bob@far.example', 'eve@far.example', 'secret@far.example'].toSorted(),
    )
    expect(message.original).not.toContain('secret')
  })

  test('the sender is the user who calls, unless said otherwise; <> is the null sender', async () => {
    expect((await taken(['ann@far.example'], 'x: y\n\nz\n')).message.sender).toBe('operator@relay.example')
    expect((await taken(['-f', '<>', 'ann@far.example'], 'x: y\n\nz\n')).message.sender).toBe('operator@relay.example')
    expect(intake.taken.at(-1)?.message.sender).toBe('')
  })

  test('a full name goes into a From field that is missing', async () => {
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

  test('asks for reports with -N, -R and -V', async () => {
    const { message, recipients } = await taken(['-N', 'success,failure', '-R', 'hdrs', '-V', 'id-1', 'ann@far.example'], 'a: b\n\nc\n')
    expect(message).toMatchObject({ ret: 'hdrs', envid: 'id-1' })
    expect(recipients[0]?.notify).toEqual(['success', 'failure'])
  })

  test('a refusal for good is told', async () => {
    intake.refusing = { code: 554, status: '5.7.1', text: 'No' }
    const { code, err } = await send(await daemon(), ['ann@far.example'], 'a: b\n\nc\n')
    expect([code, err]).toEqual([69, 'deferd: 554 5.7.1 No\n'])
  })

  test('an address that is none is told with 65, when the others have been served', async () => {
    const bad = ['foo@bad..example', 'x y@far.example', 'x'.repeat(70) + '@far.example']
    const { code, err } = await send(await daemon(), [...bad, 'ann@far.example'], 'a: b\n\nc\n')
    expect(code).toBe(65)
    expect(err.match(/^deferd: bad recipient address syntax: .*$/gm)).toHaveLength(3)
    expect(intake.taken.map(({ recipients }) => recipients.map(({ address }) => address))).toEqual([['ann@far.example']])
    expect(await send(NOBODY_LISTENS, ['-f', 'a b', 'ann@far.example'], 'a: b\n\nc\n')).toMatchObject({ code: 65 })
  })

  test('who is refused for now finds the message in the maildrop', async () => {
    await prepareMaildrop(operator.directory)
    const listen = await daemon({ smtpd_recipient_limit: 1 })
    expect(await send(listen, ['-N', 'never', 'ann@far.example', 'bob@far.example'], 'a: b\n\nc\n')).toMatchObject({ code: 0, err: '' })
    expect(await new Maildrop({ queueDirectory: operator.directory, acceptor: acceptor(), events: events() }).takeIn()).toBe(1)
    expect(intake.taken.map(({ recipients }) => recipients)).toMatchObject([
      [{ address: 'ann@far.example', notify: 'never' }],
      [{ address: 'bob@far.example', notify: 'never' }],
    ])
  })

  test('who alone is refused for good is told, when the others have been served', async () => {
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

  async function takeIn(): Promise<number> {
    return new Maildrop({ queueDirectory: operator.directory, acceptor: acceptor(), events: events() }).takeIn()
  }

  beforeEach(() => prepareMaildrop(operator.directory))

  test('anybody may leave mail there, nobody may look', () => {
    expect(statSync(drop()).mode & 0o7777).toBe(0o1733)
    expect(statSync(operator.directory).mode & 0o777).toBe(0o711)
  })

  test('leaves the mail for the next start, which takes it in once', async () => {
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

  test('also while the daemon answers with a temporary failure, or not at all', async () => {
    intake.refusing = { code: 452, status: '4.3.1', text: 'Insufficient system storage' }
    expect((await send(await daemon(), ['ann@far.example'], 'a: b\n\nc\n')).code).toBe(0)
    expect(readdirSync(drop())).toHaveLength(1)
    // Mail that must wait stays where it is.
    intake.ill = true
    expect(await takeIn()).toBe(0)
    intake.ill = false
    expect(await takeIn()).toBe(1)
  })

  test('a daemon that hangs up is no answer', async () => {
    const server = createServer((socket) => socket.destroy())
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const address = server.address()
    const port = typeof address === 'object' && address !== null ? address.port : 0
    expect((await send(`127.0.0.1:${port}`, ['ann@far.example'], 'a: b\n\nc\n')).code).toBe(0)
    server.close()
    expect(readdirSync(drop())).toHaveLength(1)
  })

  test('what is still being written is left alone', async () => {
    await leaveMail(operator.directory, 'a', { sender: '', recipients: [{ address: 'ann@far.example' }] }, Buffer.from('a: b\r\n'))
    chmodSync(join(drop(), 'a'), 0o600)
    expect(await takeIn()).toBe(0)
    expect(readdirSync(drop())).toEqual(['a'])
  })

  test.each([
    ['no envelope', (path: string) => writeFileSync(path, 'hello\nworld', { mode: 0o644 })],
    ['no line at all', (path: string) => writeFileSync(path, 'hello', { mode: 0o644 })],
    [
      'a content that was cut off',
      (path: string) =>
        writeFileSync(path, '{"version":1,"sender":"","recipients":[{"address":"a@b"}],"length":9}\nshort', { mode: 0o644 }),
    ],
    ['a link to somebody’s file', (path: string) => symlinkSync('/etc/hosts', path)],
  ])('%s is put aside with a warning, and the rest goes on', async (_what, leave) => {
    leave(join(drop(), '1'))
    await leaveMail(operator.directory, '2', { sender: '', recipients: [{ address: 'ann@far.example' }] }, Buffer.from('a: b\r\n\r\nc\r\n'))
    expect(await takeIn()).toBe(1)
    expect(readdirSync(drop())).toEqual(['1.refused'])
    expect(seen).toEqual([
      expect.objectContaining({ kind: 'note', level: 'warning', text: expect.stringContaining('maildrop/1: refused') as string }),
    ])
    expect(await takeIn()).toBe(0)
  })

  test('check 117: without a maildrop 69, with one that takes nothing 75', async () => {
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

  test('check 117: without recipients 64', async () => {
    expect(await run()).toMatchObject({ code: 64, err: 'deferd: sendmail: fatal: no recipient addresses\n' })
    expect(await send(NOBODY_LISTENS, ['-t'], 'Subject: nobody\n\nx\n')).toMatchObject({ code: 64 })
  })

  test.each([[['-n', 'a']], [['-R', 'some', 'a']], [['-B', '9BIT', 'a']], [['-bv', 'a']], [['-f']]])('%j is wrong usage', async (argv) => {
    expect((await run(...argv)).code).toBe(64)
  })

  test.each([[['-bh']], [['-bH']], [['-bi']], [['-q15m']], [['-oi', '-oem', '-O', 'x=y', '-G', '-U', '-A', 'c', '-t']]])(
    '%j is fine',
    async (argv) => {
      expect(await run(...argv)).toMatchObject({ code: 0, err: '' })
    },
  )

  test('-bp and mailq list, -q flushes', async () => {
    expect((await run('-bp')).out).toBe('Mail queue is empty\n')
    expect((await operator.run([], { calledAs: 'mailq' })).out).toBe('Mail queue is empty\n')
    expect((await run('-q')).code).toBe(0)
    expect((await run('-qInonsense')).code).toBe(0)
    expect((await run('-qRfar.example')).code).toBe(0)
  })

  test('unusable -N and -V only warn', async () => {
    const { code, err } = await run('-N', 'sometimes', '-V', 'x'.repeat(101), 'ann@far.example')
    expect([code, err.split('\n').map((line) => line.slice(0, 27))]).toEqual([
      0,
      ['sendmail: warning: bad -N o', 'sendmail: warning: ignoring', ''],
    ])
  })

  test('-bs speaks with the daemon', async () => {
    const { out } = await send(await daemon(), ['-bs'], 'QUIT\r\n')
    expect(out).toMatch(/^220 relay\.example ESMTP Deferd\r\n221 2\.0\.0 Bye\r\n$/)
  })

  test('-bs takes a script that says everything at once', async () => {
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
  test('a line with a dot ends it, unless -i; CR before LF and From_ lines go', () => {
    expect(normalizeInput('From ann Fri\n>From bob\na: b\r\n\r\nx\n.\ny\n', true)).toBe('a: b\r\n\r\nx\r\n')
    expect(normalizeInput('a\n.\nFrom b\n', false)).toBe('a\r\n.\r\nFrom b\r\n')
    expect(normalizeInput('no end', false)).toBe('no end\r\n')
    expect(normalizeInput('', true)).toBe('')
  })

  test('Resent- fields count alone when there are any', () => {
    const fields = headerFields('To: a@x\r\nResent-To: b@x\r\nResent-Cc: c@x\r\n\r\nTo: d@x\r\n')
    expect(headerRecipients(fields)).toEqual(['b@x', 'c@x'])
  })
})
