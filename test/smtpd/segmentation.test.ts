/**
 * The catalogue of dangers, each whole, byte by byte and cut in two at every place: what the server says and keeps does not
 * depend on how TCP cuts what a client sends. The one thing that packets may decide is whether a client has waited for a
 * reply that it must wait for: `sync` is the place after which it has, when a cut falls there, and `patient` what it hears.
 */
import { describe, expect, test } from 'vitest'
import type { Config } from '../../src/config/options.ts'
import { openReception, OUTSIDER, type Reception } from '../support/reception.ts'
import { cutAt, segmentations } from '../support/segments.ts'

interface Row {
  readonly id: string
  /** What is sent, in pieces or whole; one character a byte. */
  readonly bytes: string
  /** All that is heard from then on; queue ids are left out. */
  readonly hears: string
  /** Lines that were said one by one before. */
  readonly before?: readonly string[]
  /** The contents that are taken. */
  readonly keeps?: readonly string[]
  readonly closed?: boolean
  readonly config?: Partial<Config>
  readonly from?: string
  readonly sync?: number
  readonly patient?: Pick<Row, 'hears' | 'keeps' | 'closed'>
  /** Where to cut what is too long to be cut everywhere. */
  readonly places?: readonly number[]
}

const GREETED = ['EHLO x']
const SENDER = [...GREETED, 'MAIL FROM:<a@b.example>']
const DATA = [...SENDER, 'RCPT TO:<ann@far.example>', 'DATA']
const QUEUED = '250 2.0.0 Ok: queued'
const OK = '250 2.0.0 Ok'
const RCPT_OK = '250 2.1.5 Ok'
const NO_COMMAND = '500 5.5.2 Error: command not recognized'
const BAD_RECIPIENT = '501 5.1.3 Bad recipient address syntax'
const OUT_OF_STEP = { hears: '554 5.5.0 Error: SMTP protocol synchronization', closed: true }
const NOT_SMTP = { hears: '221 2.7.0 Error: this is a mail server, goodbye', closed: true }
const RELAY = { relay_domains: ['far.example'] }

const said = (...lines: readonly string[]): string => lines.map((line) => `${line}\r\n`).join('')

const FRAMING: readonly Row[] = [
  {
    id: 'S01: LF.LF and commands after it',
    before: DATA,
    bytes: 'x\n.\nMAIL FROM:<e@b.example>\r\n.\r\n',
    hears: QUEUED,
    keeps: ['\r\nx\r\nMAIL FROM:<e@b.example>\r\n'],
  },
  { id: 'S10: a stuffed dot', before: DATA, bytes: '\r\n..\r\n.\r\n', hears: QUEUED, keeps: ['\r\n.\r\n'] },
  { id: 'S13: a dot that was not stuffed', before: DATA, bytes: '\r\n.a\r\n.\r\n', hears: QUEUED, keeps: ['\r\na\r\n'] },
  { id: 'S11: commands that end in LF', before: GREETED, bytes: 'MAIL FROM:<a@b.example>\nRSET\n', hears: said('250 2.1.0 Ok', OK).trim() },
  {
    id: 'S11: the same where that is forbidden',
    before: GREETED,
    config: { smtpd_forbid_bare_newline: 'reject' },
    bytes: 'MAIL FROM:<a@b.example>\nRSET\n',
    hears: '550 5.5.2 relay.example Error: bare <LF> received',
    closed: true,
  },
  {
    id: 'S14: a line of 1000 bytes',
    before: DATA,
    bytes: `\r\n${'x'.repeat(1000)}\r\n.\r\n`,
    hears: QUEUED,
    keeps: [`\r\n${'x'.repeat(1000)}\r\n`],
    places: [1, 2, 3, 999, 1000, 1001, 1002, 1003, 1004, 1005, 1006],
  },
  {
    id: 'S15: NUL in the header',
    before: DATA,
    bytes: 'S: a\0b\r\n\r\nx\r\n.\r\n',
    hears: '554 5.6.0 Error: message contains NUL characters',
  },
  { id: 'S15: NUL in the body', before: DATA, bytes: '\r\na\0\r\n.\r\n', hears: '554 5.6.0 Error: message contains NUL characters' },
  {
    id: 'S16: a header that is too long',
    before: DATA,
    config: { header_size_limit: 20 },
    bytes: `X: ${'y'.repeat(40)}\r\n\r\nx\r\n.\r\n`,
    hears: '552 5.3.4 Error: message header too big',
  },
  { id: 'S16: no header', before: DATA, bytes: 'hello\r\n.\r\n', hears: QUEUED, keeps: ['\r\nhello\r\n'] },
  { id: 'S16: a first line that begins with a blank', before: DATA, bytes: ' X: y\r\n.\r\n', hears: QUEUED, keeps: ['\r\n X: y\r\n'] },
  { id: 'S17: an end that never comes', before: DATA, bytes: 'Subject: x\r\n\r\nhello\r\n.\r', hears: '' },
]

