/**
 * The mail that a next hop gets: with the stored signatures, with new ones where smtp_generic_maps change the header, or without,
 * by dkim_sign.
 */
import type { MessageSigning } from '../../dkim/message-signing.ts'
import { storedSignatures, withPrepended, type StoredSignatures } from '../../dkim/stored-signature.ts'
import type { LeasedRecipient, Message } from '../../mail/message.ts'
import type { GenericMaps } from '../../rewriting/generic.ts'
import { genericMail, type GenericMail, type HeaderSigning } from './generic-mail.ts'
import { MessageContent, type ReadChunk } from './message-content.ts'

interface OutgoingTerms {
  /** Null without smtp_generic_maps, and for LMTP. */
  readonly generic: GenericMaps | null
  /** Null without DKIM tables. */
  readonly signing: MessageSigning | null
  /** dkim_sign */
  readonly signed: boolean
  readonly lineLimit: number
  readonly readChunk: ReadChunk
  /** The content, if it is still in memory. */
  readonly cached: readonly Uint8Array[] | undefined
}

export function outgoingMail(
  queued: { readonly message: Message; readonly recipients: readonly LeasedRecipient[] },
  terms: OutgoingTerms,
): GenericMail {
  const { recipients } = queued
  const { generic, signed, readChunk, cached } = terms
  const read = (message: Message): GenericMail => ({ message, recipients, content: new MessageContent(message, readChunk, cached) })
  const { prependedHeaders = '' } = queued.message
  if (prependedHeaders === '') return generic === null ? read(queued.message) : genericMail(read(queued.message), generic, null)
  const stored = storedSignatures(prependedHeaders)
  if (generic === null) return read(withPrepended(queued.message, signed ? stored.signatures + stored.others : stored.others))
  return genericMail(read(withPrepended(queued.message, stored.others)), generic, signed ? signingOf(stored, terms) : null)
}

/** An unchanged header keeps its signatures. Those of a changed header would be invalid. */
const signingOf =
  (stored: StoredSignatures, { signing, lineLimit }: OutgoingTerms): HeaderSigning =>
  async (header, changed) => {
    if (!changed) return stored.signatures
    return signing === null || stored.digest === null ? '' : signing.again(header, stored.digest, lineLimit)
  }
