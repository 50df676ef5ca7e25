/** Parsing notices of other systems: their members, and the safety of the parser with hostile input. */
import { describe, expect, test } from 'vitest'
import { parseNotice } from '../../src/bounce/dsn-parser.ts'
import { threadTime } from '../support/thread-time.ts'

const bytes = (...lines: readonly string[]): Buffer => Buffer.from(lines.join('\r\n'))

interface OtherParts {
  readonly text?: readonly string[]
  readonly original?: readonly string[]
}

const report = (status: readonly string[], { text, original }: OtherParts = {}): Buffer =>
  bytes(
    'From: MAILER-DAEMON@mx.example',
    'Content-Type: multipart/report; report-type=delivery-status; boundary="=_b"',
    '',
    'preamble',
    '--=_b',
    ...(text ?? ['Content-Type: text/plain; charset=us-ascii', '', 'It did not work.']),
    '--=_b',
    'Content-Type: message/delivery-status',
    '',
    ...status,
    '--=_b',
    ...(original ?? ['Content-Type: message/rfc822', '', 'Subject: hello', '', 'text']),
    '--=_b--',
    'epilogue',
  )

/** A report about one recipient, with these fields beside. */
const about = (recipient: string, action = 'failed', more: OtherParts = {}): Buffer =>
  report(['Reporting-MTA: dns; x', '', `Final-Recipient: ${recipient}`, `Action: ${action}`], more)

/** A notice in Exim's form. */
const EXIM = bytes(
  'Return-path: <>',
  'Auto-Submitted: auto-replied',
  'From: Mail Delivery System <Mailer-Daemon@exim.example>',
  'To: app@us.example',
  'Content-Type: multipart/report; report-type=delivery-status; boundary=1767603600-eximdsn-1804289383',
  'MIME-Version: 1.0',
  'Subject: Mail delivery failed: returning message to sender',
  '',
  '--1767603600-eximdsn-1804289383',
  'Content-type: text/plain; charset=us-ascii',
  '',
  'A message that you sent could not be delivered.',
  '',
  '--1767603600-eximdsn-1804289383',
  'Content-type: message/delivery-status',
  '',
  'Reporting-MTA: dns; exim.example',
  '',
  'Action: failed',
  'Final-Recipient: rfc822;ann@example.net',
  'Status: 5.0.0',
  'Remote-MTA: dns; mx.example.net',
  'Diagnostic-Code: smtp; 550 5.1.1 no such user',
  '',
  '--1767603600-eximdsn-1804289383',
  'Content-type: message/rfc822',
  '',
  'Subject: hello',
  '',
  'text',
  '',
  '--1767603600-eximdsn-1804289383--',
  '',
)

