/**
 * Reads the MIME structure of incoming notices: header fields, parameters, multiparts, transfer encodings (RFC 2045, 2046).
 * Strings have one character per octet. The input is not trusted.
 */

/** Unfolded header fields by lower-case name. Blanks are collapsed; the first field of each name is used. */
export type Fields = ReadonlyMap<string, string>

export interface MimePart {
  readonly fields: Fields
  /** Media type in lower case: `text/plain`. */
  readonly type: string
  readonly parameters: ReadonlyMap<string, string>
  /** Body as received, with its transfer encoding. */
  readonly body: string
}

const END_OF_HEADER = /(?:^|\r?\n)\r?\n/
/** Maximum number of fields read. */
const MOST_FIELDS = 1_000
/** Maximum length of a Content-Type. */
const LONGEST_TYPE = 2_000

/** Removes ASCII blanks at both ends. Other octets are kept, because they may be parts of characters. */
export function trimmed(octets: string): string {
  const isBlank = (at: number): boolean => ' \t\r\n'.includes(octets.charAt(at))
  let from = 0
  let to = octets.length
  while (from < to && isBlank(from)) from++
  while (to > from && isBlank(to - 1)) to--
  return octets.slice(from, to)
}

/** Parses header fields. Lines that are not fields are skipped. */
export function readFields(header: string): Fields {
  const fields = new Map<string, string>()
  const lines = header.replace(/\r?\n[ \t]+/g, ' ').split(/\r?\n/, MOST_FIELDS)
  for (const line of lines) {
    const colon = line.indexOf(':')
    const name = trimmed(line.slice(0, Math.max(0, colon))).toLowerCase()
    if (!/^[!-~]+$/.test(name) || fields.has(name)) continue
    fields.set(name, trimmed(line.slice(colon + 1).replace(/[ \t]+/g, ' ')))
  }
  return fields
}

/** Parses a message or a body part. Without a valid Content-Type the part is plain text (RFC 2045 §5.2). */
export function readPart(octets: string): MimePart {
  const end = END_OF_HEADER.exec(octets)
  const fields = readFields(end === null ? octets : octets.slice(0, end.index))
  const body = end === null ? '' : octets.slice(end.index + end[0].length)
  return { fields, body, ...contentType(fields.get('content-type')?.slice(0, LONGEST_TYPE) ?? '') }
}

function contentType(value: string): Pick<MimePart, 'type' | 'parameters'> {
  const type = /^\s*([\w!#$&^.+-]+\/[\w!#$&^.+-]+)/.exec(value)?.[1]?.toLowerCase() ?? 'text/plain'
  const parameters = new Map<string, string>()
  for (const match of value.matchAll(/;\s*([\w!#$&^.+*-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;"]+))/g)) {
    const name = (match[1] ?? '').toLowerCase()
    if (!parameters.has(name)) parameters.set(name, match[2]?.replace(/\\(.)/g, '$1') ?? match[3] ?? '')
  }
  return { type, parameters }
}

/** The body parts between the boundaries, at most `limit`. The last part may lack its closing boundary. */
export function splitMultipart({ body, parameters }: MimePart, limit: number): readonly string[] {
  const boundary = parameters.get('boundary') ?? ''
  if (boundary === '' || boundary.length > 200) return []
  const parts: string[] = []
  let start = -1
  for (const { at, next, last } of delimiters(body, `--${boundary}`)) {
    if (start >= 0) parts.push(body.slice(start, Math.max(start, at)))
    if (last || parts.length >= limit) return parts
    start = next
  }
  if (start >= 0) parts.push(body.slice(start))
  return parts.slice(0, limit)
}

interface Delimiter {
  /** End of the previous part. The line end before a delimiter belongs to the delimiter. */
  readonly at: number
  readonly next: number
  readonly last: boolean
}

function* delimiters(body: string, mark: string): Generator<Delimiter> {
  for (let at = body.indexOf(mark); at >= 0; at = body.indexOf(mark, at + mark.length)) {
    if (at > 0 && body[at - 1] !== '\n') continue
    const lineEnd = body.indexOf('\n', at)
    const rest = trimmed(body.slice(at + mark.length, lineEnd < 0 ? body.length : lineEnd))
    // Skips a longer boundary that begins with the same text.
    if (rest !== '' && rest !== '--') continue
    const before = at > 1 && body[at - 2] === '\r' ? at - 2 : at - 1
    yield { at: before, next: lineEnd < 0 ? body.length : lineEnd + 1, last: rest === '--' }
  }
}

/** Decodes the transfer encoding of a body. Octets that are invalid in base64 or quoted-printable are skipped. */
export function decodeBody({ fields, body }: MimePart): string {
  const encoding = fields.get('content-transfer-encoding')?.toLowerCase() ?? '7bit'
  if (encoding === 'base64') return Buffer.from(body.replace(/[^A-Za-z0-9+/]/g, ''), 'base64').toString('latin1')
  if (encoding !== 'quoted-printable') return body
  return body
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\r\n')
    .replaceAll('=\r\n', '')
    .replace(/=([0-9A-Fa-f]{2})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)))
}

/** Decodes octets as UTF-8 when they are valid UTF-8, else as ISO 8859-1. */
export function asText(octets: string): string {
  const bytes = Buffer.from(octets, 'latin1')
  const text = bytes.toString('utf8')
  return Buffer.from(text, 'utf8').equals(bytes) ? text : octets
}
