/** Text and fields of a notice, literally, in Postfix's layout. */
import { describe, expect, test } from 'vitest'
import type { Dsn } from '../../src/bounce/dsn.ts'
import { spelledOut } from '../../src/bounce/dsn-text.ts'
import type { Notice } from '../../src/bounce/notice.ts'
import { parseNotice } from '../../src/bounce/dsn-parser.ts'
import { readOriginal } from '../../src/bounce/returned-original.ts'
import { DAY, HOUR, MINUTE, SECOND } from '../../src/system/clock.ts'
import type { Message, Recipient } from '../../src/mail/message.ts'
import {
  aMessage,
  ARRIVAL,
  aRecipient,
  delayed,
  expectValid,
  expired,
  original,
  ORIGINAL,
  refusedConnection,
  relayed,
  said,
  settingsOf,
  takeApart,
  written,
} from '../support/notices.ts'

interface Story {
  readonly recipients: readonly Recipient[]
  readonly kind?: Notice['kind']
  readonly to?: Notice['to']
  readonly returns?: Notice['returns']
  readonly message?: Partial<Message>
  readonly octets?: string
  readonly overrides?: readonly string[]
}

async function tell(story: Story): Promise<Dsn> {
  const { recipients, kind = 'failure', to = 'sender', returns = 'full' } = story
  const settings = settingsOf(story.overrides)
  const message = aMessage(story.message)
  const notice: Notice = { kind, to, address: to === 'sender' ? message.sender : 'postmaster@example.org', from: '', recipients, returns }
  const dsn = written(notice, message, await original(story.octets ?? ORIGINAL, settings, returns), settings)
  expectValid(dsn)
  return dsn
}

const textOf = ({ content }: Dsn): string => Buffer.from(content).toString('utf8')
const statusOf = ({ content }: Dsn): readonly string[] => takeApart(content).status.body.split('\r\n')

