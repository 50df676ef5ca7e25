/** Decides what an erasure replaces in a text, a JSON value, or a record of the history. Pure. */
import { mapAddresses } from '../../mail/address-text.ts'
import type { Message, Recipient } from '../../mail/message.ts'
import { isPseudonym, pseudonymOf } from '../../mail/pseudonym.ts'
import { addressMatcher, addressPattern } from '../../patterns/filter-pattern.ts'
import type { ErasedSide, ErasureTerms } from '../returned-mail.ts'
import type { HistoryRecord } from '../history-record.ts'

/** Members of records and events that name a side of the envelope. */
const MEMBERS: Readonly<Record<ErasedSide, readonly string[]>> = {
  recipient: ['address', 'orcpt', 'recipient', 'recipients'],
  sender: ['sender', 'fromHeader', 'saslUsername', 'sasl_username', 'share'],
}

/** Lines of a dialogue that name a side. */
const COMMANDS: Readonly<Record<ErasedSide, RegExp>> = { recipient: /^ *\d+ C RCPT /i, sender: /^ *\d+ C MAIL /i }

const OTHER = { recipient: 'sender', sender: 'recipient' } as const satisfies Record<ErasedSide, ErasedSide>

/** The places in a local part before which something else may stand: `user=anna`, `*anna`, `'anna`. */
const BEFORE_LOCAL = /[!#$%&'*/=?^`{|}~]/g

const decodedXtext = (text: string): string =>
  text.replaceAll(/\+([0-9A-F]{2})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)))

/** Addresses that a return path for `anna@example.com` may have: `news+anna=example.com@lists.example`. */
function inReturnPath(address: string): readonly string[] {
  const local = address.slice(0, address.lastIndexOf('@'))
  const equals = local.lastIndexOf('=')
  if (equals < 0) return []
  const [name, domain] = [local.slice(0, equals), local.slice(equals + 1)]
  const starts = [0, ...[...name.matchAll(/[+-]/g)].map(({ index }) => index + 1)]
  return starts.map((start) => `${name.slice(start)}@${domain}`)
}

export class Eraser {
  readonly terms: ErasureTerms
  readonly #key: string
  readonly #matches: (address: string) => boolean
  readonly #kept: ReadonlySet<string>
  readonly #addresses: ReadonlySet<string>
  readonly #isExact: boolean

  /** `key` is that of the queue (records/erasure). */
  constructor(terms: ErasureTerms, key: string) {
    this.terms = terms
    this.#key = key
    this.#matches = addressMatcher(addressPattern(terms.pattern))
    this.#kept = new Set(MEMBERS[OTHER[terms.side]])
    this.#addresses = new Set(MEMBERS[terms.side])
    this.#isExact = !terms.pattern.includes('*')
  }

  pseudonym(text: string): string {
    return pseudonymOf(this.#key, text)
  }

  /** False for what is erased already, also when the pattern is `*`. */
  isErased(address: string): boolean {
    if (address === '' || isPseudonym(address)) return false
    const forms = address.includes('+') ? [address, decodedXtext(address)] : [address]
    return [...forms, ...inReturnPath(address)].some((one) => this.#matches(one))
  }

  /** The text without the addresses. */
  text(text: string): string {
    return mapAddresses(text, (found) => this.#found(found))
  }

  /** The text of a dialogue, without the addresses in what was said. */
  dialogue(text: string): string {
    const other = COMMANDS[OTHER[this.terms.side]]
    return text
      .split('\n')
      .map((line) => (other.test(line) ? line : this.text(line)))
      .join('\n')
  }

  /** A JSON value whose texts have no such address, but in members of the other side. `name` is the member that has the value. */
  value(value: unknown, name = ''): unknown {
    if (this.#kept.has(name)) return value
    if (typeof value === 'string') return this.#addresses.has(name) && this.isErased(value) ? this.pseudonym(value) : this.text(value)
    if (Array.isArray(value)) return value.map((one: unknown) => this.value(one, name))
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(Object.entries(value).map(([member, one]) => [member, this.value(one, member)]))
  }

  /** Whether mail that has left is of such an address. */
  isOf({ message, recipients }: Pick<HistoryRecord, 'message' | 'recipients'>): boolean {
    if (this.terms.side === 'sender') return this.isErased(message.sender)
    return recipients.some(({ address, orcpt = '' }) => this.isErased(address) || this.isErased(orcpt.slice(orcpt.indexOf(';') + 1)))
  }

  /** The record without the addresses, and without the texts of its header when it is of such an address. */
  record(record: HistoryRecord): HistoryRecord {
    const message = this.value(record.message) as Message
    const { messageId } = record.message
    // Message-IDs look like addresses of the sender's host.
    const kept = messageId === undefined || this.#isExact ? {} : { messageId }
    const texts = this.isOf(record) ? this.#withoutTexts(record.message) : {}
    return {
      ...record,
      message: { ...message, ...kept, ...texts },
      recipients: this.value(record.recipients) as readonly Recipient[],
      history: this.value(record.history) as HistoryRecord['history'],
    }
  }

  /** Whether a content has the address. A pattern with `*` is not looked for: it matches addresses of both sides. */
  isIn(content: Uint8Array): boolean {
    if (!this.#isExact) return false
    const wanted = this.terms.pattern.toLowerCase()
    return Buffer.from(content).toString('latin1').toLowerCase().includes(Buffer.from(wanted).toString('latin1'))
  }

  #found(found: string): string {
    const [at, starts] = [found.lastIndexOf('@'), [0]]
    for (const { index } of found.matchAll(BEFORE_LOCAL)) if (index < at - 1) starts.push(index + 1)
    const start = starts.find((one) => this.isErased(found.slice(one)))
    return start === undefined ? found : found.slice(0, start) + this.pseudonym(found.slice(start))
  }

  #withoutTexts({ subject, fromHeader }: Message): Partial<Message> {
    return {
      ...(subject === undefined || isPseudonym(subject) ? {} : { subject: this.pseudonym(subject) }),
      ...(fromHeader === undefined || this.terms.side === 'recipient' || isPseudonym(fromHeader)
        ? {}
        : { fromHeader: this.pseudonym(fromHeader) }),
    }
  }
}