describe('fields', () => {
  test('Exim: Action before Final-Recipient, no blank after rfc822;', () => {
    expect(parseNotice(EXIM)).toEqual({
      action: 'failed',
      recipients: [
        {
          recipient: 'ann@example.net',
          action: 'failed',
          status: '5.0.0',
          diagnostic: '550 5.1.1 no such user',
          diagnosticType: 'smtp',
          remoteMta: 'mx.example.net',
          willRetryUntil: undefined,
          originalRecipient: undefined,
        },
      ],
      reportingMta: 'exim.example',
      arrival: undefined,
      envid: undefined,
      text: 'A message that you sent could not be delivered.\n',
      original: 'Subject: hello\r\n\r\ntext\r\n',
    })
  })

  test('all fields, folded, in any case, with trailing comments', () => {
    const notice = parseNotice(
      report([
        'REPORTING-MTA: dns;mta.example',
        'Original-Envelope-Id: QQ314159',
        'Arrival-Date: Mon, 5 Jan 2026 10:00:00 +0100 (CET)',
        '',
        'Original-Recipient: rfc822;Bob+tag@ex.org',
        'Final-Recipient: RFC822; <bob@ex.org>',
        'Action: Delayed (still trying)',
        'Status: 4.2.1 (busy)',
        'Diagnostic-Code: smtp; 450 4.2.1',
        '    busy,',
        '\ttry later',
        'Will-Retry-Until: Wed, 07 Jan 2026 09:00 GMT',
        '',
        'Final-Recipient: rfc822; eve@ex.org',
        'Action: failed',
        '',
      ]),
    )
    expect(notice).toMatchObject({ action: 'delayed', reportingMta: 'mta.example', envid: 'QQ314159', arrival: 1_767_603_600_000 })
    expect(notice?.recipients).toMatchObject([
      {
        recipient: 'bob@ex.org',
        originalRecipient: 'rfc822;Bob+tag@ex.org',
        action: 'delayed',
        status: '4.2.1',
        diagnostic: '450 4.2.1 busy, try later',
        willRetryUntil: 1_767_776_400_000,
      },
      { recipient: 'eve@ex.org', action: 'failed', status: '' },
    ])
  })

  test('transfer encodings are decoded', () => {
    const status = Buffer.from('Reporting-MTA: dns; x\r\n\r\nFinal-Recipient: utf-8; jürgen@example.net\r\nAction: failed\r\n')
    const notice = parseNotice(
      bytes(
        'Content-Type: Multipart/Report; BOUNDARY=b',
        '',
        '--b',
        'Content-Type: text/plain; charset=utf-8',
        'Content-Transfer-Encoding: quoted-printable',
        '',
        'Gr=C3=BC=C3=9Fe =',
        'aus K=C3=B6ln  ',
        '--b',
        'Content-Type: message/global-delivery-status',
        'Content-Transfer-Encoding: BASE64',
        '',
        status.toString('base64'),
        '--b--',
      ),
    )
    expect(notice?.text).toBe('Grüße aus Köln')
    expect(notice?.recipients[0]?.recipient).toBe('jürgen@example.net')
    expect(notice?.original).toBeUndefined()
  })

  test('utf-8-addr-xtext addresses are decoded (RFC 6533)', () => {
    const recipientOf = (field: string) => parseNotice(about(field))?.recipients[0]?.recipient
    expect(recipientOf('utf-8; j\\x{FC}r\\x{2B}gen@\\x{1F4A9}.example')).toBe('jür+gen@💩.example')
    expect(recipientOf('utf-8; \\x{FFFFFF}@x.example')).toBe('\\x{FFFFFF}@x.example')
    expect(recipientOf('rfc822; \\x{41}@x.example')).toBe('\\x{41}@x.example')
  })

  test('a report wrapped in multipart/mixed by a list or filter is found', () => {
    const inner = about('rfc822; a@x.example').toString()
    const footer = ['--outer', 'Content-Type: text/plain', '', 'footer', '--outer--']
    const wrapped = bytes('Content-Type: multipart/mixed; boundary=outer', '', '--outer', inner, ...footer)
    expect(parseNotice(wrapped)?.recipients).toMatchObject([{ recipient: 'a@x.example' }])
  })

  test('bare LF line ends are accepted', () => {
    const bare = Buffer.from(EXIM.toString().replaceAll('\r\n', '\n'))
    expect(parseNotice(bare)?.recipients).toMatchObject([{ recipient: 'ann@example.net' }])
  })
})

describe('not a notice', () => {
  test('ordinary mail', () => {
    expect(parseNotice(bytes('Subject: hello', '', 'text'))).toBeNull()
    expect(parseNotice(Buffer.alloc(0))).toBeNull()
    expect(parseNotice(bytes('Content-Type: multipart/report', '', 'no boundary'))).toBeNull()
  })

  test('a message that forwards a notice', () => {
    const forwarded = ['--f', 'Content-Type: message/rfc822', '', EXIM.toString(), '--f--']
    expect(parseNotice(bytes('Content-Type: multipart/mixed; boundary=f', '', ...forwarded))).toBeNull()
  })

  test('a report without a recipient or without an action', () => {
    expect(parseNotice(report(['Reporting-MTA: dns; x']))).toBeNull()
    expect(parseNotice(report(['Reporting-MTA: dns; x', '', 'Action: failed']))).toBeNull()
    expect(parseNotice(about('rfc822; a@x.example', 'exploded'))).toBeNull()
  })
})