const ORDER: readonly Row[] = [
  {
    id: 'S21: a content along with DATA',
    before: [...SENDER, 'RCPT TO:<ann@far.example>'],
    bytes: 'DATA\r\n\r\nx\r\n.\r\n',
    ...OUT_OF_STEP,
    sync: 6,
    patient: { hears: said('354 End data with <CR><LF>.<CR><LF>', QUEUED).trim(), keeps: ['\r\nx\r\n'] },
  },
  {
    id: 'S21: RSET along with NOOP',
    before: GREETED,
    bytes: 'NOOP\r\nRSET\r\n',
    ...OUT_OF_STEP,
    sync: 6,
    patient: { hears: said(OK, OK).trim() },
  },
  {
    id: 'S22: a web browser',
    bytes: 'GET / HTTP/1.1\r\nHost: x\r\n\r\n',
    ...OUT_OF_STEP,
    sync: 16,
    patient: NOT_SMTP,
  },
  { id: 'S22: a line of another protocol', bytes: 'Host: x\r\n', ...NOT_SMTP },
  {
    id: 'S23: after a refused message nothing of it is left',
    before: DATA,
    bytes: '\r\n\0\r\n.\r\nRCPT TO:<ann@far.example>\r\nDATA\r\n',
    hears: said(
      '554 5.6.0 Error: message contains NUL characters',
      '503 5.5.1 Error: need MAIL command',
      '503 5.5.1 Error: need RCPT command',
    ).trim(),
  },
  {
    id: 'S24: the wrong order',
    before: GREETED,
    bytes: 'RCPT TO:<a@far.example>\r\nMAIL FROM:<>\r\nMAIL FROM:<>\r\nRSET\r\nDATA\r\n',
    hears: said(
      '503 5.5.1 Error: need MAIL command',
      '250 2.1.0 Ok',
      '503 5.5.1 Error: nested MAIL command',
      OK,
      '503 5.5.1 Error: need RCPT command',
    ).trim(),
  },
  { id: 'S24: commands after QUIT', before: GREETED, bytes: 'QUIT\r\nNOOP\r\n', hears: '221 2.0.0 Bye', closed: true },
  {
    id: 'S26: more recipients than may be',
    before: SENDER,
    config: { smtpd_recipient_limit: 2 },
    bytes: ['a', 'b', 'c'].map((name) => `RCPT TO:<${name}@far.example>\r\n`).join(''),
    hears: said(RCPT_OK, RCPT_OK, '452 4.5.3 Error: too many recipients').trim(),
  },
  {
    id: 'S27: a line that is too long',
    before: GREETED,
    bytes: `NOOP ${'x'.repeat(2100)}\r\n`,
    hears: '500 5.5.2 Error: line too long',
    places: [1, 1024, 2046, 2047, 2048, 2049, 2050, 2104, 2105, 2106],
  },
  {
    id: 'S28: an unknown parameter',
    before: GREETED,
    bytes: 'MAIL FROM:<a@b.example> FOO=bar\r\n',
    hears: '555 5.5.4 Unsupported option: FOO=bar',
  },
  {
    id: 'S29: a size above the limit',
    before: GREETED,
    config: { message_size_limit: 50 },
    bytes: 'MAIL FROM:<a@b.example> SIZE=51\r\n',
    hears: '552 5.3.4 Message size exceeds fixed limit',
  },
  {
    id: 'S29: a size that was not announced',
    before: DATA,
    config: { message_size_limit: 50 },
    bytes: `\r\n${'x'.repeat(60)}\r\n.\r\nNOOP\r\n`,
    hears: said('552 5.3.4 Error: message file too big', OK).trim(),
  },
  {
    id: 'S63: mail that must not travel in the clear is not taken, since nobody here keeps that promise yet',
    before: GREETED,
    bytes: 'MAIL FROM:<a@b.example> REQUIRETLS\r\n',
    hears: '555 5.5.4 Unsupported option: REQUIRETLS',
  },
  ...['WIZ', 'SHELL', 'KILL', 'HELP', 'EXPN root', 'XCLIENT ADDR=127.0.0.1', 'STARTTLS', 'AUTH PLAIN AGEAYg=='].map((line) => ({
    id: `S30, S64, S66: ${line}`,
    before: GREETED,
    bytes: `${line}\r\n`,
    hears: NO_COMMAND,
  })),
  { id: 'S30: VRFY', before: GREETED, bytes: 'VRFY root\r\n', hears: '252 2.0.0 root' },
]

