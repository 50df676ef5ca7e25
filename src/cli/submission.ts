/**
 * What `sendmail` makes of its input before it becomes mail: lines in order, addresses complete, recipients found in the
 * header. Pure.
 */
import addressparser from 'nodemailer/lib/addressparser'
import { harmless } from '../mail/reply.ts'

/** Removes what mailboxes and old programs put before and between lines, and ends every line with CRLF. */
export function normalizeInput(text: string, dotEnds: boolean): string {
  let lines = text.split('\n').map((line) => (line.endsWith('\r') ? line.slice(0, -1) : line))
  if (lines.at(-1) === '') lines.pop()
  const dot = dotEnds ? lines.indexOf('.') : -1
  if (dot >= 0) lines = lines.slice(0, dot)
  const first = lines.findIndex((line) => !/^>?From /.test(line))
  return (first < 0 ? [] : lines.slice(first)).map((line) => `${line}\r\n`).join('')
}

/** A field of a header: name in lower case, value unfolded. */
interface Field {
  readonly name: string
  readonly value: string
}

/** The fields of the header; what is no header belongs to the body. */
export function headerFields(content: string): readonly Field[] {
  const fields: { name: string; value: string }[] = []
  for (const line of content.split('\r\n')) {
    if (/^[ \t]/.test(line)) {
      const last = fields.at(-1)
      if (last === undefined) break
      last.value += ` ${line.trim()}`
      continue
    }
    const field = /^([!-9;-~]+)[ \t]*:(.*)$/.exec(line)
    if (field === null) break
    fields.push({ name: (field[1] ?? '').toLowerCase(), value: (field[2] ?? '').trim() })
  }
  return fields
}

/** Everybody a header is addressed to; the Resent- fields alone when there are any (postfix sendmail -t). */
export function headerRecipients(fields: readonly Field[]): readonly string[] {
  const resent = fields.some(({ name }) => name.startsWith('resent-'))
  const wanted = ['to', 'cc', 'bcc'].map((name) => (resent ? `resent-${name}` : name))
  return fields
    .filter(({ name }) => wanted.includes(name))
    .flatMap(({ value }) => addressparser(value, { flatten: true }))
    .map(({ address }) => address ?? '')
    .filter((address) => address !== '')
}

/** `root` → `root@origin`; brackets go, the domain is in lower case. */
export function completeAddress(text: string, origin: string): string {
  const bare = text.trim().replace(/^<(.*)>$/, '$1')
  if (bare === '') return ''
  const at = bare.lastIndexOf('@')
  return at < 0 ? `${bare}@${origin}` : `${bare.slice(0, at)}@${bare.slice(at + 1).toLowerCase()}`
}

/** A From field for mail that has none. */
export function fromField(fullName: string | undefined, address: string): string {
  const name = harmless(fullName ?? '').trim()
  if (name === '') return `From: ${address}\r\n`
  // oxlint-disable-next-line no-control-regex -- ASCII is exactly this range
  const phrase = /^[\u0000-\u007f]*$/.test(name)
    ? `"${name.replaceAll(/(["\\])/g, '\\$1')}"`
    : `=?utf-8?B?${Buffer.from(name).toString('base64')}?=`
  return `From: ${phrase} <${address}>\r\n`
}