describe('the delivery-status part', () => {
  test('fields are in Postfix’s order', async () => {
    const dsn = await tell({ kind: 'delay', recipients: [delayed(0, { orcpt: 'rfc822;ann@example.net' })], message: { envid: 'QQ314159' } })
    expect(statusOf(dsn).map((line) => line.replace(/:.*/, ''))).toEqual([
      'Reporting-MTA',
      'Original-Envelope-Id',
      'X-Deferd-Queue-ID',
      'X-Deferd-Sender',
      'Arrival-Date',
      '',
      'Final-Recipient',
      'Original-Recipient',
      'Action',
      'Status',
      'Remote-MTA',
      'Diagnostic-Code',
      'Will-Retry-Until',
      '',
    ])
  })

  test('an expired recipient keeps its last reply', async () => {
    const lines = statusOf(await tell({ recipients: [expired(0)] }))
    expect(lines).toContain('Action: failed')
    expect(lines).toContain('Status: 4.2.1')
    expect(lines).toContain('Diagnostic-Code: smtp; 450 4.2.1 busy')
    expect(lines).toContain('Remote-MTA: dns; mx.example.net')
  })

  test('expired without a reply: a local reason and no Remote-MTA', async () => {
    const lines = statusOf(await tell({ recipients: [expired(0, { last: refusedConnection })] }))
    expect(lines).toContain('Status: 4.4.1')
    expect(lines).toContain('Diagnostic-Code: X-Deferd; connect to mx.example.net[192.0.2.25]:25: Connection')
    expect(lines).toContain('    refused')
    expect(lines.join('\n')).not.toContain('Remote-MTA')
  })

  test('mail expired by an operator before its first attempt: status 4.7.0', async () => {
    const last = { status: '4.7.0', reason: 'message is administratively expired', stage: 'queue' } as const
    const dsn = await tell({ recipients: [expired(0, { attempts: 0, last, settledAt: ARRIVAL + HOUR })] })
    expect(statusOf(dsn)).toContain('Status: 4.7.0')
    expect(textOf(dsn)).toContain('<user0@example.net>: message is administratively expired')
    expect(textOf(dsn).replace(/\s+/g, ' ')).toContain('the postmaster ended the attempts.')
  })

  test('ENVID is returned as Original-Envelope-Id', async () => {
    expect(statusOf(await tell({ recipients: [aRecipient(0)], message: { envid: 'QQ314159' } }))).toContain(
      'Original-Envelope-Id: QQ314159',
    )
  })

  test('Original-Recipient is ORCPT as given, else the address of RCPT TO', async () => {
    const lines = statusOf(await tell({ recipients: [aRecipient(0, { orcpt: 'rfc822;Bob+tag@ex.org' }), aRecipient(1)] }))
    expect(lines.filter((line) => line.startsWith('Original-Recipient'))).toEqual([
      'Original-Recipient: rfc822;Bob+tag@ex.org',
      'Original-Recipient: rfc822;user1@example.net',
    ])
  })

  test('a delay notice has Will-Retry-Until', async () => {
    const dsn = await tell({ kind: 'delay', returns: 'headers', recipients: [delayed(0)] })
    expect(statusOf(dsn)).toContain('Action: delayed')
    expect(statusOf(dsn)).toContain('Will-Retry-Until: Wed, 07 Jan 2026 10:00:00 +0100 (CET)')
    expect(parseNotice(dsn.content)?.recipients[0]?.willRetryUntil).toBe(ARRIVAL + 2 * DAY)
    expect(takeApart(dsn.content).returned.type).toBe('text/rfc822-headers')
  })

  test('Action is relayed for an SMTP next hop, delivered for other transports', async () => {
    const recipients = [relayed(0), relayed(1, { destination: 'lmtp:[127.0.0.1]:24' }), relayed(2, { destination: 'discard:' })]
    const lines = statusOf(await tell({ kind: 'success', returns: 'headers', recipients }))
    expect(lines.filter((line) => line.startsWith('Action'))).toEqual(['Action: relayed', 'Action: delivered', 'Action: delivered'])
  })

  test('SMTPUTF8 mail gets the global media types (RFC 6533)', async () => {
    const recipients = [aRecipient(0, { address: 'jürgen@bücher.example', last: said('550 5.1.1 größer als erlaubt') })]
    const story: Story = { recipients, message: { smtputf8: true, sender: 'señor@us.example' } }
    const dsn = await tell(story)
    const { status, returned } = takeApart(dsn.content)
    expect([status.type, returned.type]).toEqual(['message/global-delivery-status', 'message/global'])
    expect(status.fields.get('content-transfer-encoding')).toBe('8bit')
    expect(dsn.international).toBe(true)
    const whole = textOf(dsn)
    expect(whole).toContain('To: señor@us.example\r\n')
    expect(whole).toContain('Final-Recipient: utf-8; jürgen@bücher.example\r\n')
    expect(whole).toContain('X-Deferd-Sender: utf-8; señor@us.example\r\n')
    expect(whole).toContain('Diagnostic-Code: smtp; 550 5.1.1 größer als erlaubt\r\n')
    const headersOnly = await tell({ ...story, returns: 'headers' })
    expect(takeApart(headersOnly.content).returned.type).toBe('message/global-headers')
  })

  test('an all-ASCII notice does not require SMTPUTF8', async () => {
    const dsn = await tell({ recipients: [aRecipient(0, { address: 'jürgen@example.net' })], message: { smtputf8: true } })
    expect([dsn.international, dsn.eightBit]).toEqual([false, true])
  })

  test('a non-ASCII address is encoded as utf-8-addr-xtext in an ASCII report (RFC 6533 §3)', async () => {
    const dsn = await tell({ recipients: [aRecipient(0, { address: 'jür+gen@example.net' })] })
    expect(statusOf(dsn)).toContain('Final-Recipient: utf-8; j\\x{FC}r\\x{2B}gen@example.net')
    expect(parseNotice(dsn.content)?.recipients[0]?.recipient).toBe('jür+gen@example.net')
  })

  test('X- fields are named after mail_name, whatever its characters', async () => {
    const dsn = await tell({ recipients: [expired(0, { last: refusedConnection })], overrides: ['mail_name=My (best) Mail: "Größe"'] })
    expect(statusOf(dsn).join('\n')).toMatch(/^X-My--best--Mail---Gr--e--Queue-ID: /m)
    expect(parseNotice(dsn.content)?.recipients[0]?.diagnosticType).toMatch(/^x-my--best--mail/)
  })

  test('mail without an attempt has a status', async () => {
    const lines = statusOf(await tell({ recipients: [expired(0, { last: null, attempts: 0 }), aRecipient(1, { last: null })] }))
    expect(lines.filter((line) => line.startsWith('Status'))).toEqual(['Status: 4.0.0', 'Status: 5.0.0'])
    expect(lines).toContain('Diagnostic-Code: X-Deferd; no delivery was attempted')
  })
})

