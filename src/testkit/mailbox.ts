/** A mailbox at the far side: everything that was accepted for an address, whatever the client was told. */
import { parseNotice, type ParsedNotice } from '../bounce/notice-parser.ts'
import { HeaderScan } from '../mail/headers.ts'
import type { ReceivedMail } from './far-side/events.ts'
import { inSeconds } from './time.ts'

export interface Mail {
  /** Seconds since the world began. */
  readonly at: number
  /** The reverse-path; empty for `<>`. */
  readonly from: string
  /** Everybody the message came for in the same transaction. */
  readonly to: readonly string[]
  /** As it was received, headers and all. */
  readonly content: string
  /** The value of the first header of that name on one line; undefined when there is none. */
  header(name: string): string | undefined
}

/** A notice as a program reads it, with the time it came. */
export interface Notice extends ParsedNotice {
  readonly at: number
}

export class Mailbox {
  readonly address: string
  readonly #received: readonly ReceivedMail[]

  constructor(address: string, received: readonly ReceivedMail[]) {
    this.address = address
    this.#received = received
  }

  /** Oldest first. */
  mails(): readonly Mail[] {
    return this.#received.map((mail) => ({
      at: inSeconds(mail.at),
      from: mail.sender,
      to: mail.recipients,
      content: mail.content.toString('utf8'),
      header: (name) => headerOf(mail.content, name),
    }))
  }

  /** The notices among them, parsed. */
  notices(): readonly Notice[] {
    return this.#received.flatMap((mail) => {
      const notice = parseNotice(mail.content)
      return notice === null ? [] : [{ ...notice, at: inSeconds(mail.at) }]
    })
  }
}

function headerOf(content: Buffer, name: string): string | undefined {
  const scan = new HeaderScan()
  scan.scan(content, true)
  return scan.value(content, name.toLowerCase())
}
