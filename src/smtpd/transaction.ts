/** One mail transaction while it is being told: who sends, with which wishes, and who was accepted so far. */
import type { Envelope, EnvelopeRecipient } from '../mail/envelope.ts'
import type { MailParameters } from './parameters.ts'

export class Transaction {
  readonly sender: string
  readonly #parameters: MailParameters
  readonly #recipients: EnvelopeRecipient[] = []
  readonly #addresses = new Set<string>()
  #accepted = 0
  #refused = 0
  #overshoot = 0

  constructor(sender: string, parameters: MailParameters) {
    this.sender = sender
    this.#parameters = parameters
  }

  get envelope(): Envelope {
    const { ret, envid, smtputf8, body } = this.#parameters
    return { sender: this.sender, recipients: this.#recipients, ret, envid, smtputf8, body }
  }

  get isInternational(): boolean {
    return this.#parameters.smtputf8 === true
  }

  /** Recipients that were accepted, repeated ones included. */
  get accepted(): number {
    return this.#accepted
  }

  /** Recipients were named, and all of them refused. */
  get allRefused(): boolean {
    return this.#accepted === 0 && this.#refused > 0
  }

  /** A recipient that is named twice gets one copy, the one that was asked for first. */
  accept(recipient: EnvelopeRecipient): void {
    this.#accepted++
    if (!this.#addresses.has(recipient.address)) this.#recipients.push(recipient)
    this.#addresses.add(recipient.address)
  }

  refuse(): void {
    this.#refused++
  }

  /** Counts a recipient beyond the limit; how many there are by now. */
  exceed(): number {
    return ++this.#overshoot
  }
}
