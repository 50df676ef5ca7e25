/** Parses mail for people and for tests: header fields, text, HTML and attachments. The input is not trusted: parts and nesting are limited. */
import { createHash } from 'node:crypto'
import { asText, decodeBody, readPart, splitMultipart, type MimePart } from './mime-reader.ts'
import { fieldsOf } from '../headers.ts'
import { decoded, decodedField } from './encoded-text.ts'

const MOST_PARTS = 1_000
const DEEPEST = 10

export interface Attachment {
  readonly name: string | null
  readonly type: string
  readonly size: number
  /** Content-ID, without its brackets. */
  readonly cid: string | null
  readonly sha256: string
  /** Number of the part. */
  readonly part: number
}

export interface ParsedMail {
  readonly headers: readonly { readonly name: string; readonly value: string }[]
  readonly subject: string
  /** The first plain text, with `\n` line ends; null without one. */
  readonly text: string | null
  readonly html: string | null
  readonly attachments: readonly Attachment[]
}

function* leaves(part: MimePart, depth: number): Generator<MimePart> {
  if (!part.type.startsWith('multipart/') || depth >= DEEPEST) yield part
  else for (const inner of splitMultipart(part, MOST_PARTS)) yield* leaves(readPart(inner), depth + 1)
}

/** Body parts that are no multiparts, in their order. */
const partsOf = (content: Uint8Array): readonly MimePart[] =>
  [...leaves(readPart(Buffer.from(content).toString('latin1')), 1)].slice(0, MOST_PARTS)

/** Decoded octets of a part, counted from 1; null without such a part. */
export function partContent(content: Uint8Array, number: number): Buffer | null {
  const part = partsOf(content)[number - 1]
  return part === undefined ? null : Buffer.from(decodeBody(part), 'latin1')
}

const unquoted = (text: string): string => (/^".*"$/s.test(text) ? text.slice(1, -1).replaceAll(/\\(.)/g, '$1') : text)

/** File name in Content-Disposition or Content-Type: as RFC 2231, RFC 2047 or plain text have it. */
function nameOf({ fields, parameters }: MimePart): string | null {
  const disposition = fields.get('content-disposition') ?? ''
  const [, charset = '', extended] = /;\s*filename\*=([^']*)'[^']*'([^\s;]*)/i.exec(disposition) ?? []
  if (extended !== undefined)
    return decoded(
      extended.replaceAll(/%([0-9a-f]{2})/gi, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16))),
      charset,
    )
  const [, plain] = /;\s*filename=("(?:[^"\\]|\\.)*"|[^\s;]+)/i.exec(disposition) ?? []
  const name = plain === undefined ? parameters.get('name') : unquoted(plain)
  return name === undefined ? null : decodedField(asText(name))
}

const isAttached = (part: MimePart): boolean => (part.fields.get('content-disposition') ?? '').toLowerCase().startsWith('attachment')

const textOf = (part: MimePart | undefined): string | null =>
  part === undefined ? null : decoded(decodeBody(part), part.parameters.get('charset')).replaceAll('\r\n', '\n')

/** Results by content, because a wait examines each mail many times. */
const parsed = new WeakMap<Uint8Array, ParsedMail>()

/** Parses a message with header and body. Never throws. */
export function parseMail(content: Uint8Array): ParsedMail {
  const known = parsed.get(content) ?? parse(content)
  parsed.set(content, known)
  return known
}

function parse(content: Uint8Array): ParsedMail {
  const parts = partsOf(content)
  const body = (type: string): MimePart | undefined => parts.find((part) => part.type === type && !isAttached(part))
  const [text, html] = [body('text/plain'), body('text/html')]
  const headers = [...fieldsOf(content)].map(({ name, value }) => ({ name, value: decodedField(value) }))
  const attachments = parts.flatMap((part, at): readonly Attachment[] => {
    if (part === text || part === html) return []
    const octets = Buffer.from(decodeBody(part), 'latin1')
    const cid = part.fields.get('content-id')?.replace(/^<(.*)>$/, '$1') ?? null
    const sha256 = createHash('sha256').update(octets).digest('hex')
    return [{ name: nameOf(part), type: part.type, size: octets.length, cid, sha256, part: at + 1 }]
  })
  return {
    headers,
    subject: headers.find(({ name }) => name === 'subject')?.value ?? '',
    text: textOf(text),
    html: textOf(html),
    attachments,
  }
}
