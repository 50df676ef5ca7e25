/** Mail that the remote servers of a world kept, in the order of its arrival. */
import type { ReceivedMail } from '../remote/remote-events.ts'

export class ReceivedMails {
  readonly #all: ReceivedMail[] = []
  readonly #ofRecipients = new Map<string, ReceivedMail[]>()

  get all(): readonly ReceivedMail[] {
    return this.#all
  }

  /** Mail for a normalized address. */
  of(recipient: string): readonly ReceivedMail[] {
    return this.#ofRecipients.get(recipient) ?? []
  }

  add(mail: ReceivedMail): void {
    this.#all.push(mail)
    for (const recipient of mail.recipients) {
      const mails = this.#ofRecipients.get(recipient)
      if (mails === undefined) this.#ofRecipients.set(recipient, [mail])
      else mails.push(mail)
    }
  }
}