describe('the header', () => {
  test('fields are in Postfix’s order', async () => {
    const dsn = await tell({ recipients: [aRecipient(0)] })
    expect(textOf(dsn).slice(0, textOf(dsn).indexOf('\r\n\r\n')).split('\r\n')).toEqual([
      'Received: by relay.example (Deferd)',
      expect.stringMatching(/^\tid \w+z\w+; Wed, 07 Jan 2026 10:00:00 \+0100 \(CET\)$/),
      'Date: Wed, 07 Jan 2026 10:00:00 +0100 (CET)',
      'From: Mail Delivery System <MAILER-DAEMON@example.org>',
      'Subject: Undelivered Mail Returned to Sender',
      'To: app@us.example',
      'Auto-Submitted: auto-replied',
      'MIME-Version: 1.0',
      'Content-Type: multipart/report; report-type=delivery-status;',
      expect.stringMatching(/^\tboundary="\w+z\w+\.1767776400\/relay\.example"$/),
      expect.stringMatching(/^Message-Id: <20260107090000\.\w+@relay\.example>$/),
    ])
  })

  test('each notice kind has its own Subject', async () => {
    const subject = async (story: Story) => takeApart((await tell(story)).content).whole.fields.get('subject')
    expect(await subject({ kind: 'delay', recipients: [delayed(0)] })).toBe('Delayed Mail (still being retried)')
    expect(await subject({ kind: 'delay', to: 'postmaster', recipients: [delayed(0)] })).toBe('Postmaster Warning: Delayed Mail')
    expect(await subject({ kind: 'success', recipients: [relayed(0)] })).toBe('Successful Mail Delivery Report')
  })

  test('References names the original only with enable_threaded_bounces and a valid Message-ID', async () => {
    const fields = async (messageId: string | undefined, overrides: readonly string[]) =>
      takeApart((await tell({ recipients: [aRecipient(0)], message: { messageId }, overrides })).content).whole.fields
    const threaded = await fields('<1@us.example>', ['enable_threaded_bounces=yes'])
    expect([threaded.get('references'), threaded.get('in-reply-to')]).toEqual(['<1@us.example>', '<1@us.example>'])
    expect((await fields('<1@us.example>', [])).has('references')).toBe(false)
    expect((await fields('<1@us.example>\r\nBcc: all@example.org', ['enable_threaded_bounces=yes'])).has('references')).toBe(false)
    expect((await fields(undefined, ['enable_threaded_bounces=yes'])).has('references')).toBe(false)
  })

  test('a notice about mail with TLS-Required: No has the field too (RFC 8689)', async () => {
    const octets = `TLS-Required: No\r\n${ORIGINAL}`
    const dsn = await tell({ recipients: [aRecipient(0)], octets })
    expect(takeApart(dsn.content).whole.fields.get('tls-required')).toBe('no')
    const inBody = await tell({ recipients: [aRecipient(0)], octets: `${ORIGINAL}\r\nTLS-Required: no\r\n` })
    expect(takeApart(inBody.content).whole.fields.has('tls-required')).toBe(false)
  })

  const senders: readonly (readonly [string, string])[] = [
    ['a b@us.example', '"a b"@us.example'],
    ['"a b"@us.example', '"a b"@us.example'],
    ['a"b\\c@us.example', '"a\\"b\\\\c"@us.example'],
    ['.a@us.example', '".a"@us.example'],
    [`${'x'.repeat(1_000)}@us.example`, 'undisclosed-recipients:;'],
    ['evil\r\nBcc: all@example.org', '"evil??Bcc: all"@example.org'],
  ]
  for (const [sender, shown] of senders) {
    test(`To: ${shown}`, async () => {
      const dsn = await tell({ recipients: [aRecipient(0)], message: { sender } })
      expect(takeApart(dsn.content).whole.fields.get('to')).toBe(shown)
    })
  }
})

