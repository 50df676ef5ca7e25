/** Builds messages, recipients and notices, and validates a notice as mail. */
import { VirtualClock } from '../../src/testkit/virtual/virtual-clock.ts'
import { expect } from 'vitest'
import { noticeSettings, type NoticeSettings } from '../../src/bounce/notice-writer.ts'
import { loadTemplates } from '../../src/bounce/templates.ts'
import { writeDsn, type Dsn } from '../../src/bounce/dsn.ts'
import { readPart, splitMultipart, type MimePart } from '../../src/mail/mime/mime-reader.ts'
import type { Notice } from '../../src/bounce/notice.ts'
import { readOriginal, type ReturnedOriginal } from '../../src/bounce/returned-original.ts'
import { configFrom, type LoadedConfig } from '../../src/config/load.ts'
import { DAY, type QueueTime } from '../../src/system/clock.ts'
import { formatReply, parseReply, type DeliveryStatus, type Stage } from '../../src/mail/smtp-reply.ts'
import { queueIdOf, recipientId, type Message, type Recipient } from '../../src/mail/message.ts'

/** Arrival time of the messages of these tests: 2026-01-05T09:00:00Z. */
export const ARRIVAL: QueueTime = 1_767_603_600_000

export function loaded(overrides: readonly string[] = []): LoadedConfig {
  return configFrom({ myorigin: 'example.org' }, 'relay.example', { overrides })
}

export function settingsOf(overrides: readonly string[] = [], templates?: string): NoticeSettings {
  const config = loaded(overrides)
  const file = templates === undefined ? undefined : { path: 'bounce.cf', content: templates }
  return noticeSettings(config.config, loadTemplates(config, file).templates)
}

export const aMessage = (facts: Partial<Message> = {}): Message => ({
  id: 42,
  createdAt: ARRIVAL,
  arrivedAt: ARRIVAL,
  sender: 'app@us.example',
  size: 1_000,
  contentId: 42,
  smtputf8: false,
  ...facts,
})

/** Delivery status for a server's reply at a stage, as a delivery agent returns it. */
export function said(words: string, facts: Partial<DeliveryStatus> & { readonly stage?: Stage } = {}): DeliveryStatus {
  const reply = parseReply(words)
  const status = reply?.status ?? `${words.charAt(0)}.0.0`
  const host = facts.remoteMta ?? 'mx.example.net'
  return {
    status,
    reason: `host ${host}[192.0.2.25] said: ${words} (in reply to RCPT TO command)`,
    reply: reply === undefined ? words : formatReply(reply),
    remoteMta: host,
    stage: 'rcpt',
    ...facts,
  }
}

export const refusedConnection: DeliveryStatus = {
  status: '4.4.1',
  reason: 'connect to mx.example.net[192.0.2.25]:25: Connection refused',
  stage: 'connect',
}

export function aRecipient(position: number, facts: Partial<Recipient> = {}): Recipient {
  return {
    id: recipientId(42, position),
    address: `user${position}@example.net`,
    destination: 'example.net',
    state: 'bounced',
    dueAt: ARRIVAL,
    expiresAt: ARRIVAL + 2 * DAY,
    steps: 1,
    attempts: 1,
    deliveryStarts: 0,
    last: said('550 5.1.1 no such user'),
    settledAt: ARRIVAL,
    noticeDue: 'failure',
    ...facts,
  }
}

export const expired = (position: number, facts: Partial<Recipient> = {}): Recipient =>
  aRecipient(position, {
    state: 'expired',
    attempts: 46,
    steps: 46,
    last: said('450 4.2.1 busy'),
    settledAt: ARRIVAL + 2 * DAY,
    ...facts,
  })

export const delayed = (position: number, facts: Partial<Recipient> = {}): Recipient =>
  aRecipient(position, { state: 'waiting', attempts: 6, last: said('450 4.2.1 busy'), noticeDue: 'delay', settledAt: undefined, ...facts })

export const relayed = (position: number, facts: Partial<Recipient> = {}): Recipient =>
  aRecipient(position, { state: 'delivered', last: said('250 2.0.0 Ok'), noticeDue: 'success', ...facts })

