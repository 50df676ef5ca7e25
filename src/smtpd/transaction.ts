/** One mail transaction (RFC 5321 §3.3): sender, ESMTP parameters and the recipients accepted so far. */
import type { Envelope, EnvelopeRecipient } from '../mail/envelope.ts'
import type { MailParameters } from './esmtp-parameters.ts'

export class Transaction {
  readonly sender: string
  readonly #parameters: MailParameters
  readonly #recipients: EnvelopeRecipient[] = []
  readonly #addresses = new Set<string>()
  #accepted = 0
  #overshoot = 0

  constructor(sender: string, parameters: MailParameters) {
    this.sender = sender
    this.#parameters = parameters
  }

  get envelope(): Envelope {
    const { ret, envid, smtputf8, body } = this.#parameters
    return { sender: this.sender, recipients: this.#recipients, ret, envid, smtputf8, body }
  }

  /** SIZE parameter of MAIL (RFC 1870), in bytes; 0 for none. */
  get declaredSize(): number {
    return this.#parameters.size
  }

  get isInternational(): boolean {
    return this.#parameters.smtputf8 === true
  }

  /** Number of accepted RCPT commands, repeated recipients included. */
  get accepted(): number {
    return this.#accepted
  }

  /**
   * Adds a recipient. A repeated recipient gets one copy, with the address and the parameters of its first RCPT. Upper and lower
   * case are the same, also in local parts (Postfix cleanup_out_recipient).
   */
  accept(recipient: EnvelopeRecipient): void {
    this.#accepted++
    const key = recipient.address.toLowerCase()
    if (!this.#addresses.has(key)) this.#recipients.push(recipient)
    this.#addresses.add(key)
  }

  /** Counts a recipient beyond smtpd_recipient_limit. Returns the number of such recipients, this one included. */
  exceed(): number {
    return ++this.#overshoot
  }
}