describe('the text', () => {
  test('gives the number, the start and the end of the attempts', async () => {
    const text = textOf(await tell({ recipients: [expired(0)] })).replace(/\s+/g, ' ')
    expect(text).toContain('<user0@example.net>: host mx.example.net[192.0.2.25] said: 450 4.2.1 busy (in reply to RCPT TO command)')
    expect(text).toContain(
      'Delivery was attempted 46 times since Mon, 05 Jan 2026 10:00:00 +0100 (CET). On Wed, 07 Jan 2026 10:00:00 +0100 (CET) ' +
        'the attempts ended: undelivered mail is kept for 2 days.',
    )
  })

  test('reports that no attempt could be made', async () => {
    const text = textOf(await tell({ recipients: [expired(0, { attempts: 0, last: refusedConnection })] })).replace(/\s+/g, ' ')
    expect(text).toContain('The message has been queued since Mon, 05 Jan 2026 10:00:00 +0100 (CET); no delivery attempt was possible.')
  })

  test('a delay notice states that attempts continue', async () => {
    const one = textOf(await tell({ kind: 'delay', recipients: [delayed(0, { attempts: 1 })] })).replace(/\s+/g, ' ')
    expect(one).toContain('Delivery was attempted once since Mon, 05 Jan 2026 10:00:00 +0100 (CET).')
    expect(one).toContain('Attempts will continue until Wed, 07 Jan 2026 10:00:00 +0100 (CET).')
  })

  test('lines are folded at 79 columns with an indent of four', async () => {
    const words = Array.from({ length: 60 }, (_, n) => `word${n}`).join(' ')
    const lines = textOf(await tell({ recipients: [aRecipient(0, { last: said(`550 5.7.1 ${words}`) })] })).split('\r\n')
    const start = lines.findIndex((line) => line.startsWith('<user0@'))
    const paragraph = lines.slice(start, lines.indexOf('', start))
    expect(paragraph.length).toBeGreaterThan(5)
    for (const line of paragraph) expect(line.length).toBeLessThanOrEqual(79)
    for (const line of paragraph.slice(1)) expect(line).toMatch(/^ {4}\S/)
  })

  test('a remote reply cannot add lines or control characters', async () => {
    const evil = '550 \u001b[2J\u001b]0;pwn\u0007 \0 \r\nSubject: x \u202e'
    const dsn = await tell({
      recipients: [
        aRecipient(0, { last: { status: '5.0.0', reason: `said: ${evil}`, reply: evil, remoteMta: 'mx\r\nX: y', stage: 'rcpt' } }),
      ],
    })
    expect(textOf(dsn)).not.toMatch(/[^\P{Cc}\r\n\t]|\u202e/u)
    expect(textOf(dsn)).not.toMatch(/^Subject: x/m)
    expect(parseNotice(dsn.content)?.recipients).toMatchObject([
      { status: '5.0.0', diagnostic: '550 ?[2J?]0;pwn? ? ??Subject: x ?', remoteMta: 'mx??X: y' },
    ])
  })

  test('durations are spelled out', () => {
    const lengths = [0, SECOND, 90 * SECOND, HOUR, HOUR + 30 * MINUTE, 2 * DAY, DAY + MINUTE, 5 * DAY + HOUR, 1.5 * HOUR + SECOND]
    expect(lengths.map(spelledOut)).toEqual([
      '0 seconds',
      '1 second',
      '1 minute and 30 seconds',
      '1 hour',
      '1 hour and 30 minutes',
      '2 days',
      '1 day',
      '5 days and 1 hour',
      '1 hour and 30 minutes',
    ])
  })
})