export const ORIGINAL =
  'Received: from client.example by relay.example\r\nFrom: app@us.example\r\nTo: ann@example.net\r\n' +
  'Subject: hello\r\nMessage-ID: <1@us.example>\r\n\r\nThe text.\r\n'

/** Reads an original from octets, in chunks as from a store. */
export function original(octets: string | Uint8Array, settings: NoticeSettings, returns: Notice['returns']): Promise<ReturnedOriginal> {
  const bytes = typeof octets === 'string' ? Buffer.from(octets, 'latin1') : octets
  const pieces = Array.from({ length: Math.ceil(bytes.length / 65_536) }, (_, n) => bytes.subarray(n * 65_536, (n + 1) * 65_536))
  return readOriginal((index) => Promise.resolve(pieces[index]), {
    whole: returns === 'full',
    size: settings.rules.sizeLimit,
    header: settings.headerLimit,
  })
}

/** Writes a notice at the time its message would have expired. */
export function written(notice: Notice, message: Message, returned: ReturnedOriginal, settings: NoticeSettings): Dsn {
  const at = ARRIVAL + 2 * DAY
  return writeDsn({
    notice,
    message,
    original: returned,
    reportingMta: settings.reportingMta,
    threaded: settings.threaded,
    template: settings.templates[notice.kind],
    queueId: queueIdOf({ id: 77, createdAt: at }),
    at,
    clock: new VirtualClock({ startsAt: at, zone: () => ({ offset: 60, name: 'CET' }) }),
  })
}

export interface ReadNotice {
  readonly whole: MimePart
  readonly text: MimePart
  readonly status: MimePart
  readonly returned: MimePart
}

/** Splits a notice into its parts (RFC 6522). */
export function takeApart(content: Uint8Array): ReadNotice {
  const whole = readPart(Buffer.from(content).toString('latin1'))
  const parts = splitMultipart(whole, 10)
  expect(parts).toHaveLength(3)
  const [text, status, returned] = parts.map(readPart)
  if (text === undefined || status === undefined || returned === undefined) throw new Error('a notice has three parts')
  return { whole, text, status, returned }
}

/** Throws an error unless the octets are a valid notice and valid mail. */
export function expectValid(dsn: Dsn): ReadNotice {
  const octets = Buffer.from(dsn.content).toString('latin1')
  expect(octets).not.toMatch(/\0|\r(?!\n)|(?<!\r)\n/)
  const longest = octets.split('\r\n').reduce((most, line) => Math.max(most, line.length), 0)
  expect(longest).toBeLessThanOrEqual(998)
  const header = Buffer.from(octets.slice(0, octets.indexOf('\r\n\r\n')), 'latin1').toString('utf8')
  for (const line of header.split('\r\n')) expect(line).toMatch(/^(?:[!-9;-~]+: ?|\t)\P{Cc}+$/u)
  if (!dsn.international) expect(header).toMatch(/^\p{ASCII}*$/u)
  if (!dsn.eightBit && !dsn.international) expect(octets).toMatch(/^\p{ASCII}*$/u)

  const notice = takeApart(dsn.content)
  expect(notice.whole.type).toBe('multipart/report')
  expect(notice.whole.parameters.get('report-type')).toBe('delivery-status')
  expect(notice.whole.parameters.get('boundary')).toMatch(/^[0-9A-Za-z'()+_,./:=?-]{1,70}$/)
  for (const part of [notice.text, notice.status, notice.returned]) {
    const eightBit = /\P{ASCII}/u.test(part.body)
    expect(part.fields.get('content-transfer-encoding')).toBe(eightBit ? '8bit' : undefined)
    if (eightBit) expect(notice.whole.fields.get('content-transfer-encoding')).toBe('8bit')
  }
  expect(notice.text.type).toBe('text/plain')
  if (notice.status.type === 'message/delivery-status') expect(notice.status.body).toMatch(/^\p{ASCII}*$/u)
  return notice
}
