/** A remote mailbox: every message that a server kept for an address, whether or not the server acknowledged it. */
import { parseNotice, type ParsedNotice } from '../bounce/dsn-parser.ts'
import { fieldsOf } from '../mail/headers.ts'
import type { ReceivedMail } from './remote/remote-events.ts'
import { inSeconds } from './time.ts'

/** One message in a mailbox. */
export interface Mail {
  /** Time of arrival, in seconds since the start of the world. */
  readonly at: number
  /** Reverse-path; empty for `<>`. */
  readonly from: string
  /** All recipients of the transaction. */
  readonly to: readonly string[]
  /** Header and body as received, decoded as UTF-8. */
  readonly content: string
  /** Returns the value of the first header field of that name, unfolded; undefined if there is none. */
  header(name: string): string | undefined
}

/** A parsed notice (RFC 3464) in a mailbox. */
export interface Notice extends ParsedNotice {
  /** Time of arrival, in seconds since the start of the world. */
  readonly at: number
}

/** Messages kept for one address, at the time of the call to `world.mailbox`. */
export class Mailbox {
  /** Address, its domain in lower case. */
  readonly address: string
  readonly #received: readonly ReceivedMail[]

  /** @internal Use `world.mailbox`. */
  constructor(address: string, received: readonly ReceivedMail[]) {
    this.address = address
    this.#received = received
  }

  /** Messages, oldest first. */
  mails(): readonly Mail[] {
    return this.#received.map((mail) => ({
      at: inSeconds(mail.at),
      from: mail.sender,
      to: mail.recipients,
      content: mail.content.toString('utf8'),
      header: (name) => headerOf(mail.content, name),
    }))
  }

  /** Messages that are notices, parsed; oldest first. */
  notices(): readonly Notice[] {
    return this.#received.flatMap((mail) => {
      const notice = parseNotice(mail.content)
      return notice === null ? [] : [{ ...notice, at: inSeconds(mail.at) }]
    })
  }
}

const headerOf = (content: Buffer, name: string): string | undefined =>
  [...fieldsOf(content)].find((field) => field.name === name.toLowerCase())?.value
