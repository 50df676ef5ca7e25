/**
 * The signatures of a queued message, which are stored with its prepended header fields. Where a destination gets another header,
 * they are made again from the stored hash of the body and the stored time. A message that has no signature, but may need one for
 * such a header, has a field with hash and time alone, which is never sent. Pure.
 */
import { contentSize, type Message } from '../mail/message.ts'
import { parseTags } from './signature-field.ts'

export interface StoredSignatures {
  /** The DKIM-Signature fields; empty when the message is not signed. */
  readonly signatures: string
  /** Hash of the body and time of the signature; null when the message was queued without them. */
  readonly digest: { readonly bodyHash: string; readonly signedAt: number } | null
  /** All other prepended fields. */
  readonly others: string
}

const SIGNATURE = /^DKIM-Signature:/i
const DIGEST = /^X-Deferd-Digest:/

/** The field that keeps hash and time of a message without signatures. */
export const digestField = ({ bodyHash, signedAt }: NonNullable<StoredSignatures['digest']>): string =>
  `X-Deferd-Digest: t=${signedAt}; bh=${bodyHash}\r\n`

const NONE: StoredSignatures = { signatures: '', digest: null, others: '' }

export function storedSignatures(prependedHeaders: string): StoredSignatures {
  if (prependedHeaders === '') return NONE
  const fields = prependedHeaders.split(/(?<=\r\n)(?![ \t])/).filter((field) => field !== '')
  const [first] = fields.filter((field) => SIGNATURE.test(field) || DIGEST.test(field))
  const tags = parseTags(first?.slice(first.indexOf(':') + 1) ?? '')
  const bodyHash = tags?.get('bh')
  return {
    signatures: fields.filter((field) => SIGNATURE.test(field)).join(''),
    digest: bodyHash === undefined ? null : { bodyHash, signedAt: Number(tags?.get('t')) },
    others: fields.filter((field) => !SIGNATURE.test(field) && !DIGEST.test(field)).join(''),
  }
}

export const withPrepended = (message: Message, prependedHeaders: string): Message => ({
  ...message,
  prependedHeaders: prependedHeaders === '' ? undefined : prependedHeaders,
  size: contentSize(message) + Buffer.byteLength(prependedHeaders),
})
