/**
 * What one SMTP transaction carries besides the message itself: who sends, who receives, and the DSN wishes of the
 * sender (RFC 5321 §3.3, RFC 3461).
 */

/** When the sender wants to hear of a recipient; absent means FAILURE and DELAY (RFC 3461 §4.1). */
export type Notify = 'never' | readonly ('success' | 'failure' | 'delay')[]

/** How much of the message a notice returns (RFC 3461 §4.3). */
export type Ret = 'full' | 'hdrs'

export interface EnvelopeRecipient {
  /** The forward-path without brackets: `ann@example.net`, local part as given, domain in lower case. */
  readonly address: string
  readonly notify?: Notify | undefined
  /** ORCPT, decoded from xtext: `rfc822;ann@example.net`. */
  readonly orcpt?: string | undefined
}

export interface Envelope {
  /** The reverse-path without brackets; the empty string is the null reverse-path `<>`. */
  readonly sender: string
  readonly recipients: readonly EnvelopeRecipient[]
  readonly ret?: Ret | undefined
  /** ENVID, decoded from xtext. */
  readonly envid?: string | undefined
  /** The client asked for SMTPUTF8 (RFC 6531). */
  readonly smtputf8?: boolean | undefined
  /** BODY= as announced by the client (RFC 6152). */
  readonly body?: '7bit' | '8bitmime' | undefined
}
