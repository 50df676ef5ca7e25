/**
 * The mail that a next hop gets: changed by smtp_header_checks and smtp_generic_maps; with the stored signatures, with new ones where
 * the header has changed, or without, by dkim_sign. The queued message stays unchanged.
 */
import { CheckedContent, type CheckReport, type ContentRules } from '../../checks/checked-content.ts'
import type { MessageSigning } from '../../dkim/message-signing.ts'
import { storedSignatures, withPrepended, type StoredSignatures } from '../../dkim/stored-signature.ts'
import type { ContentEntry } from '../../mail/content-step.ts'
import { EditedHeader } from '../../mail/edited-header.ts'
import type { Completion } from '../../mail/header-addresses.ts'
import { queueIdOf, type LeasedRecipient, type Message } from '../../mail/message.ts'
import type { GenericMaps } from '../../rewriting/generic.ts'
import { unreadableFor, SteppedContent, type HeaderSigning } from './stepped-content.ts'
import { MessageContent, type ContentSource, type ReadChunk } from './message-content.ts'

/** smtp_header_checks of a configuration. */
export interface HeaderChecks {
  readonly rules: ContentRules<'header'>
  /** Records the actions on a message. */
  readonly report: (queueId: string) => Pick<CheckReport, 'took' | 'warn'>
}

/** The configured changes of the headers of mail that is sent; null for one that is not configured. Each has its place in `stepped`. */
export interface HeaderChanges {
  /** smtp_generic_maps */
  readonly generic: GenericMaps | null
  /** smtp_header_checks */
  readonly headerChecks: HeaderChecks | null
}

export const NO_CHANGES: HeaderChanges = { generic: null, headerChecks: null }

/** True when the header may differ from the queued one, so that its signatures are made again. */
const isChangedBy = (changes: HeaderChanges): boolean => Object.values(changes).some((one: unknown) => one !== null)

interface OutgoingTerms {
  /** NO_CHANGES for LMTP. */
  readonly changes: HeaderChanges
  /** Null without DKIM tables. */
  readonly signing: MessageSigning | null
  /** dkim_sign */
  readonly signed: boolean
  readonly lineLimit: number
  readonly readChunk: ReadChunk
  /** The content, if it is still in memory. */
  readonly cached: readonly Uint8Array[] | undefined
}

/** A message of the queue with its recipients at a next hop. */
interface QueuedMail {
  readonly message: Message
  readonly recipients: readonly LeasedRecipient[]
}

interface OutgoingMail extends QueuedMail {
  readonly content: ContentSource
}

/** The mail for a next hop. After a failed lookup its content is unreadable for now, so that the delivery is deferred. */
export function outgoingMail(queued: QueuedMail, terms: OutgoingTerms): OutgoingMail {
  const { changes, signed, signing, readChunk, cached } = terms
  const { prependedHeaders = '' } = queued.message
  const stored = storedSignatures(prependedHeaders)
  const digest = signing?.retimed(queued.message, stored) ?? null
  const signsAgain = signed && prependedHeaders !== '' && (isChangedBy(changes) || digest !== null)
  const prepended = signed && !signsAgain ? stored.signatures + stored.others : stored.others
  const message = prependedHeaders === '' ? queued.message : withPrepended(queued.message, prepended)
  const content = new MessageContent(message, readChunk, cached)
  const sign = signsAgain ? signingOf(digest === null ? stored : { ...stored, digest, signatures: null }, terms) : null
  const mail = { message, recipients: queued.recipients }
  try {
    return { ...mapped(mail, changes.generic), content: stepped(content, queueIdOf(message), sign, changes) }
  } catch (error) {
    const failed = unreadableFor(error)
    return { ...mail, content: { next: async () => failed } }
  }
}

/** The envelope by smtp_generic_maps. Throws LookupFailed. */
function mapped({ message, recipients }: QueuedMail, maps: GenericMaps | null): QueuedMail {
  if (maps === null) return { message, recipients }
  return {
    message: { ...message, sender: maps.envelope(message.sender) },
    recipients: recipients.map((recipient) => maps.recipient(recipient)),
  }
}

function stepped(content: ContentSource, queueId: string, sign: HeaderSigning | null, changes: HeaderChanges): ContentSource {
  if (!isChangedBy(changes) && sign === null) return content
  const { generic, headerChecks } = changes
  const completion = generic === null ? null : completionOf(generic)
  return new SteppedContent(content, sign, (last, refuse): ContentEntry => {
    const edited = new EditedHeader({ dropped: new Set(), fieldLimit: Infinity, readsTexts: false, completion }, last)
    return headerChecks === null ? edited : new CheckedContent(headerChecks.rules, { ...headerChecks.report(queueId), refuse }, edited)
  })
}

const completionOf = (maps: GenericMaps): Completion => ({
  origin: null,
  parent: null,
  keepsRoutes: true,
  map: (address) => maps.header(address),
})

/** Signatures of a message; `signatures` is null when they are of another time than its release. */
type Signed = Pick<StoredSignatures, 'digest'> & { readonly signatures: string | null }

/** An unchanged header keeps its signatures. Those of a changed header would be invalid. */
const signingOf =
  ({ signatures, digest }: Signed, { signing, lineLimit }: Pick<OutgoingTerms, 'signing' | 'lineLimit'>): HeaderSigning =>
  async (header, changed) => {
    if (!changed && signatures !== null) return signatures
    return signing === null || digest === null ? '' : signing.again(header, digest, lineLimit)
  }
