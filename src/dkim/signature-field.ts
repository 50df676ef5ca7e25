/** Writes and reads the DKIM-Signature field (RFC 6376 §3.5), and the bytes that its signature covers (§3.7). Pure. */
import { createHash } from 'node:crypto'
import type { Canonicalization } from './body-hash.ts'
import type { RawField } from '../mail/headers.ts'
import { selectFields } from './header-choice.ts'

export type Algorithm = 'rsa-sha256' | 'ed25519-sha256'

export interface SignatureTags {
  readonly algorithm: Algorithm
  readonly domain: string
  readonly selector: string
  /** Time of the signature, in seconds since 1970. */
  readonly signedAt: number
  /** End of the validity of the signature, in seconds since 1970; null for none. */
  readonly expiresAt: number | null
  readonly names: readonly string[]
  /** Hash of the body in base64. */
  readonly bodyHash: string
}

export const isSignature = ({ name }: RawField): boolean => name === NAME.toLowerCase()

const NAME = 'DKIM-Signature'
/** Maximum length of a line of the field, which is below the 78 characters of RFC 5322 §2.1.1. */
const LINE = 72

/** Value of the field up to `b=`. */
export function unsignedValue({ algorithm, domain, selector, signedAt, expiresAt, names, bodyHash }: SignatureTags): string {
  const expiry = expiresAt === null ? '' : ` x=${expiresAt};`
  return [
    ` v=1; a=${algorithm}; c=relaxed/relaxed; d=${domain}; s=${selector};`,
    `t=${signedAt};${expiry} bh=${bodyHash};`,
    `${folded(`h=${names.join(':')}`, /[^:]+:?/g)};`,
    'b=',
  ].join('\r\n\t')
}

/** The whole field with its line end. */
export const signatureField = (unsigned: string, signature: Buffer): string =>
  `${NAME}:${unsigned}${folded(signature.toString('base64'), /.{1,16}/g)}\r\n`

/** Breaks a text between its parts, so that lines are short. */
function folded(text: string, part: RegExp): string {
  const lines = ['']
  for (const next of text.match(part) ?? []) {
    const line = lines.at(-1) ?? ''
    if (line !== '' && line.length + next.length > LINE) lines.push(next)
    else lines[lines.length - 1] = line + next
  }
  return lines.join('\r\n\t')
}

/** The form of a field that is signed, without its line end (RFC 6376 §3.4.1, §3.4.2). */
function canonicalField({ name, start, value }: RawField, form: Canonicalization): string {
  if (form === 'simple') return (start + value).replace(/\r\n$/, '')
  const text = value.replaceAll('\r\n', '').replaceAll(/[ \t]+/g, ' ')
  return `${name}:${text.slice(text.startsWith(' ') ? 1 : 0, text.endsWith(' ') ? Math.max(1, text.length - 1) : text.length)}`
}

/** The selected fields, and the signature's own field with an empty `b=`, as octets. */
export function signedBytes(
  fields: readonly RawField[],
  names: readonly string[],
  { own, form = 'relaxed' }: { readonly own: RawField; readonly form?: Canonicalization },
): Buffer {
  const covered = selectFields(fields, names).map((field) => `${canonicalField(field, form)}\r\n`)
  return Buffer.from(covered.join('') + canonicalField(own, form), 'latin1')
}

export const signatureWith = (value: string): RawField => ({ name: NAME.toLowerCase(), start: `${NAME}:`, value })

/** The bytes to which the algorithm is applied: Ed25519 signs the hash (RFC 8463 §3). */
export const signatureInput = (algorithm: Algorithm, bytes: Buffer): Buffer =>
  algorithm === 'ed25519-sha256' ? createHash('sha256').update(bytes).digest() : bytes

/** Tags of a tag list by name (RFC 6376 §3.2), without blanks around the values. Null when it is malformed or repeats a tag. */
export function parseTags(text: string): ReadonlyMap<string, string> | null {
  const tags = new Map<string, string>()
  const parts = text.split(';')
  if (parts.at(-1)?.trim() === '') parts.pop()
  for (const part of parts) {
    const [, name, value] = /^[ \t\r\n]*([A-Za-z]\w*)[ \t\r\n]*=([^]*)$/.exec(part) ?? []
    if (name === undefined || value === undefined || tags.has(name)) return null
    tags.set(name, value.replaceAll(/^[ \t\r\n]+|(?<![ \t\r\n])[ \t\r\n]+$/g, ''))
  }
  return tags
}

export const withoutBlanks = (text: string): string => text.replaceAll(/[ \t\r\n]+/g, '')
