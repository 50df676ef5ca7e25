/** Addresses in texts that leave the queue for others to keep: lines of the log and events for programs (log_addresses). */
import { mapAddresses } from './address-text.ts'
import { pseudonymOf } from './pseudonym.ts'

/** `hashed` gives `erased-1f0c9a3b`, `domain` gives `***@example.com`. */
export type AddressForm = 'full' | 'hashed' | 'domain'

/** Names in log lines that stand before an address without a delimiter. */
const NAME = /^(?:sasl_username|user)=/

const MESSAGE_ID = 'message_id'
/** The line of Postfix's cleanup with the Message-ID, which looks like an address of the sender's host. */
const MESSAGE_ID_LINE = /^\S+: message-id=/

export class ToldAddresses {
  #form: AddressForm
  #key: string | null = null

  constructor(form: AddressForm = 'full') {
    this.#form = form
  }

  /** `key` is that of the queue for texts that stand for addresses; `hashed` without it, before the queue is open, gives domains. */
  change(form: AddressForm, key: string | null): void {
    this.#form = form
    this.#key = key ?? this.#key
  }

  get isFull(): boolean {
    return this.#form === 'full'
  }

  /** A line of the log. Message-IDs stay. */
  line(text: string): string {
    return this.isFull || MESSAGE_ID_LINE.test(text) ? text : mapAddresses(text, (found) => this.#told(found))
  }

  /** A JSON value. Message-IDs stay. */
  value<T>(value: T): T {
    return this.isFull ? value : (this.#value(value) as T)
  }

  #value(value: unknown): unknown {
    if (typeof value === 'string') return mapAddresses(value, (found) => this.#told(found))
    if (Array.isArray(value)) return value.map((one: unknown) => this.#value(one))
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, name === MESSAGE_ID ? one : this.#value(one)]))
  }

  #told(found: string): string {
    const [name = ''] = NAME.exec(found) ?? []
    const address = found.slice(name.length)
    if (this.#form === 'hashed' && this.#key !== null) return name + pseudonymOf(this.#key, address)
    return `${name}***${address.slice(address.lastIndexOf('@'))}`
  }
}
