/** Removes subdomains from addresses (Postfix ADDRESS_REWRITING_README, masquerade_domains). Pure. */
import type { Config } from '../config/options.ts'

export type MasqueradeSettings = Pick<Config, 'masquerade_domains' | 'masquerade_exceptions'>

interface Parent {
  /** The domain, in lower case. */
  readonly domain: string
  /** False for `!domain`, below which addresses are kept. */
  readonly replaces: boolean
}

export class Masquerade {
  readonly #parents: readonly Parent[]
  readonly #exceptions: readonly string[]

  constructor({ masquerade_domains, masquerade_exceptions }: MasqueradeSettings) {
    this.#parents = masquerade_domains.map((text) => {
      const domain = text.replace(/^!+/, '').toLowerCase()
      return { domain, replaces: (text.length - domain.length) % 2 === 0 }
    })
    this.#exceptions = masquerade_exceptions.map((text) => text.toLowerCase())
  }

  /** The address at the first listed domain that equals its domain or is a parent of it. */
  apply(address: string): string {
    const at = address.lastIndexOf('@')
    if (at < 0 || this.#isException(address.slice(0, at))) return address
    const domain = address.slice(at + 1).toLowerCase()
    const parent = this.#parents.find((one) => one.domain !== '' && (domain === one.domain || domain.endsWith(`.${one.domain}`)))
    return parent === undefined || domain === parent.domain || !parent.replaces ? address : `${address.slice(0, at + 1)}${parent.domain}`
  }

  /** True for a listed name; `!name` excludes a name from those that follow. */
  #isException(local: string): boolean {
    const name = local.toLowerCase()
    const match = this.#exceptions.find((text) => text.replace(/^!/, '') === name)
    return match !== undefined && !match.startsWith('!')
  }
}
