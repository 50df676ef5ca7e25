/** For any reply of a remote server, any address and any original, the notice is valid and reports the failure. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Notice } from '../../src/bounce/notice.ts'
import { parseNotice } from '../../src/bounce/dsn-parser.ts'
import { oneLine } from '../../src/bounce/text-folding.ts'
import { formatMailDate, parseMailDate } from '../../src/mail/mail-date.ts'
import type { DeliveryStatus } from '../../src/mail/smtp-reply.ts'
import { aMessage, aRecipient, expectValid, original, ORIGINAL, settingsOf, takeApart, written } from '../support/notices.ts'

const settings = settingsOf()

const LONG = 5_000
/** Text as the network has it: any characters, controls, lone surrogates, long runs without a blank. */
const wild = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 300 }),
  fc.string({ unit: fc.constantFrom('\0', '\r', '\n', '\t', '\u001b', '\u2028', ' ', ':', ';', '-', 'x', 'é', '\u{1f4a9}', '\ud800') }),
  fc.string({ minLength: LONG / 2, maxLength: LONG }),
  fc.constant('y'.repeat(LONG)),
)
const status = fc.tuple(fc.constantFrom(4, 5), fc.nat(999), fc.nat(999)).map((parts) => parts.join('.'))
const last: fc.Arbitrary<DeliveryStatus> = fc.record({
  status,
  reason: wild,
  reply: fc.option(wild, { nil: undefined }),
  remoteMta: fc.option(wild, { nil: undefined }),
  stage: fc.constant('rcpt' as const),
})
/** Addresses as SMTP can carry them, and worse. */
const address = fc.oneof(
  fc.emailAddress(),
  fc.tuple(wild, fc.domain()).map(([local, domain]) => `${local}@${domain}`),
  fc.tuple(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 64 }), fc.domain()).map(([local, domain]) => `${local}@${domain}`),
)
const octets = fc.oneof(
  fc.uint8Array({ maxLength: 3_000 }),
  fc
    .string({ unit: fc.constantFrom('\r', '\n', '\0', '--', 'Content-Type: multipart/mixed; boundary=a', '\r\n', '\r\n--a', 'x', '\xff') })
    .map((text) => Buffer.from(text, 'latin1')),
  fc.nat(20).map((deep) => Buffer.from(nested(deep))),
  fc.constant(Buffer.from(`X-Long: ${'z'.repeat(1_000_000)}\r\n\r\nbody\r\n`)),
)

/** Messages inside messages. */
const nested = (deep: number): string =>
  deep === 0
    ? ORIGINAL
    : `Content-Type: multipart/mixed; boundary=b${deep}\r\n\r\n--b${deep}\r\nContent-Type: message/rfc822\r\n\r\n${nested(deep - 1)}\r\n--b${deep}--\r\n`

const recipient = fc.record({
  address,
  last: fc.option(last, { nil: null }),
  orcpt: fc.option(wild, { nil: undefined }),
  state: fc.constantFrom('bounced' as const, 'expired' as const),
  attempts: fc.nat(100),
})
const message = fc.record({
  sender: fc.oneof(address, wild),
  smtputf8: fc.boolean(),
  envid: fc.option(wild, { nil: undefined }),
  messageId: fc.option(wild, { nil: undefined }),
})

test('every notice is valid mail, and its delivery-status part matches the outcome', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(recipient, { minLength: 1, maxLength: 4 }),
      message,
      octets,
      fc.constantFrom('full' as const, 'headers' as const),
      async (facts, about, bytes, returns) => {
        const recipients = facts.map((one, n) => aRecipient(n, one))
        const subject = aMessage(about)
        const notice: Notice = { kind: 'failure', to: 'sender', address: subject.sender, from: '', recipients, returns }
        const dsn = written(notice, subject, await original(bytes, settings, returns), settings)
        expectValid(dsn)

        const read = parseNotice(dsn.content)
        expect(read?.recipients.map((one) => one.status)).toEqual(
          recipients.map((one) => one.last?.status ?? (one.state === 'expired' ? '4.0.0' : '5.0.0')),
        )
        expect(read?.recipients.every((one) => one.action === 'failed')).toBe(true)
        for (const [n, one] of recipients.entries()) expect(read?.recipients[n]?.recipient).toBe(asWritten(one.address))
      },
    ),
    { numRuns: 400 },
  )
})

/** An address after its way through a header field: one line, not too long. */
const asWritten = (text: string): string => oneLine(text, 300)

test('the notice quotes the remote reply, with control characters masked', async () => {
  await fc.assert(
    fc.asyncProperty(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 1_500 }), async (words) => {
      const reply = `550 5.1.1 ${words}`
      const recipients = [
        aRecipient(0, { last: { status: '5.1.1', reason: `said: ${reply}`, reply, remoteMta: 'mx.example.net', stage: 'rcpt' } }),
      ]
      const notice: Notice = { kind: 'failure', to: 'sender', address: 'app@us.example', from: '', recipients, returns: 'headers' }
      const subject = aMessage({ smtputf8: true })
      const { content } = written(notice, subject, await original(ORIGINAL, settings, 'headers'), settings)
      const [said] = parseNotice(content)?.recipients ?? []
      // A word longer than a line is split, so blanks are not compared.
      expect(said?.diagnostic?.replaceAll(' ', '')).toBe(oneLine(reply).replaceAll(' ', ''))
    }),
    { numRuns: 200 },
  )
})

test('a valid original is returned byte for byte', async () => {
  const line = fc.string({
    unit: fc
      .integer({ min: 1, max: 255 })
      .filter((n) => n !== 10 && n !== 13)
      .map((n) => String.fromCharCode(n)),
    maxLength: 100,
  })
  await fc.assert(
    fc.asyncProperty(fc.array(line, { maxLength: 50 }), async (lines) => {
      const sound = ORIGINAL + lines.map((text) => `${text}\r\n`).join('')
      const notice: Notice = {
        kind: 'failure',
        to: 'sender',
        address: 'app@us.example',
        from: '',
        recipients: [aRecipient(0)],
        returns: 'full',
      }
      const { content } = written(notice, aMessage(), await original(sound, settings, 'full'), settings)
      expect(takeApart(content).returned.body).toBe(`Return-Path: <app@us.example>\r\n${sound}`)
    }),
    { numRuns: 200 },
  )
})

test('the parser accepts any input', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.uint8Array({ maxLength: 2_000 }),
        fc.nat(30).map((deep) => Buffer.from(nested(deep))),
      ),
      (bytes) => {
        expect(parseNotice(bytes)).toBeNull()
      },
    ),
    { numRuns: 500 },
  )
})

test('dates round-trip in any time zone', () => {
  const second = fc.integer({ min: -30_000_000_000, max: 200_000_000_000 })
  fc.assert(
    fc.property(second, fc.integer({ min: -720, max: 840 }), (at, offset) => {
      expect(parseMailDate(formatMailDate(at * 1000, { offset, name: 'X' }))).toBe(at * 1000)
    }),
  )
})