const ADDRESSES: readonly Row[] = [
  ['S40: a line break in an address', '<a@far.example\rb>', BAD_RECIPIENT],
  ['S40: a parameter in an address', '<b@y.example SIZE=1>', BAD_RECIPIENT],
  ['S40: a line break in xtext', '<a@far.example> ORCPT=rfc822;a+0D+0Ab', '501 5.5.4 Error: Bad ORCPT parameter syntax'],
  ['S41: a quoted at sign', '<"eve@evil.example x"@far.example>', RCPT_OK],
  ['S43: the postmaster', '<postmaster>', RCPT_OK],
  ['S44: nobody', '<>', BAD_RECIPIENT],
  ['S45: percent', '<user%evil.example@far.example>', RCPT_OK],
  ['S45: a source route', '<@us.example:user@far.example>', RCPT_OK],
  ['S46: a shell', '<|/bin/sh@far.example>', RCPT_OK],
  ['S46: a substitution', '<$(id)@far.example>', BAD_RECIPIENT],
  ['S47: invisible characters', '<a\u00e2\u0080\u008b@far.example>', BAD_RECIPIENT],
  ['S47: a local part of 65 octets', `<${'l'.repeat(65)}@far.example>`, BAD_RECIPIENT],
  ['S48: an address literal', '<a@[127.0.0.1]>', RCPT_OK],
  ['S48: a bare address', '<a@127.0.0.1>', BAD_RECIPIENT],
].map(([id = '', path = '', hears = '']) => ({ id, before: SENDER, bytes: `RCPT TO:${path}\r\n`, hears }))

const denied = (path: string): string => `454 4.7.1 <${path}>: Relay access denied`

const RELAYING: readonly Row[] = [
  ...[
    'a@elsewhere.example',
    'a%elsewhere.example@far.example',
    'elsewhere.example!a@far.example',
    '"a@elsewhere.example"@far.example',
    'a@[192.0.2.1]',
  ].map((path) => ({
    id: `S50: ${path}`,
    from: OUTSIDER,
    config: RELAY,
    before: SENDER,
    bytes: `RCPT TO:<${path}>\r\n`,
    hears: denied(path),
  })),
  {
    id: 'S51: too many hops',
    config: { hopcount_limit: 3 },
    before: DATA,
    bytes: 'Received: x\r\nReceived: y\r\n\r\nx\r\n.\r\n',
    hears: '554 5.4.0 Error: too many hops',
  },
]

/** One session; what was heard after the beginning, and what was kept. */
async function play(world: Reception, { from, before = [], bytes }: Row, packets: readonly Buffer[]) {
  const first = world.intake.taken.length
  const client = await world.connect(from)
  await client.say(...before)
  const heard = await client.send(...packets)
  const { closed } = client
  client.socket.destroy()
  await world.wait(0)
  expect(Buffer.concat(packets).toString('latin1')).toBe(bytes)
  return {
    hears: heard.replaceAll(/queued as \w+/g, 'queued').trimEnd(),
    closed,
    keeps: world.intake.taken.slice(first).map(({ original }) => original.replaceAll(/^(?:Message-Id|Date|From): .*\r\n/gm, '')),
  }
}

function* ways({ bytes, places }: Row) {
  const whole = Buffer.from(bytes, 'latin1')
  if (places === undefined) yield* segmentations(whole)
  else {
    yield { name: 'whole', packets: [whole] }
    for (const place of places) yield { name: `cut at ${place}`, packets: cutAt(whole, [place]) }
  }
}

/** Does a packet end where the client has to wait? */
function waits(sync: number, packets: readonly Buffer[]): boolean {
  let length = 0
  return packets.some((packet) => (length += packet.length) === sync)
}

describe.each([
  ['lines and framing', FRAMING],
  ['commands and their order', ORDER],
  ['addresses', ADDRESSES],
  ['relaying and loops', RELAYING],
])('%s', (_, rows) => {
  test.each(rows)('$id', async (row) => {
    const world = await openReception({ smtpd_soft_error_limit: 1000, ...row.config })
    for (const { name, packets } of ways(row)) {
      const wanted = row.sync !== undefined && waits(row.sync, packets) ? row.patient : row
      const { hears, keeps = [], closed = false } = wanted ?? row
      expect({ name, ...(await play(world, row, packets)) }).toEqual({ name, hears, closed, keeps })
    }
    expect(world.of('note')).toEqual([])
  })
})

test('S20: whoever talks before the greeting is shown out, however little it says', async () => {
  const { connect } = await openReception()
  const eager = 'EHLO x\r\nMAIL FROM:<a@b.example>\r\n'
  for (let length = 1; length <= eager.length; length++) {
    const client = await connect(OUTSIDER, eager.slice(0, length))
    await client.send(eager.slice(length))
    expect([client.heard, client.closed]).toEqual(['554 5.5.0 Error: SMTP protocol synchronization\r\n', true])
  }
})
