/** A remote mailbox: every message that a server kept for an address, whether or not the server acknowledged it. */
import { parseNotice, type ParsedNotice } from '../../bounce/dsn-parser.ts'
import { recordName } from '../../dkim/key-record.ts'
import type { DkimKeys } from '../../dkim/keys.ts'
import { timeOfSignature } from '../../dkim/signer.ts'
import { readSignatures, signatureProblem } from '../../dkim/verifier.ts'
import { fieldsOf } from '../../mail/headers.ts'
import type { WallTime } from '../../system/clock.ts'
import { BEGINNING } from '../virtual/virtual-clock.ts'
import type { ReceivedMail } from '../remote/remote-events.ts'
import { inSeconds } from '../options/time.ts'

/** A DKIM signature of a message, verified with the keys of the world's `dkim` tables. */
export interface MailSignature {
  readonly domain: string
  readonly selector: string
  readonly algorithm: string
  /** True when the signature is valid for the message as received. */
  readonly verified: boolean
  /** Reason why it is not valid; null when it is. */
  readonly why: string | null
}

/** One message in a mailbox. */
export interface Mail {
  /** Time of arrival, in seconds since the start of the world. */
  readonly at: number
  /** Reverse-path; empty for `<>`. */
  readonly from: string
  /** All recipients of the transaction. */
  readonly to: readonly string[]
  /** True when it arrived over TLS. */
  readonly tls: boolean
  /** Header and body as received, decoded as UTF-8. */
  readonly content: string
  /** Header and body as received, in octets. */
  readonly raw: Uint8Array
  /** DKIM signatures, in the order of their fields. */
  readonly signatures: readonly MailSignature[]
  /** Returns the value of the first header field of that name, unfolded; undefined if there is none. */
  header(name: string): string | undefined
}

/** A parsed notice (RFC 3464) in a mailbox. */
export interface Notice extends ParsedNotice {
  /** Time of arrival, in seconds since the start of the world. */
  readonly at: number
}

/** The world of a mailbox. @internal */
interface MailboxWorld {
  /** Keys of the `dkim` tables. */
  readonly keys: DkimKeys
  readonly startedAt: WallTime
}

/** Messages kept for one address, at the time of the call to `world.mailbox`. */
export class Mailbox {
  /** Address, its domain in lower case. */
  readonly address: string
  readonly #received: readonly ReceivedMail[]
  readonly #world: MailboxWorld

  /** @internal Use `world.mailbox`. */
  constructor(address: string, received: readonly ReceivedMail[], world: MailboxWorld = { keys: new Map(), startedAt: BEGINNING }) {
    this.#world = world
    this.address = address
    this.#received = received
  }

  /** Messages, oldest first. */
  mails(): readonly Mail[] {
    return this.#received.map((mail) => ({
      at: inSeconds(mail.at),
      from: mail.sender,
      to: mail.recipients,
      tls: mail.tls,
      content: mail.content.toString('utf8'),
      raw: mail.content,
      signatures: signaturesOf(mail, this.#world),
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

function signaturesOf({ content, at }: ReceivedMail, { keys, startedAt }: MailboxWorld): readonly MailSignature[] {
  const signed = readSignatures(content)
  return signed.signatures.map((signature) => {
    const { domain, selector, algorithm, record } = signature
    const own = [...keys.values()].flatMap((table) => table.keys.filter((key) => recordName(key.selector, table.domain) === record))
    const records = own.map((key) => key.record)
    const why = signatureProblem(signed, signature, records, timeOfSignature(startedAt + at))
    return { domain, selector, algorithm, verified: why === null, why }
  })
}
