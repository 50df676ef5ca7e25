/** Envelope of an SMTP transaction: sender, recipients and DSN parameters (RFC 5321 §3.3, RFC 3461). */

import { isInternational } from './address.ts'
import type { NamedTimes } from './message-times.ts'

/** Conditions of NOTIFY, in the order in which they are stored. */
export const NOTIFY_CONDITIONS = ['success', 'failure', 'delay'] as const

/** NOTIFY: the notices that the sender requests. An absent NOTIFY means failure and delay (RFC 3461 §4.1). */
export type Notify = 'never' | readonly (typeof NOTIFY_CONDITIONS)[number][]

/** NOTIFY as a client writes it, in either case and in any order; undefined for another text. */
export function parseNotify(text: string): Notify | undefined {
  const words = text.toLowerCase().split(',')
  if (words.length === 1 && words[0] === 'never') return 'never'
  const conditions = NOTIFY_CONDITIONS.filter((condition) => words.includes(condition))
  return conditions.length === new Set(words).size ? conditions : undefined
}

/** RET: the part of the message that a notice returns (RFC 3461 §4.3). */
export type Ret = 'full' | 'hdrs'

export interface EnvelopeRecipient {
  /** Forward-path without brackets: `ann@example.net`, local part unchanged, domain in lower case. */
  readonly address: string
  readonly notify?: Notify | undefined
  /** ORCPT, decoded from xtext: `rfc822;ann@example.net`. */
  readonly orcpt?: string | undefined
  /**
   * Set for an alias to which nothing is sent: `expanded` when its addresses are recipients too and its sender gets a success
   * notice, `looping` when it leads back to itself and its sender gets a failure notice. Absent for other recipients.
   */
  readonly alias?: 'expanded' | 'looping' | undefined
}

/**
 * The address in ORCPT, of type rfc822 or utf-8 (RFC 3461 §4.2, RFC 6533 §3). Null without such an ORCPT, and when the address
 * equals the recipient's, ignoring case.
 */
export function differingOrcpt({ orcpt, address }: Pick<EnvelopeRecipient, 'orcpt' | 'address'>): string | null {
  const original = /^(?:rfc822|utf-8);(.*)$/is.exec(orcpt ?? '')?.[1]
  return original === undefined || original.toLowerCase() === address.toLowerCase() ? null : original
}

/** ORCPT of a rewritten recipient whose client gave none (RFC 3461 §4.2), so that notices name the address that the sender used. */
export const orcptOf = (address: string): string => `${isInternational(address) ? 'utf-8' : 'rfc822'};${address}`

/** Sender shown in listings. The null sender is shown as in Postfix (`empty_address_recipient`). */
export const shownSender = (sender: string): string => (sender === '' ? 'MAILER-DAEMON' : sender)

export interface Envelope extends NamedTimes {
  /** Reverse-path without brackets; empty for the null reverse-path `<>`. */
  readonly sender: string
  readonly recipients: readonly EnvelopeRecipient[]
  readonly ret?: Ret | undefined
  /** ENVID, decoded from xtext. */
  readonly envid?: string | undefined
  /** SMTPUTF8 parameter of MAIL (RFC 6531). */
  readonly smtputf8?: boolean | undefined
  /** BODY parameter of MAIL (RFC 6152). */
  readonly body?: '7bit' | '8bitmime' | undefined
  /** Number of failed attempts after which the client gives the message up. */
  readonly maxAttempts?: number | undefined
  /** Class for which the client asks. */
  readonly class?: string | undefined
  /** Value of MT-PRIORITY (RFC 6710) as it is granted. */
  readonly priority?: number | undefined
}
