/**
 * Parses notices of other mail systems (RFC 3464, RFC 6533). The input is not trusted: the parser reads only the first megabyte,
 * 1,000 parts and ten levels of nesting. It does not look for parts inside the returned original.
 */
import { NOTICE_ACTIONS, type NoticeAction } from './dsn-status.ts'
import type { WallTime } from '../system/clock.ts'
import { parseMailDate } from '../mail/mail-date.ts'
import { asText, decodeBody, readFields, readPart, splitMultipart, trimmed, type Fields, type MimePart } from '../mail/mime/mime-reader.ts'

/** Status fields of one recipient (RFC 3464 §2.3). */
export interface NoticeRecipient {
  /** Final-Recipient, without its type. */
  readonly recipient: string
  readonly action: NoticeAction
  /** Enhanced status code: `5.1.1`; empty if absent. */
  readonly status: string
  /** Diagnostic-Code, without its type: `550 5.1.1 no such user`. */
  readonly diagnostic?: string | undefined
  /** Type of Diagnostic-Code: `smtp`, or a type of the reporting system. */
  readonly diagnosticType?: string | undefined
  /** Remote-MTA, without its type. */
  readonly remoteMta?: string | undefined
  /** Will-Retry-Until, in milliseconds since 1970. */
  readonly willRetryUntil?: WallTime | undefined
  /** Original-Recipient, with its type: `rfc822;ann@example.net`. */
  readonly originalRecipient?: string | undefined
}

/** A notice as `parseNotice` reads it. */
export interface ParsedNotice {
  /** Action of the first recipient. */
  readonly action: NoticeAction
  readonly recipients: readonly NoticeRecipient[]
  /** Reporting-MTA, without its type. */
  readonly reportingMta?: string | undefined
  /** Arrival-Date, in milliseconds since 1970. */
  readonly arrival?: WallTime | undefined
  /** Deliver-By-Date (RFC 2852 §5), in milliseconds since 1970. */
  readonly deliverBy?: WallTime | undefined
  /** Original-Envelope-Id. */
  readonly envid?: string | undefined
  /** The human-readable part, with `\n` line ends; empty if absent. */
  readonly text: string
  /** The returned message or header; undefined if absent. */
  readonly original?: string | undefined
}

const MOST_BYTES = 1_048_576
const MOST_PARTS = 1_000
const DEEPEST = 10

const STATUS = new Set(['message/delivery-status', 'message/global-delivery-status'])
const ORIGINAL = new Set(['message/rfc822', 'text/rfc822-headers', 'message/rfc822-headers', 'message/global', 'message/global-headers'])

/** Parses a message with header and body; null if it is not a notice. Never throws. */
export function parseNotice(content: Uint8Array): ParsedNotice | null {
  const octets = Buffer.from(content.buffer, content.byteOffset, Math.min(content.byteLength, MOST_BYTES)).toString('latin1')
  const parts = [...leaves(readPart(octets), { left: MOST_PARTS }, 1)]
  const at = parts.findIndex(({ type }) => STATUS.has(type))
  const status = parts[at]
  if (status === undefined) return null
  const [message, ...blocks] = statusBlocks(decodeBody(status))
  const recipients = blocks.flatMap((fields) => readRecipient(fields) ?? [])
  const [first] = recipients
  if (message === undefined || first === undefined) return null
  const original = parts.slice(at + 1).find(({ type }) => ORIGINAL.has(type))
  const text = parts.slice(0, at).find(({ type }) => type === 'text/plain')
  return {
    action: first.action,
    recipients,
    reportingMta: typed(message.get('reporting-mta'))?.value,
    arrival: parseMailDate(message.get('arrival-date') ?? ''),
    deliverBy: parseMailDate(message.get('deliver-by-date') ?? ''),
    envid: shown(message.get('original-envelope-id')),
    text: text === undefined ? '' : asText(decodeBody(text)).replaceAll('\r\n', '\n'),
    original: original === undefined ? undefined : asText(decodeBody(original)),
  }
}

/** Yields the parts that are not multiparts, in order. Parts inside an attached message are not included. */
function* leaves(part: MimePart, budget: { left: number }, depth: number): Generator<MimePart> {
  if (!part.type.startsWith('multipart/')) {
    yield part
    return
  }
  if (depth > DEEPEST) return
  for (const child of splitMultipart(part, budget.left)) {
    if (budget.left-- <= 0) return
    yield* leaves(readPart(child), budget, depth + 1)
  }
}

/** The groups of fields: first the fields of the message, then one group per recipient (RFC 3464 §2.1). */
const statusBlocks = (octets: string): readonly Fields[] =>
  trimmed(octets)
    .split(/\r?\n(?:[ \t]*\r?\n)+/, MOST_PARTS)
    .map(readFields)

function readRecipient(fields: Fields): NoticeRecipient | undefined {
  const recipient = typed(fields.get('final-recipient')) ?? typed(fields.get('original-recipient'))
  const word = /^[a-z]+/.exec(fields.get('action')?.toLowerCase() ?? '')?.[0]
  const action = NOTICE_ACTIONS.find((known) => known === word)
  if (recipient === undefined || action === undefined) return undefined
  const diagnostic = typed(fields.get('diagnostic-code'))
  return {
    recipient: address(recipient),
    action,
    status: /^[245]\.\d{1,3}\.\d{1,3}/.exec(fields.get('status') ?? '')?.[0] ?? '',
    diagnostic: diagnostic?.value,
    diagnosticType: diagnostic?.type,
    remoteMta: typed(fields.get('remote-mta'))?.value,
    willRetryUntil: parseMailDate(fields.get('will-retry-until') ?? ''),
    originalRecipient: shown(fields.get('original-recipient')),
  }
}

const shown = (value: string | undefined): string | undefined => (value === undefined ? undefined : asText(value))

/** Parses `type; value`. The type is optional, because some systems omit it. */
function typed(field: string | undefined): { readonly type: string; readonly value: string } | undefined {
  if (field === undefined || field === '') return undefined
  const match = /^([\w-]+) *; *(.*)$/s.exec(field)
  return { type: match?.[1]?.toLowerCase() ?? '', value: asText(match?.[2] ?? field) }
}

/** Returns the address without its type. Decodes an address outside ASCII that is written in ASCII (RFC 6533 §3). */
function address({ type, value }: { readonly type: string; readonly value: string }): string {
  const bare = /^<(.*)>$/.exec(value)?.[1] ?? value
  if (type !== 'utf-8') return bare
  return bare.replace(/\\x\{([0-9A-Fa-f]{2,6})\}/g, (whole, digits: string) => {
    const point = Number.parseInt(digits, 16)
    return point <= 0x10ffff ? String.fromCodePoint(point) : whole
  })
}
