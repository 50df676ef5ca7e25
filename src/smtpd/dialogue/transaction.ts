/** One mail transaction (RFC 5321 §3.3): sender, ESMTP parameters and the recipients accepted so far. */
import type { PathAddress } from '../../mail/address-path.ts'
import type { Envelope, EnvelopeRecipient } from '../../mail/envelope.ts'
import type { TakenAction } from '../../access/access-rules.ts'
import type { Handling } from '../../queue/intake/acceptor.ts'
import type { MailParameters } from './esmtp-parameters.ts'

const ORDINARY: Handling = { hold: false, discard: false, redirect: undefined, prepended: [] }

/** Parameters of MAIL, with the time of BY, and the priority and class that are granted. */
type Parameters = MailParameters & Pick<Envelope, 'deliverBy' | 'class'>

export class Transaction {
  readonly sender: string
  /** The sender without a domain that the client did not give. */
  readonly givenSender: string
  readonly instance: string
  readonly #parameters: Parameters
  readonly #recipients: EnvelopeRecipient[] = []
  readonly #addresses = new Set<string>()
  #accepted = 0
  #handling: Handling | undefined
  /** Addresses that get a copy by the action BCC. */
  readonly #copies = new Set<string>()
  #overshoot = 0

  /** `instance` identifies the transaction for policy servers. */
  constructor(sender: PathAddress, parameters: Parameters, instance: string) {
    this.sender = sender.address
    this.givenSender = sender.given
    this.instance = instance
    this.#parameters = parameters
  }

  get envelope(): Envelope {
    const { ret, envid, smtputf8, body, release, deliverBy, class: named, priority } = this.#parameters
    const copies = [...this.#copies].map((address): EnvelopeRecipient => ({ address, notify: 'never' }))
    const recipients = copies.length === 0 ? this.#recipients : [...this.#recipients, ...copies]
    return { sender: this.sender, recipients, ret, envid, smtputf8, body, release, deliverBy, class: named, priority }
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

  /** Number of recipients of the message when this one is accepted. */
  countWith(address: string): number {
    return this.#recipients.length + (this.#addresses.has(address.toLowerCase()) ? 0 : 1)
  }

  /** Records actions of access restrictions. They concern the whole message, whichever recipient they were taken for. */
  take(taken: readonly TakenAction[]): void {
    for (const { action } of taken) {
      const handling = this.#handling ?? ORDINARY
      switch (action.kind) {
        case 'hold':
          this.#handling = { ...handling, hold: true }
          break
        case 'discard':
          this.#handling = { ...handling, discard: true }
          break
        case 'redirect':
          this.#handling = { ...handling, redirect: action.address }
          break
        case 'prepend':
          this.#handling = { ...handling, prepended: [...handling.prepended, action.field] }
          break
        case 'bcc':
          this.#copies.add(action.address)
          break
        case 'note':
          break
      }
    }
  }

  /** Treatment of the message; undefined for ordinary treatment. */
  get handling(): Handling | undefined {
    return this.#handling
  }

  /** Counts a recipient beyond smtpd_recipient_limit. Returns the number of such recipients, this one included. */
  exceed(): number {
    return ++this.#overshoot
  }
}
