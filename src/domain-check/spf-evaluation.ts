/**
 * Evaluates the SPF record of a domain for one address (RFC 7208 §4), with at most 10 look-up terms and 2 look-ups without a result. An
 * unsupported term that is reached gives `not-evaluated`, because the term might have matched.
 */
import { BlockList, isIPv6 } from 'node:net'
import type { Lookup, Net } from '../system/net.ts'
import { parseSpf, spfRecords, type SpfTerm } from './spf-record.ts'

type SpfResult = 'pass' | 'fail' | 'softfail' | 'neutral' | 'none' | 'temperror' | 'permerror' | 'not-evaluated'

export interface SpfOutcome {
  readonly result: SpfResult
  /** The deciding term, or the reason of an error; null when no term matched, or without a record. */
  readonly why: string | null
  /** Number of evaluated terms with look-ups. */
  readonly lookups: number
}

export type SpfNet = Pick<Net, 'lookupTxt' | 'lookupMx' | 'lookupAddresses'>

/** Limits of RFC 7208 §4.6.4. */
const MOST_LOOKUPS = 10
const MOST_VOID = 2
const MOST_EXCHANGERS = 10

/** Ends the evaluation with a result. */
class Ended extends Error {
  override readonly name = 'Ended'
  readonly result: SpfResult

  constructor(result: 'temperror' | 'permerror' | 'not-evaluated', why: string) {
    super(why)
    this.result = result
  }
}

export async function evaluateSpf(address: string, domain: string, net: SpfNet): Promise<SpfOutcome> {
  const run = new Evaluation(address, net)
  try {
    return { ...(await run.check(domain)), lookups: run.lookups }
  } catch (error) {
    if (error instanceof Ended) return { result: error.result, why: error.message, lookups: run.lookups }
    throw error
  }
}

type Decided = Pick<SpfOutcome, 'result' | 'why'>

class Evaluation {
  readonly #address: string
  readonly #net: SpfNet
  lookups = 0
  #void = 0

  constructor(address: string, net: SpfNet) {
    this.#address = address
    this.#net = net
  }

  async check(domain: string): Promise<Decided> {
    const answer = await this.#net.lookupTxt(domain)
    if (answer.kind === 'failed') throw new Ended('temperror', `the look-up of ${domain} failed: ${answer.reason}`)
    const [text, ...others] = spfRecords(answer.kind === 'found' ? answer.records : [])
    if (text === undefined) return { result: 'none', why: null }
    if (others.length > 0) throw new Ended('permerror', `${domain} has ${others.length + 1} SPF records`)
    const record = parseSpf(text)
    if ('why' in record) throw new Ended('permerror', `${domain}: ${record.why}`)
    for (const term of record.terms) if (await this.#matches(term, domain)) return { result: term.qualifier, why: term.text }
    const { redirect } = record
    if (redirect === undefined) return { result: 'neutral', why: null }
    if (redirect.domain === null) throw new Ended('not-evaluated', redirect.text)
    this.#count(redirect.text)
    const decided = await this.check(redirect.domain)
    if (decided.result === 'none') throw new Ended('permerror', `${redirect.text}: there is no SPF record`)
    return decided
  }

  async #matches(term: SpfTerm, domain: string): Promise<boolean> {
    switch (term.kind) {
      case 'all':
        return true
      case 'unsupported':
        throw new Ended('not-evaluated', term.text)
      case 'ip':
        return this.#isIn(term.address, term.prefix)
      case 'a':
        this.#count(term.text)
        return this.#hasAddress(term.domain ?? domain, term, true)
      case 'mx':
        this.#count(term.text)
        return this.#isExchanger(term.domain ?? domain, term)
      case 'include': {
        this.#count(term.text)
        const { result } = await this.check(term.domain)
        if (result === 'none') throw new Ended('permerror', `${term.text}: there is no SPF record`)
        return result === 'pass'
      }
    }
  }

  #count(text: string): void {
    if (this.lookups === MOST_LOOKUPS) throw new Ended('permerror', `more than ${MOST_LOOKUPS} look-ups, at ${text}`)
    this.lookups++
  }

  async #isExchanger(domain: string, term: Extract<SpfTerm, { kind: 'a' | 'mx' }>): Promise<boolean> {
    const exchangers = this.#recordsOf(await this.#net.lookupMx(domain), `MX of ${domain}`, true)
    if (exchangers.length > MOST_EXCHANGERS) throw new Ended('permerror', `${domain} has more than ${MOST_EXCHANGERS} MX records`)
    for (const { exchange } of exchangers) if (exchange !== '' && (await this.#hasAddress(exchange, term, false))) return true
    return false
  }

  async #hasAddress(host: string, { prefix }: Extract<SpfTerm, { kind: 'a' | 'mx' }>, isVoidCounted: boolean): Promise<boolean> {
    const isV6 = isIPv6(this.#address)
    const answer = await this.#net.lookupAddresses(host, isV6 ? 6 : 4)
    const addresses = this.#recordsOf(answer, `addresses of ${host}`, isVoidCounted)
    return addresses.some((address) => this.#isIn(address, isV6 ? prefix.ipv6 : prefix.ipv4))
  }

  #recordsOf<T>(answer: Lookup<T>, what: string, isVoidCounted: boolean): readonly T[] {
    switch (answer.kind) {
      case 'failed':
        throw new Ended('temperror', `the look-up of the ${what} failed: ${answer.reason}`)
      case 'none':
        if (isVoidCounted && ++this.#void > MOST_VOID) throw new Ended('permerror', `more than ${MOST_VOID} look-ups without a record`)
        return []
      case 'found':
        return answer.records
    }
  }

  #isIn(network: string, prefix: number): boolean {
    const isV6 = isIPv6(this.#address)
    if (isIPv6(network) !== isV6) return false
    const family = isV6 ? 'ipv6' : 'ipv4'
    const list = new BlockList()
    list.addSubnet(network, prefix, family)
    return list.check(this.#address, family)
  }
}