describe('the returned original', () => {
  test('is returned byte for byte when it is valid', async () => {
    const octets = `${ORIGINAL}8 bit: \xe4\xf6\xfc\r\n.\r\n\r\n`
    const dsn = await tell({ recipients: [aRecipient(0)], octets })
    expect(takeApart(dsn.content).returned.body).toBe(`Return-Path: <app@us.example>\r\n${octets}`)
    expect(dsn.eightBit).toBe(true)
  })

  test('the header alone ends before the empty line', async () => {
    const dsn = await tell({ recipients: [aRecipient(0)], returns: 'headers' })
    const header = ORIGINAL.slice(0, ORIGINAL.indexOf('\r\n\r\n') + 2)
    expect(takeApart(dsn.content).returned.body).toBe(`Return-Path: <app@us.example>\r\n${header}`)
  })

  test('content that would break the notice is repaired', async () => {
    const dsn = await tell({ recipients: [aRecipient(0)], octets: `Subject: x\n\nbare\rreturn, nul\0\n${'y'.repeat(2_500)}\nend` })
    const { body } = takeApart(dsn.content).returned
    expect(body).toContain('Subject: x\r\n\r\nbare return, nul?\r\n')
    expect(body.replaceAll('\r\n ', '')).toContain('y'.repeat(2_500))
    expect(body.endsWith('end\r\n')).toBe(true)
  })

  test('no line of it can be the boundary', async () => {
    const first = await tell({ recipients: [aRecipient(0)] })
    const boundary = takeApart(first.content).whole.parameters.get('boundary') ?? ''
    const octets = `${ORIGINAL}--${boundary}--\r\n--${boundary}.1\r\n\r\nContent-Type: text/plain\r\n`
    const dsn = await tell({ recipients: [aRecipient(0)], octets })
    expect(takeApart(dsn.content).returned.body).toBe(`Return-Path: <app@us.example>\r\n${octets}`)
  })

  test('a header of a megabyte is truncated at header_size_limit, at a line end', async () => {
    const octets = `Received: by us\r\n${'X-Long: 0123456789 0123456789\r\n'.repeat(33_000)}\r\nbody\r\n`
    const dsn = await tell({ recipients: [aRecipient(0)], returns: 'headers', octets })
    const { body } = takeApart(dsn.content).returned
    expect(body.length).toBeLessThan(103_000)
    expect(body.length).toBeGreaterThan(102_000)
    expect(body.endsWith('X-Long: 0123456789 0123456789\r\n')).toBe(true)
  })

  test('one longer than its stored size is returned as header only', async () => {
    const dsn = await tell({ recipients: [aRecipient(0)], octets: ORIGINAL + 'x\r\n'.repeat(30_000) })
    const { returned } = takeApart(dsn.content)
    expect([returned.type, returned.fields.get('content-description')]).toEqual(['text/rfc822-headers', 'Undelivered Message Headers'])
    expect(returned.body).not.toContain('The text.')
  })

  test('only the returned chunks are read', async () => {
    const asked: number[] = []
    const piece = Buffer.from(`${ORIGINAL}${'z'.repeat(60_000)}\r\n`)
    const read = (index: number) => {
      asked.push(index)
      return Promise.resolve(index < 800 ? piece : undefined)
    }
    await readOriginal(read, { whole: false, size: 50_000, header: 102_400 })
    await readOriginal(read, { whole: true, size: 50_000, header: 102_400 })
    expect(asked).toEqual([0, 0])
  })

  test('an unreadable one is reported as missing', async () => {
    const dsn = await tell({ recipients: [aRecipient(0)], octets: '' })
    expect(textOf(dsn)).toContain('The original message could not be read.')
    expect(takeApart(dsn.content).returned.body).toBe('Return-Path: <app@us.example>\r\n')
  })
})
