/**
 * The mail that a next hop gets: changed by smtp_header_checks and smtp_generic_maps; with the stored signatures, with new ones where
 * the header has changed, or without, by dkim_sign.
 */
import type { MessageSigning } from '../../dkim/message-signing.ts'
import { storedSignatures, withPrepended, type StoredSignatures } from '../../dkim/stored-signature.ts'
import { queueIdOf, type LeasedRecipient, type Message } from '../../mail/message.ts'
import type { GenericMaps } from '../../rewriting/generic.ts'
import { CheckedHeader, type HeaderChecks } from './checked-header.ts'
import { EditedHeader, genericMail, type GenericMail, type HeaderSigning } from './generic-mail.ts'
import { MessageContent, type ContentSource, type ReadChunk } from './message-content.ts'

interface OutgoingTerms {
  /** Null without smtp_generic_maps, and for LMTP. */
  readonly generic: GenericMaps | null
  /** Null without smtp_header_checks, and for LMTP. */
  readonly headerChecks: HeaderChecks | null
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
  const { generic, headerChecks, signed, signing } = terms
  const { prependedHeaders = '' } = queued.message
  const stored = storedSignatures(prependedHeaders)
  const digest = signing?.retimed(queued.message, stored) ?? null
  const isEdited = generic !== null || headerChecks !== null || digest !== null
  if (!isEdited || prependedHeaders === '') {
    const { message } = queued
    const sent = prependedHeaders === '' ? message : withPrepended(message, signed ? stored.signatures + stored.others : stored.others)
    return edited(mailOf({ ...queued, message: sent }, terms), generic, null)
  }
  const mail = mailOf({ ...queued, message: withPrepended(queued.message, stored.others) }, terms)
  return edited(
    mail,
    generic,
    signed ? signingOf(digest === null ? stored : { ...stored, digest, signatures: null }, mail.content, terms) : null,
  )
}

/** The mail with its content, changed by smtp_header_checks. */
function mailOf(
  { message, recipients }: { readonly message: Message; readonly recipients: readonly LeasedRecipient[] },
  { headerChecks, readChunk, cached }: OutgoingTerms,
): GenericMail {
  const content = new MessageContent(message, readChunk, cached)
  return { message, recipients, content: headerChecks === null ? content : new CheckedHeader(content, headerChecks, queueIdOf(message)) }
}

function edited(mail: GenericMail, generic: GenericMaps | null, sign: HeaderSigning | null): GenericMail {
  if (generic !== null) return genericMail(mail, generic, sign)
  return sign === null ? mail : { ...mail, content: new EditedHeader(mail.content, null, sign) }
}

/** Signatures of a message; `signatures` is null when they are of another time than its release. */
type Signed = Pick<StoredSignatures, 'digest'> & { readonly signatures: string | null }

/** An unchanged header keeps its signatures. Those of a changed header would be invalid. */
const signingOf =
  (stored: Signed, content: ContentSource, { signing, lineLimit }: OutgoingTerms): HeaderSigning =>
  async (header, changed) => {
    if (!changed && !(content instanceof CheckedHeader && content.isChanged) && stored.signatures !== null) return stored.signatures
    return signing === null || stored.digest === null ? '' : signing.again(header, stored.digest, lineLimit)
  }
