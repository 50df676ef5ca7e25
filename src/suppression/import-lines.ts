/**
 * Lines of an import into the suppression list: addresses, or CSV (RFC 4180, without line breaks in fields) with the columns that an export has.
 * A mistake is reported with its line, and nothing of such an import is used.
 */
import { parseDomain } from '../mail/address-path.ts'
import { parseMailbox } from '../mail/mailbox-list.ts'
import { parseNamedInstant } from '../mail/message-times.ts'
import { ALL_SENDERS, SUPPRESSION_REASONS, type SuppressionKey, type SuppressionReason } from '../store/records/suppression-entry.ts'
import type { QueueTime } from '../system/clock.ts'
import type { WallView } from '../system/wall-view.ts'
import type { ImportedSuppression } from './suppression-changes.ts'

interface ImportMistake {
  /** Counted from 1. */
  readonly line: number
  readonly text: string
}

interface ImportTerms {
  /** Scope of lines that name none. */
  readonly scope: string
  readonly now: QueueTime
  readonly wall: WallView
}

/** Columns that an import uses, and those that only an export has. */
const USED = ['scope', 'address', 'reason', 'text', 'expire_time'] as const
const UNUSED: readonly string[] = ['state', 'since_time', 'hits', 'first_hit_time', 'last_hit_time', 'destination', 'added_by', 'listings']

type Column = (typeof USED)[number]

/** A field, or the separator that ends it. */
const FIELD = /"((?:[^"]|"")*)"|([^,"]*)/y

/**
 * Returns an address, or `@domain`, in the form in which it is kept; undefined for other text, and for a pattern such as `*@domain`, which would be
 * listed as an address that no mail has. An address with a star is written in quotes: `"a*b"@domain`.
 */
export function suppressedAddress(text: string): string | undefined {
  if (/^[^"]*\*/.test(text)) return undefined
  if (!text.startsWith('@')) return text.includes('@') ? parseMailbox(text, 'invalid') : undefined
  const domain = parseDomain(text.slice(1))
  return domain === undefined ? undefined : `@${domain}`
}

/** Returns a scope in the form in which it is kept; undefined for text that is neither `*` nor a domain. */
export const suppressionScope = (text: string): string | undefined => (text === ALL_SENDERS ? text : parseDomain(text))

const isReason = (text: string): text is SuppressionReason => (SUPPRESSION_REASONS as readonly string[]).includes(text)

/** Either all entries, or the mistakes. */
export function importedLines(
  text: string,
  terms: ImportTerms,
): { readonly entries: readonly ImportedSuppression[]; readonly mistakes: readonly ImportMistake[] } {
  const lines = text.replace(/^\u{feff}/u, '').split(/\r?\n/)
  const heading = headingOf(lines[0] ?? '')
  if (typeof heading === 'string') return { entries: [], mistakes: [{ line: 1, text: heading }] }
  const entries: ImportedSuppression[] = []
  const mistakes: ImportMistake[] = []
  const seen = new Map<string, number>()
  for (const [n, written] of lines.entries()) {
    if (written.trim() === '' || (n === 0 && heading !== null)) continue
    const entry = entryOf(written, heading ?? ['address'], terms)
    const mistake = typeof entry === 'string' ? entry : repetition(entry, n + 1, seen)
    if (mistake !== undefined) mistakes.push({ line: n + 1, text: mistake })
    else if (typeof entry !== 'string') entries.push(entry)
  }
  return { entries: mistakes.length === 0 ? entries : [], mistakes }
}

/** The columns of the first line; null when it is no heading. Returns a mistake as text. */
function headingOf(line: string): readonly string[] | null | string {
  const columns = fieldsOf(line)?.map((name) => name.trim())
  if (columns === undefined || !columns.includes('address')) return null
  const unknown = columns.find((name) => !(USED as readonly string[]).includes(name) && !UNUSED.includes(name))
  return unknown === undefined ? columns : `unknown column ${JSON.stringify(unknown)}; write some of ${USED.join(', ')}`
}

function entryOf(line: string, columns: readonly string[], { scope: usual, now, wall }: ImportTerms): ImportedSuppression | string {
  const fields = fieldsOf(line)
  if (fields === undefined) return 'a quotation mark without its end, or within a field without quotes'
  if (fields.length !== columns.length) return `${fields.length} fields instead of ${columns.length}: ${columns.join(', ')}`
  const field = (name: Column): string => fields[columns.indexOf(name)]?.trim() ?? ''
  const address = suppressedAddress(field('address'))
  if (address === undefined) return `${JSON.stringify(field('address'))} is neither an address nor @domain`
  const scope = suppressionScope(field('scope') || usual)
  if (scope === undefined) return `scope: ${JSON.stringify(field('scope'))} is neither * nor a sender domain`
  const reason = field('reason') || 'import'
  if (!isReason(reason)) return `reason: ${JSON.stringify(reason)} is none of ${SUPPRESSION_REASONS.join(', ')}`
  const end = field('expire_time')
  const instant = end === '' ? null : parseNamedInstant(end)
  if (instant === undefined) return `expire_time: ${JSON.stringify(end)} is no time such as 2027-01-31T08:00:00Z`
  const until = instant === null ? null : wall.queueTime(instant)
  if (until !== null && until <= now) return `expire_time: ${end} is over: remove the line`
  return { scope, address, reason, text: field('text') || null, until }
}

function repetition({ scope, address }: SuppressionKey, line: number, seen: Map<string, number>): string | undefined {
  const key = `${scope} ${address}`
  const former = seen.get(key)
  if (former === undefined) seen.set(key, line)
  return former === undefined ? undefined : `repeats line ${former}: ${address} for ${scope}`
}

/** The fields of a line; undefined for misplaced quotation marks. */
function fieldsOf(line: string): readonly string[] | undefined {
  if (!line.includes('"')) return line.split(',').map(plain)
  const fields: string[] = []
  for (let at = 0; ; at++) {
    FIELD.lastIndex = at
    const match = FIELD.exec(line)
    if (match === null) return undefined
    at = FIELD.lastIndex
    fields.push(plain(match[1]?.replaceAll('""', '"') ?? match[2] ?? ''))
    if (at === line.length) return fields
    if (line[at] !== ',') return undefined
  }
}

/** A field without the apostrophe that an export writes before characters of formulas. */
const plain = (field: string): string => field.replace(/^'(?=[=+\-@])/, '')
