/** The transfer of a message to one host: the mail as its next hop gets it, and what follows the mail transaction. */
import type { Settings } from '../../config/destination-settings.ts'
import type { MessageSigning } from '../../dkim/message-signing.ts'
import type { DeliveryRequest, LeasedRecipient, Message } from '../../mail/message.ts'
import type { Transcript } from '../transcript.ts'
import type { EightBitWarnings } from './eight-bit-warnings.ts'
import { relayName } from './host-session.ts'
import { isKind } from './mail-transaction.ts'
import type { CachedContent, ReadChunk } from './message-content.ts'
import { NO_CHANGES, outgoingMail, type HeaderChanges } from './outgoing-mail.ts'
import type { SmtpSession } from './smtp-session.ts'

export interface TransferDeps {
  readonly changes: HeaderChanges
  /** Null without DKIM tables. */
  readonly signing: MessageSigning | null
  /** The priority of the class of a message, from -9 to 9; null for none. */
  readonly priorityOf: (message: Message) => number | null
  readonly readChunk: ReadChunk
  readonly cachedContent?: ((message: DeliveryRequest['message']) => CachedContent | undefined) | undefined
  readonly eightBitWarnings: EightBitWarnings
  /** True while this node may begin connections and mail transactions; see Membership.holds. */
  readonly holds: () => boolean
}

interface TransferTerms {
  readonly recipients: readonly LeasedRecipient[]
  readonly settings: Settings
  readonly lmtp: boolean
}

interface MailTransfer {
  readonly mail: Parameters<SmtpSession['transact']>[0]
  /** Called after the mail transaction. */
  readonly ended: (session: SmtpSession, transcript: Transcript) => void
}

export function beginTransfer(request: DeliveryRequest, { recipients, settings, lmtp }: TransferTerms, deps: TransferDeps): MailTransfer {
  const { message } = request
  const { smtp_line_length_limit: lineLimit, dkim_sign: signed, smtp_deliver_by_required: deliverByRequired } = settings
  const { readChunk, holds, cachedContent, signing, changes, eightBitWarnings, priorityOf } = deps
  const cached = cachedContent?.(message)
  const terms = { changes: lmtp ? NO_CHANGES : changes, signing, signed, lineLimit, readChunk, cached: cached?.chunks }
  return {
    mail: { ...outgoingMail({ message, recipients }, terms), lmtp, lineLimit, holds, deliverByRequired, priority: priorityOf(message) },
    ended: ({ peer }, { end, mailAt, eightBit }) => {
      if (end.some((reply) => isKind(2, reply))) cached?.sent()
      if (message.bodyType === '8bitmime' && !eightBit && mailAt !== undefined) eightBitWarnings.sent(request, relayName(peer))
    },
  }
}
