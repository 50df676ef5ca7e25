/** The addresses of double_bounce_sender at the nodes of a queue. No notice is sent for mail from them, and mail to them is discarded (Postfix double_bounce_sender). */
import type { Config } from './options.ts'

export class DoubleBounce {
  /** Sender of the mail of this node to the postmaster. */
  readonly address: string
  readonly #localPart: string
  readonly #own: string
  readonly #hostnames: () => readonly string[]

  /** `hostnames` has the `myhostname` of the other nodes: any node delivers and returns their mail. */
  constructor(
    { double_bounce_sender: localPart, myhostname }: Pick<Config, 'double_bounce_sender' | 'myhostname'>,
    hostnames: () => readonly string[] = () => [],
  ) {
    this.address = `${localPart}@${myhostname}`
    this.#localPart = `${localPart}@`.toLowerCase()
    this.#own = myhostname.toLowerCase()
    this.#hostnames = hostnames
  }

  /** True for the address at this node or at another one, in any case of its letters. */
  has(address: string): boolean {
    const { length } = this.#localPart
    if (address.slice(0, length).toLowerCase() !== this.#localPart) return false
    const host = address.slice(length).toLowerCase()
    return host === this.#own || this.#hostnames().some((one) => one.toLowerCase() === host)
  }
}
