/**
 * Hostile input sent whole, byte by byte, and in two packets split at each position: replies and accepted messages do not
 * depend on the segmentation. Packets decide one thing only: whether a client has waited for a reply that it must wait for.
 * `sync` is the position after which a split means that it has, and `patient` the expectation then.
 */
import { describe, expect, test } from 'vitest'
import type { Config } from '../../src/config/options.ts'
import { openSmtpd, OUTSIDER, type SmtpdHarness } from '../support/smtpd-harness.ts'
import { cutAt, segmentations } from '../support/segments.ts'

interface Row {
  readonly id: string
  /** Bytes of the client, one character each. */
  readonly bytes: string
  /** Everything received from then on, without queue ids. */
  readonly hears: string
  /** Lines sent one by one before. */
  readonly before?: readonly string[]
  /** Accepted contents. */
  readonly keeps?: readonly string[]
  readonly closed?: boolean
  readonly config?: Partial<Config>
  readonly from?: string
  readonly sync?: number
  readonly patient?: Pick<Row, 'hears' | 'keeps' | 'closed'>
  /** Split positions of a row that is too long to be split at each. */
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
const NOT_SYNCHRONIZED = { hears: '554 5.5.0 Error: SMTP protocol synchronization', closed: true }
const NOT_SMTP = { hears: '221 2.7.0 Error: this is a mail server, goodbye', closed: true }
const RELAY = { relay_domains: ['far.example'] }

const lines = (...replies: readonly string[]): string => replies.map((line) => `${line}\r\n`).join('')

const FRAMING: readonly Row[] = [
  {
    id: 'LF.LF and commands after it',
    before: DATA,
    bytes: 'x\n.\nMAIL FROM:<e@b.example>\r\n.\r\n',
    hears: QUEUED,
    keeps: ['\r\nx\r\nMAIL FROM:<e@b.example>\r\n'],
  },
  { id: 'a stuffed dot', before: DATA, bytes: '\r\n..\r\n.\r\n', hears: QUEUED, keeps: ['\r\n.\r\n'] },
  { id: 'an unstuffed dot', before: DATA, bytes: '\r\n.a\r\n.\r\n', hears: QUEUED, keeps: ['\r\na\r\n'] },
  { id: 'commands that end in LF', before: GREETED, bytes: 'MAIL FROM:<a@b.example>\nRSET\n', hears: lines('250 2.1.0 Ok', OK).trim() },
  {
    id: 'commands that end in LF with smtpd_forbid_bare_newline = reject',
    before: GREETED,
    config: { smtpd_forbid_bare_newline: 'reject' },
    bytes: 'MAIL FROM:<a@b.example>\nRSET\n',
    hears: '550 5.5.2 relay.example Error: bare <LF> received',
    closed: true,
  },
  {
    id: 'a line of 1000 bytes',
    before: DATA,
    bytes: `\r\n${'x'.repeat(1000)}\r\n.\r\n`,
    hears: QUEUED,
    keeps: [`\r\n${'x'.repeat(1000)}\r\n`],
    places: [1, 2, 3, 999, 1000, 1001, 1002, 1003, 1004, 1005, 1006],
  },
  {
    id: 'NUL in the header',
    before: DATA,
    bytes: 'S: a\0b\r\n\r\nx\r\n.\r\n',
    hears: '554 5.6.0 Error: message contains NUL characters',
  },
  { id: 'NUL in the body', before: DATA, bytes: '\r\na\0\r\n.\r\n', hears: '554 5.6.0 Error: message contains NUL characters' },
  {
    id: 'a header field that is too long',
    before: DATA,
    config: { header_size_limit: 20 },
    bytes: `X: ${'y'.repeat(40)}\r\n\r\nx\r\n.\r\n`,
    hears: QUEUED,
    keeps: [`X: ${'y'.repeat(17)}\r\n\r\nx\r\n`],
  },
  { id: 'content without a header', before: DATA, bytes: 'hello\r\n.\r\n', hears: QUEUED, keeps: ['\r\nhello\r\n'] },
  { id: 'a first line that starts with a blank', before: DATA, bytes: ' X: y\r\n.\r\n', hears: QUEUED, keeps: ['\r\n X: y\r\n'] },
  { id: 'an incomplete end of data', before: DATA, bytes: 'Subject: x\r\n\r\nhello\r\n.\r', hears: '' },
]

const ORDER: readonly Row[] = [
  {
    id: 'content in the same packet as DATA',
    before: [...SENDER, 'RCPT TO:<ann@far.example>'],
    bytes: 'DATA\r\n\r\nx\r\n.\r\n',
    ...NOT_SYNCHRONIZED,
    sync: 6,
    patient: { hears: lines('354 End data with <CR><LF>.<CR><LF>', QUEUED).trim(), keeps: ['\r\nx\r\n'] },
  },
  {
    id: 'RSET in the same packet as NOOP',
    before: GREETED,
    bytes: 'NOOP\r\nRSET\r\n',
    ...NOT_SYNCHRONIZED,
    sync: 6,
    patient: { hears: lines(OK, OK).trim() },
  },
  {
    id: 'an HTTP request',
    bytes: 'GET / HTTP/1.1\r\nHost: x\r\n\r\n',
    ...NOT_SMTP,
  },
  { id: 'a line of another protocol', bytes: 'Host: x\r\n', ...NOT_SMTP },
  {
    id: 'commands after a refused message',
    before: DATA,
    bytes: '\r\n\0\r\n.\r\nRCPT TO:<ann@far.example>\r\nDATA\r\n',
    hears: lines(
      '554 5.6.0 Error: message contains NUL characters',
      '503 5.5.1 Error: need MAIL command',
      '503 5.5.1 Error: need RCPT command',
    ).trim(),
  },
  {
    id: 'commands out of sequence',
    before: GREETED,
    bytes: 'RCPT TO:<a@far.example>\r\nMAIL FROM:<>\r\nMAIL FROM:<>\r\nRSET\r\nDATA\r\n',
    hears: lines(
      '503 5.5.1 Error: need MAIL command',
      '250 2.1.0 Ok',
      '503 5.5.1 Error: nested MAIL command',
      OK,
      '503 5.5.1 Error: need RCPT command',
    ).trim(),
  },
  { id: 'commands after QUIT', before: GREETED, bytes: 'QUIT\r\nNOOP\r\n', hears: '221 2.0.0 Bye', closed: true },
  {
    id: 'recipients above smtpd_recipient_limit',
    before: SENDER,
    config: { smtpd_recipient_limit: 2 },
    bytes: ['a', 'b', 'c'].map((name) => `RCPT TO:<${name}@far.example>\r\n`).join(''),
    hears: lines(RCPT_OK, RCPT_OK, '452 4.5.3 Error: too many recipients').trim(),
  },
  {
    id: 'a line that is too long',
    before: GREETED,
    bytes: `NOOP ${'x'.repeat(2100)}\r\n`,
    hears: '500 5.5.2 Error: line too long',
    places: [1, 1024, 2046, 2047, 2048, 2049, 2050, 2104, 2105, 2106],
  },
  {
    id: 'an unknown parameter',
    before: GREETED,
    bytes: 'MAIL FROM:<a@b.example> FOO=bar\r\n',
    hears: '555 5.5.4 Unsupported option: FOO=bar',
  },
  {
    id: 'an announced size above the limit',
    before: GREETED,
    config: { message_size_limit: 50 },
    bytes: 'MAIL FROM:<a@b.example> SIZE=51\r\n',
    hears: '552 5.3.4 Message size exceeds fixed limit',
  },
  {
    id: 'an unannounced size above the limit',
    before: DATA,
    config: { message_size_limit: 50 },
    bytes: `\r\n${'x'.repeat(60)}\r\n.\r\nNOOP\r\n`,
    hears: lines('552 5.3.4 Error: message file too big', OK).trim(),
  },
  {
    id: 'REQUIRETLS (RFC 8689) is not supported',
    before: GREETED,
    bytes: 'MAIL FROM:<a@b.example> REQUIRETLS\r\n',
    hears: '555 5.5.4 Unsupported option: REQUIRETLS',
  },
  ...['WIZ', 'SHELL', 'KILL', 'HELP', 'EXPN root'].map((line) => ({
    id: line,
    before: GREETED,
    bytes: `${line}\r\n`,
    hears: NO_COMMAND,
  })),
  { id: 'STARTTLS', before: GREETED, bytes: 'STARTTLS\r\n', hears: '502 5.5.1 Error: command not implemented' },
  { id: 'AUTH', before: GREETED, bytes: 'AUTH PLAIN AGEAYg==\r\n', hears: '503 5.5.1 Error: authentication not enabled' },
  { id: 'VRFY', before: GREETED, bytes: 'VRFY root\r\n', hears: '252 2.0.0 root' },
]

const ADDRESSES: readonly Row[] = [
  ['a line break in an address', '<a@far.example\rb>', BAD_RECIPIENT],
  ['a parameter in an address', '<b@y.example SIZE=1>', BAD_RECIPIENT],
  ['a line break in xtext', '<a@far.example> ORCPT=rfc822;a+0D+0Ab', '501 5.5.4 Error: Bad ORCPT parameter syntax'],
  ['a quoted at sign', '<"eve@evil.example x"@far.example>', RCPT_OK],
  ['the postmaster', '<postmaster>', RCPT_OK],
  ['the null path', '<>', BAD_RECIPIENT],
  ['percent', '<user%evil.example@far.example>', RCPT_OK],
  ['a source route', '<@us.example:user@far.example>', RCPT_OK],
  ['a pipe character', '<|/bin/sh@far.example>', RCPT_OK],
  ['a substitution', '<$(id)@far.example>', BAD_RECIPIENT],
  ['invisible characters', '<a\u00e2\u0080\u008b@far.example>', BAD_RECIPIENT],
  ['a path longer than an address can be', `<${'l'.repeat(900)}@far.example>`, BAD_RECIPIENT],
  ['an address literal', '<a@[127.0.0.1]>', RCPT_OK],
  ['a bare address', '<a@127.0.0.1>', BAD_RECIPIENT],
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
    id: `RCPT TO:<${path}>`,
    from: OUTSIDER,
    config: RELAY,
    before: SENDER,
    bytes: `RCPT TO:<${path}>\r\n`,
    hears: denied(path),
  })),
  {
    id: 'too many hops',
    config: { hopcount_limit: 3 },
    before: DATA,
    bytes: 'Received: x\r\nReceived: y\r\n\r\nx\r\n.\r\n',
    hears: '554 5.4.0 Error: too many hops',
  },
]

/** Result of one session: the replies after its beginning, and the accepted messages. */
async function play(world: SmtpdHarness, { from, before = [], bytes }: Row, packets: readonly Buffer[]) {
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
    const world = await openSmtpd({ smtpd_soft_error_limit: 1000, ...row.config })
    for (const { name, packets } of ways(row)) {
      const wanted = row.sync !== undefined && waits(row.sync, packets) ? row.patient : row
      const { hears, keeps = [], closed = false } = wanted ?? row
      expect({ name, ...(await play(world, row, packets)) }).toEqual({ name, hears, closed, keeps })
    }
    expect(world.of('note')).toEqual([])
  })
})

test('a client that sends before the greeting is disconnected, however little it sends', async () => {
  const { connect } = await openSmtpd()
  const eager = 'EHLO x\r\nMAIL FROM:<a@b.example>\r\n'
  for (let length = 1; length <= eager.length; length++) {
    const client = await connect(OUTSIDER, eager.slice(0, length))
    await client.send(eager.slice(length))
    expect([client.heard, client.closed]).toEqual(['554 5.5.0 Error: SMTP protocol synchronization\r\n', true])
  }
})
