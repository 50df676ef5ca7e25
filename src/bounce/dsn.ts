/**
 * Writes a notice: multipart/report (RFC 6522) of three parts, for people, for programs, and the original. Header,
 * fields and their order are Postfix's. Whatever is put in, what comes out is valid mail.
 */
import type { Instant } from '../mail/clock.ts'
import { formatStamp } from '../mail/mail-date.ts'
import { isInternational } from '../mail/address.ts'
import { harmless } from '../mail/reply.ts'
import { queueIdOf, type Debt, type Message } from '../queue/message.ts'
import { explanation } from './explanation.ts'
import { ascii, fold } from './fold.ts'
import type { Notice } from './notice.ts'
import { headerAddress } from './notice-address.ts'
import { needsNoTls, type ReturnedOriginal } from './original.ts'
import { senderShown, statusBlock, type Site, type StatusFacts } from './status-block.ts'
import type { Template } from './templates.ts'

export interface DsnFacts {
  readonly notice: Notice
  readonly message: Message
  readonly original: ReturnedOriginal
  readonly template: Template
  readonly site: Site
  /** enable_threaded_bounces */
  readonly threaded: boolean
  /** The queue id of the notice, and when it is made. */
  readonly queueId: string
  readonly at: Instant
  readonly date: (at: Instant) => string
}

/** A notice, written. */
export interface Dsn {
  readonly content: Uint8Array
  readonly messageId: string
  readonly eightBit: boolean
  /** Its own header needs SMTPUTF8. */
  readonly international: boolean
}

/** A part of the report: header lines, body octets (one per character), and whether some have the eighth bit. */
interface Part {
  readonly header: readonly string[]
  readonly body: string
  readonly eightBit: boolean
}

export function writeDsn(facts: DsnFacts): Dsn {
  const { site, message } = facts
  const told: StatusFacts = { kind: facts.notice.kind, recipients: facts.notice.recipients, message, site, date: facts.date }
  const parts = [textPart(facts, told), statusPart(told), originalPart(facts)]
  const boundary = freeBoundary(`${queueIdOf(message)}.${Math.floor(facts.at / 1000)}/${site.myhostname}`, parts)
  const eightBit = parts.some((part) => part.eightBit)
  const messageId = `<${formatStamp(facts.at)}.${facts.queueId}@${site.myhostname}>`
  const header = headerLines(facts, boundary, eightBit, messageId)
  const pieces = [asOctets(joined(header)), '\r\n', 'This is a report in MIME format.\r\n']
  for (const part of parts) pieces.push(`\r\n--${boundary}\r\n`, joined(encoding(part)), '\r\n', part.body)
  pieces.push(`\r\n--${boundary}--\r\n`)
  const content = Buffer.from(pieces.join(''), 'latin1')
  return { content, messageId, eightBit, international: header.some(isInternational) }
}

const joined = (lines: readonly string[]): string => lines.map((line) => `${line}\r\n`).join('')

/** Text as its octets in UTF-8, one per character. */
const asOctets = (text: string): string => (isInternational(text) ? Buffer.from(text, 'utf8').toString('latin1') : text)

const encoding = ({ header, eightBit }: Part): readonly string[] => (eightBit ? [...header, 'Content-Transfer-Encoding: 8bit'] : header)

function headerLines(facts: DsnFacts, boundary: string, eightBit: boolean, messageId: string): string[] {
  const { notice, site, template } = facts
  const isCopy = notice.to === 'postmaster'
  const date = facts.date(facts.at)
  return [
    `Received: by ${site.myhostname} (${ascii(harmless(site.mailName)).replace(/[()\\]/g, '-')})`,
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

/** A Message-ID that can stand in a header; what the original has may be anything. */
function threading({ threaded, message }: DsnFacts): string[] {
  const id = message.messageId?.trim()
  if (!threaded || id === undefined || !/^<[!-;=?-~]{1,900}>$/.test(id)) return []
  return [`References: ${id}`, `In-Reply-To: ${id}`]
}

function textPart({ notice, template, original, site }: DsnFacts, told: StatusFacts): Part {
  const opening = notice.to === 'sender' ? template.text : fold(`The mail system at ${site.myhostname} reports:`)
  const missing = original.text === undefined ? ['', 'The original message could not be read.'] : []
  const text = joined([...opening, ...explanation(told), ...missing])
  const charset = isInternational(text) ? 'utf-8' : template.charset
  return {
    header: ['Content-Description: Notification', `Content-Type: text/plain; charset=${charset}`],
    body: asOctets(text),
    eightBit: isInternational(text),
  }
}

function statusPart(told: StatusFacts): Part {
  const text = joined(statusBlock(told))
  const type = told.message.smtputf8 ? 'message/global-delivery-status' : 'message/delivery-status'
  return {
    header: ['Content-Description: Delivery report', `Content-Type: ${type}`],
    body: asOctets(text),
    eightBit: isInternational(text),
  }
}

const DESCRIPTION: Readonly<Record<Debt, string>> = { failure: 'Undelivered Message', delay: 'Undelivered Message', success: 'Message' }

function originalPart({ notice, message, original, site }: DsnFacts): Part {
  const { whole } = original
  const type = message.smtputf8 ? `message/global${whole ? '' : '-headers'}` : whole ? 'message/rfc822' : 'text/rfc822-headers'
  const returnPath = `Return-Path: <${harmless(senderShown(message.sender, site)).slice(0, 900)}>\r\n`
  const body = asOctets(returnPath) + (original.text ?? '')
  return {
    header: [`Content-Description: ${DESCRIPTION[notice.kind]}${whole ? '' : ' Headers'}`, `Content-Type: ${type}`],
    body,
    eightBit: /[\u0080-\u00ff]/.test(body),
  }
}

/** Bounds of RFC 2046 §5.1.1. */
const LONGEST_BOUNDARY = 70

/** The wanted boundary, changed until it is valid and no line of any part can be taken for it. */
function freeBoundary(wanted: string, parts: readonly Part[]): string {
  const base = wanted.replace(/[^0-9A-Za-z'()+_,./:=?-]/g, '-').slice(0, LONGEST_BOUNDARY - 8)
  for (let n = 0; ; n++) {
    const boundary = n === 0 ? base : `${base}.${n}`
    if (parts.every(({ body }) => !body.includes(`--${boundary}`))) return boundary
  }
}
