/**
 * Writes a notice: a multipart/report (RFC 6522) with a human-readable text, the delivery status, and the original message.
 * Header, fields and order are those of Postfix. The result is valid mail for every input.
 */
import type { Clock, QueueTime } from '../system/clock.ts'
import { formatStamp, mailDate } from '../mail/mail-date.ts'
import { isInternational } from '../mail/address.ts'
import { maskControls } from '../mail/smtp-reply.ts'
import { queueIdOf, type NoticeDue, type Message } from '../mail/message.ts'
import { explanation } from './dsn-text.ts'
import { ascii, fold } from './text-folding.ts'
import type { Notice } from './notice.ts'
import { headerAddress } from './dsn-address.ts'
import { needsNoTls, type ReturnedOriginal } from './returned-original.ts'
import { senderShown, statusBlock, type ReportingMta, type StatusFacts } from './dsn-status.ts'
import type { Template } from './templates.ts'

interface DsnFacts {
  readonly notice: Notice
  readonly message: Message
  readonly original: ReturnedOriginal
  readonly template: Template
  readonly reportingMta: ReportingMta
  /** enable_threaded_bounces */
  readonly threaded: boolean
  /** Queue id of the notice. */
  readonly queueId: string
  /** Time of the notice. */
  readonly at: QueueTime
  readonly clock: Pick<Clock, 'wall' | 'zone'>
}

/** A composed notice. */
export interface Dsn {
  readonly content: Uint8Array
  readonly messageId: string
  readonly eightBit: boolean
  /** True when the notice's own header needs SMTPUTF8. */
  readonly international: boolean
}

/** A part of the report: its header lines, its body with one character per octet, and whether the body has 8-bit octets. */
interface Part {
  readonly header: readonly string[]
  readonly body: string
  readonly eightBit: boolean
}

const dateOf =
  ({ clock }: DsnFacts) =>
  (at: QueueTime): string =>
    mailDate(at, clock)

export function writeDsn(facts: DsnFacts): Dsn {
  const { reportingMta, message } = facts
  const { kind, recipients } = facts.notice
  const status: StatusFacts = { kind, recipients, message, reportingMta, date: dateOf(facts), at: facts.at }
  const parts = [textPart(facts, status), statusPart(status), originalPart(facts)]
  const boundary = freeBoundary(`${queueIdOf(message)}.${Math.floor(facts.at / 1000)}/${reportingMta.myhostname}`, parts)
  const eightBit = parts.some((part) => part.eightBit)
  const messageId = `<${formatStamp(facts.clock.wall.of(facts.at))}.${facts.queueId}@${reportingMta.myhostname}>`
  const header = headerLines(facts, boundary, eightBit, messageId)
  const pieces = [asOctets(joined(header)), '\r\n', 'This is a report in MIME format.\r\n']
  for (const part of parts) pieces.push(`\r\n--${boundary}\r\n`, joined(encoding(part)), '\r\n', part.body)
  pieces.push(`\r\n--${boundary}--\r\n`)
  const content = Buffer.from(pieces.join(''), 'latin1')
  return { content, messageId, eightBit, international: header.some(isInternational) }
}

const joined = (lines: readonly string[]): string => lines.map((line) => `${line}\r\n`).join('')

/** Text as UTF-8 octets, with one character per octet. */
const asOctets = (text: string): string => (isInternational(text) ? Buffer.from(text, 'utf8').toString('latin1') : text)

const encoding = ({ header, eightBit }: Part): readonly string[] => (eightBit ? [...header, 'Content-Transfer-Encoding: 8bit'] : header)

function headerLines(facts: DsnFacts, boundary: string, eightBit: boolean, messageId: string): string[] {
  const { notice, reportingMta, template } = facts
  const isCopy = notice.to === 'postmaster'
  const date = dateOf(facts)(facts.at)
  return [
    `Received: by ${reportingMta.myhostname} (${ascii(maskControls(reportingMta.mailName)).replace(/[()\\]/g, '-')})`,
    `\tid ${facts.queueId}; ${date}`,
    `Date: ${date}`,
    `From: ${template.from}`,
    `Subject: ${isCopy ? template.postmasterSubject : template.subject}`,
    `To: ${headerAddress(notice.address)}`,
    ...threading(facts),
    ...(needsNoTls(facts.original) ? ['TLS-Required: no'] : []),
    `Auto-Submitted: ${isCopy ? 'auto-generated' : 'auto-replied'}`,
    'MIME-Version: 1.0',
    'Content-Type: multipart/report; report-type=delivery-status;',
    `\tboundary="${boundary}"`,
    ...(eightBit ? ['Content-Transfer-Encoding: 8bit'] : []),
    `Message-Id: ${messageId}`,
  ]
}

/** Header fields for threading. The Message-ID of the original is used only if it is valid in a header field. */
function threading({ threaded, message }: DsnFacts): string[] {
  const id = message.messageId?.trim()
  if (!threaded || id === undefined || !/^<[!-;=?-~]{1,900}>$/.test(id)) return []
  return [`References: ${id}`, `In-Reply-To: ${id}`]
}

function textPart({ notice, template, original, reportingMta }: DsnFacts, status: StatusFacts): Part {
  const opening = notice.to === 'sender' ? template.text : fold(`The mail system at ${reportingMta.myhostname} reports:`)
  const missing = original.text === undefined ? ['', 'The original message could not be read.'] : []
  const text = joined([...opening, ...explanation(status), ...missing])
  const charset = isInternational(text) ? 'utf-8' : template.charset
  return {
    header: ['Content-Description: Notification', `Content-Type: text/plain; charset=${charset}`],
    body: asOctets(text),
    eightBit: isInternational(text),
  }
}

function statusPart(status: StatusFacts): Part {
  const text = joined(statusBlock(status))
  const type = status.message.smtputf8 ? 'message/global-delivery-status' : 'message/delivery-status'
  return {
    header: ['Content-Description: Delivery report', `Content-Type: ${type}`],
    body: asOctets(text),
    eightBit: isInternational(text),
  }
}

const DESCRIPTION: Readonly<Record<NoticeDue, string>> = {
  failure: 'Undelivered Message',
  delay: 'Undelivered Message',
  success: 'Message',
}

function originalPart({ notice, message, original, reportingMta }: DsnFacts): Part {
  const { whole } = original
  const type = message.smtputf8 ? `message/global${whole ? '' : '-headers'}` : whole ? 'message/rfc822' : 'text/rfc822-headers'
  const returnPath = `Return-Path: <${maskControls(senderShown(message.sender, reportingMta)).slice(0, 900)}>\r\n`
  const body = asOctets(returnPath) + (original.text ?? '')
  return {
    header: [`Content-Description: ${DESCRIPTION[notice.kind]}${whole ? '' : ' Headers'}`, `Content-Type: ${type}`],
    body,
    eightBit: /[\u0080-\u00ff]/.test(body),
  }
}

/** Maximum length of a boundary (RFC 2046 §5.1.1). */
const LONGEST_BOUNDARY = 70

/** Derives a valid boundary that does not occur in any part. */
function freeBoundary(wanted: string, parts: readonly Part[]): string {
  const base = wanted.replace(/[^0-9A-Za-z'()+_,./:=?-]/g, '-').slice(0, LONGEST_BOUNDARY - 8)
  for (let n = 0; ; n++) {
    const boundary = n === 0 ? base : `${base}.${n}`
    if (parts.every(({ body }) => !body.includes(`--${boundary}`))) return boundary
  }
}