describe('limits', () => {
  /** Parts inside each other, the innermost a notice. */
  const nest = (deep: number, type: 'multipart/mixed' | 'message/rfc822'): Buffer => {
    const before: string[] = []
    const after: string[] = []
    for (let n = 0; n < deep; n++) {
      before.push(type === 'message/rfc822' ? `Content-Type: ${type}\r\n\r\n` : `Content-Type: ${type}; boundary=n${n}\r\n\r\n--n${n}\r\n`)
      if (type !== 'message/rfc822') after.push(`\r\n--n${n}--\r\n`)
    }
    return Buffer.from(before.join('') + EXIM.toString() + after.toReversed().join(''))
  }

  test('ten MIME levels are read, the eleventh is not', () => {
    expect(parseNotice(nest(9, 'multipart/mixed'))?.recipients).toHaveLength(1)
    expect(parseNotice(nest(10, 'multipart/mixed'))).toBeNull()
  })

  test('ten thousand nested messages take no time', () => {
    expect(parseNotice(nest(10_000, 'message/rfc822'))).toBeNull()
    expect(parseNotice(nest(10_000, 'multipart/mixed'))).toBeNull()
  })

  test('a thousand MIME parts are read and no more', () => {
    const status = ['--p', 'Content-Type: message/delivery-status', '', 'Reporting-MTA: dns; x', '', 'Final-Recipient: rfc822; a@x.example']
    const withParts = (count: number) => {
      const parts = Array.from({ length: count }, () => ['--p', '', 'part']).flat()
      return bytes('Content-Type: multipart/report; boundary=p', '', ...parts, ...status, 'Action: failed', '--p--')
    }
    expect(parseNotice(withParts(999))?.recipients).toHaveLength(1)
    expect(parseNotice(withParts(1_000))).toBeNull()
  })

  test('the number of recipients is limited', () => {
    const block = ['', 'Final-Recipient: rfc822; a@x.example', 'Action: failed']
    const notice = parseNotice(report(['Reporting-MTA: dns; x', ...Array.from({ length: 10_000 }, () => block).flat()]))
    expect(notice?.recipients).toHaveLength(999)
  })

  test('the first megabyte is read; a notice truncated there is still parsed', () => {
    const long = ['Content-Type: message/rfc822', '', 'Subject: big', '', 'x'.repeat(2_000_000)]
    const notice = parseNotice(about('rfc822; a@x.example', 'failed', { original: long }))
    expect(notice?.recipients).toHaveLength(1)
    expect(notice?.original?.length).toBeLessThan(1_048_576)
    expect(parseNotice(about('rfc822; a@x.example', 'failed', { text: ['', 'x'.repeat(1_100_000)] }))).toBeNull()
  })

  const inPart = 'Content-Type: multipart/report; boundary=b\r\n\r\n--b\r\nContent-Type: message/delivery-status\r\n'
  const nuisances: Readonly<Record<string, string>> = {
    'a header of blanks': `Content-Type: ${' '.repeat(1_000_000)}x`,
    'parameters without end': `Content-Type: multipart/report${';a="'.repeat(250_000)}`,
    'escapes without end': `Content-Type: multipart/report; a="${'\\x'.repeat(500_000)}`,
    'boundaries without end': `Content-Type: multipart/report; boundary=b\r\n\r\n${'--b\r\n'.repeat(200_000)}`,
    'a boundary line without end': `Content-Type: multipart/report; boundary=b\r\n\r\n--b${' '.repeat(1_000_000)}`,
    'quoted blanks': `${inPart}Content-Transfer-Encoding: quoted-printable\r\n\r\n${' '.repeat(900_000)}x`,
    'empty lines of blanks': `${inPart}\r\n${'\r\n    '.repeat(150_000)}x`,
    'a million fields': 'a:\r\n'.repeat(250_000),
  }
  for (const [what, mail] of Object.entries(nuisances)) {
    test(`${what}: parsed in linear time`, () => {
      const began = threadTime()
      expect(parseNotice(Buffer.from(mail))).toBeNull()
      expect(threadTime() - began).toBeLessThan(2_000)
    })
  }
})
