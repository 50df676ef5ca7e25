/**
 * Names in place of the addresses of recorded sessions, in order of appearance, and texts of replies without anything that a client has
 * said: addresses, names, passwords, words of the content.
 */
import { domainOf } from '../../mail/address.ts'

/** In place of a word that the file must not have. */
const MASKED = '***'
/** In place of an IP address; one for documentation (RFC 5737). */
const SOME_ADDRESS = '192.0.2.1'
/** In place of the name that the client gave in EHLO. */
const SOME_CLIENT = 'client.example'

/** Words of the content that are shorter remain in replies: `to`, `not`. */
const SHORTEST_WORD = 4
/** Parts of logins that are shorter are masked as whole words only. */
const SHORTEST_PART = 6

const ADDRESS = /[^\s<>()[\]",;:@]+@[^\s<>()[\]",;:@]*[^\s<>()[\]",;:@.]/g
const WORD = /[\p{L}\p{N}_](?:[\p{L}\p{N}._+=/-]*[\p{L}\p{N}_+=/-])?/gu
/** Code and enhanced status of a line of a reply. */
const STATUS = /^(?:[2-5]\d\d[ -]?)?(?:[245]\.\d{1,3}\.\d{1,3}(?= |$))?/

const partsOf = (word: string): readonly string[] => [word, ...word.split(/[._+=/-]+/)]

/** Words of one session that the file must not have, in lower case. */
export class SessionSecrets {
  helo = ''
  readonly #logins = new Set<string>()
  readonly #content = new Set<string>()

  /** Learns a response of a login (RFC 4954), as it is and decoded. */
  learnLogin(response: string): void {
    const decoded = Buffer.from(response, 'base64').toString('utf8')
    // oxlint-disable-next-line no-control-regex -- separators of PLAIN (RFC 4616) and XOAUTH2
    for (const text of [response, decoded, ...decoded.split(/[\0\u0001]|(?:user|auth)=|Bearer /)])
      if (text.trim().length > 1) this.#logins.add(text.trim().toLowerCase())
  }

  learnContent(text: string): void {
    for (const [word] of text.toLowerCase().matchAll(WORD)) for (const part of partsOf(word)) this.#content.add(part)
  }

  forgetContent(): void {
    this.#content.clear()
  }

  isLogin(word: string): boolean {
    return this.#logins.has(word.toLowerCase())
  }

  /** A text without long parts of logins, which may have any characters. */
  withoutLogins(text: string): string {
    let left = text
    for (const login of this.#logins) {
      for (let at = left.toLowerCase().indexOf(login); login.length >= SHORTEST_PART && at >= 0; at = left.toLowerCase().indexOf(login))
        left = `${left.slice(0, at)}${MASKED}${left.slice(at + login.length)}`
    }
    return left
  }

  isContent(word: string): boolean {
    return partsOf(word.toLowerCase()).some((part) => part.length >= SHORTEST_WORD && this.#content.has(part))
  }
}

export class Masks {
  readonly #keeps: boolean
  readonly #names = new Map<string, string>()
  readonly #domains = new Map<string, string>()
  /** Names by local part. */
  readonly #locals = new Map<string, string>()
  #senders = 0
  #recipients = 0

  /** `keeps` is true for a file with the addresses of the session. */
  constructor(keeps: boolean) {
    this.#keeps = keeps
  }

  sender(address: string): string {
    return this.#nameOf(address, () => `s${++this.#senders}`)
  }

  recipient(address: string): string {
    return this.#nameOf(address, () => `r${++this.#recipients}`)
  }

  #nameOf(address: string, next: () => string): string {
    if (this.#keeps || address === '') return address
    // Rules ignore letter case.
    const key = address.toLowerCase()
    const known = this.#names.get(key)
    if (known !== undefined) return known
    const local = next()
    const domain = domainOf(key)
    const name = key.includes('@') ? `${local}@${this.#domainName(domain)}` : local
    this.#names.set(key, name)
    this.#locals.set(key.slice(0, key.includes('@') ? key.lastIndexOf('@') : undefined), local)
    return name
  }

  #domainName(domain: string): string {
    const known = this.#domains.get(domain)
    if (known !== undefined) return known
    const name = `d${this.#domains.size + 1}.example`
    this.#domains.set(domain, name)
    return name
  }

  /** A reply of several lines, or other bytes, without what the session has said. */
  text(text: string, secrets: SessionSecrets): string {
    return text
      .split('\n')
      .map((line) => {
        const status = STATUS.exec(line)?.[0] ?? ''
        return `${status}${this.#line(secrets.withoutLogins(line.slice(status.length)), secrets)}`
      })
      .join('\n')
  }

  #line(line: string, secrets: SessionSecrets): string {
    let masked = ''
    let end = 0
    for (const { 0: address, index } of line.matchAll(ADDRESS)) {
      masked += this.#words(line.slice(end, index), secrets) + (this.#keeps && secrets.isLogin(address) ? MASKED : this.recipient(address))
      end = index + address.length
    }
    return masked + this.#words(line.slice(end), secrets)
  }

  #words(text: string, secrets: SessionSecrets): string {
    return text.replaceAll(WORD, (word) => this.#word(word, secrets))
  }

  #word(word: string, secrets: SessionSecrets): string {
    if (secrets.isLogin(word)) return MASKED
    const named = this.#keeps ? undefined : this.#named(word.toLowerCase(), secrets.helo)
    return named ?? (secrets.isContent(word) ? MASKED : word)
  }

  /** The name in place of a word of an address, or of the client; undefined for another word. */
  #named(word: string, helo: string): string | undefined {
    if (word === helo.toLowerCase()) return SOME_CLIENT
    if (/^\d{1,3}(?:\.\d{1,3}){3}$/.test(word)) return SOME_ADDRESS
    const domain = [...this.#domains].find(([one]) => word === one || word.endsWith(`.${one}`))
    if (domain !== undefined) return `${word.slice(0, word.length - domain[0].length)}${domain[1]}`
    return this.#locals.get(word)
  }
}
