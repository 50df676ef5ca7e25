/**
 * A remote domain whose failures are scripted by methods. Each method adds one rule of the script language (docs/faults.md), and
 * the newest matching rule is applied. Times are `'5m'` or seconds.
 */
import { ConfigError } from '../../config/values/problem.ts'
import type { Duration } from '../../system/clock.ts'
import { shown } from '../../system/shown-value.ts'
import type { RuleText } from '../remote/rule-keys.ts'
import { readRule } from '../remote/rule-reader.ts'
import type { StsFailure, StsMode } from '../remote/published-policies.ts'
import type { RemoteNetwork } from '../remote/remote-network.ts'
import type { DnsFault, Rule } from '../remote/rule.ts'
import { readPolicy } from '../remote/server-tables.ts'
import { CERTIFICATES, tlsaRecord, type HostCertificate } from '../remote/world-certificates.ts'
import { requireDomain, requireKnownOptions, requireObject, requireRecipient, requireReply } from '../options/argument-checks.ts'
import { toDuration, toText, type Time } from '../options/time.ts'

interface RemoteDomainDeps {
  readonly remote: Pick<RemoteNetwork, 'addRules' | 'removeRules' | 'setZone' | 'offerTls' | 'sign' | 'publishPolicy'>
  /** Milliseconds since the start of the world. */
  elapsed(): Duration
}

/** An MTA-STS policy of a domain (RFC 8461). */
export interface StsPolicyOptions {
  readonly mode: StsMode
  /** Names or patterns (`*.example.net`) of exchangers; default: those that the MX records of the domain have. */
  readonly mx?: readonly string[]
  /** Time for which the policy is valid; default 7d. */
  readonly maxAge?: Time
  /** Failure of the host `mta-sts.DOMAIN`, or the status of its answers. The TXT record is published all the same. */
  readonly fails?: StsFailure | number
}

/** Reads a rule written in code. Throws a ConfigError with all mistakes. */
export function ruleFrom(name: string, written: RuleText): Rule {
  requireObject(name, written)
  const read = readRule(name, written)
  if ('rule' in read) return read.rule
  throw new ConfigError(read.mistakes.map(({ key, text }) => ({ where: key === null ? name : `${name}.${key}`, text })))
}

/**
 * A remote domain. Without rules, it accepts every message. Methods that add rules return the domain, so that they can be
 * chained. They throw a ConfigError for an invalid value, such as the time `'soon'`, and a TypeError for an argument of the wrong
 * kind, such as a reply in place of a recipient.
 */
export class RemoteDomain {
  /** Domain in lower case. */
  readonly domain: string
  readonly #remote: RemoteDomainDeps

  /** @internal Use `world.destination`. */
  constructor(domain: string, remote: RemoteDomainDeps) {
    requireDomain('destination', domain)
    const [, host, port] = /^([^[\]:]+):(\d+)$/.exec(domain) ?? []
    if (port !== undefined)
      throw new TypeError(`destination expects a domain without a port, got "${domain}"; write destination("${host}")`)
    this.domain = domain.toLowerCase()
    this.#remote = remote
  }

  /** Adds any rule of the script language for this domain. */
  fails(rule: RuleText): this {
    return this.#add('fails', rule)
  }

  /**
   * Defers each triplet of client, sender and recipient until `delay` after its first attempt. A triplet without an attempt
   * between `delay` and `window` (4h) after the first one is treated as new.
   */
  greylists(delay: Time, options: { readonly window?: Time } = {}): this {
    requireKnownOptions('greylists', options, ['window'])
    const { window } = options
    return this.#add('greylists', { greylist: delay, ...(window === undefined ? {} : { greylist_window: window }) })
  }

  /** Refuses connections until `recovers`. */
  isDown(): this {
    return this.#add('is down', { connect: 'refused' })
  }

  /** Refuses connections for a time from now. */
  isDownFor(time: Time): this {
    return this.#add('is down', { connect: 'refused', ...this.#from(0, time) })
  }

  /** Refuses connections between two times, both counted from now. */
  isDownBetween(from: Time, until: Time): this {
    return this.#add('is down', { connect: 'refused', ...this.#from(from, until) })
  }

  /** Lets connections time out until `recovers`. */
  isUnreachable(): this {
    return this.#add('is unreachable', { connect: 'timeout' })
  }

  /** Rejects RCPT for an address, or for all, with a permanent failure. */
  rejects(recipient = '*', reply = '550 5.1.1 no such user'): this {
    requireRecipient('rejects', recipient, this.domain)
    requireReply('rejects', reply, ['5'])
    return this.#add('rejects', { at: 'rcpt', recipient, reply })
  }

  /** Rejects RCPT for an address, or for all, with a temporary failure: for a time from now, or until `recovers`. */
  defers(recipient = '*', reply = '451 4.3.0 try again later', options: { readonly for?: Time } = {}): this {
    requireRecipient('defers', recipient, this.domain)
    requireReply('defers', reply, ['4'])
    requireKnownOptions('defers', options, ['for'])
    const { for: time } = options
    return this.#add('defers', { at: 'rcpt', recipient, reply, ...(time === undefined ? {} : this.#from(0, time)) })
  }

  /** Rejects the first `times` attempts of each recipient at RCPT, and accepts the next. */
  failsFirst(times: number, reply = '451 4.3.0 try again later'): this {
    requireReply('failsFirst', reply, ['4', '5'])
    return this.#add('fails first', { at: 'rcpt', reply, first: times, per: 'recipient' })
  }

  /** Accepts a rate of messages such as `10/1m`; above it, MAIL gets `reply` (421), for at least `penalty`. */
  throttles(rate: string, options: { readonly penalty?: Time; readonly reply?: string } = {}): this {
    requireKnownOptions('throttles', options, ['penalty', 'reply'])
    const { penalty, reply } = options
    if (reply !== undefined) requireReply('throttles', reply, ['4', '5'])
    return this.#add('throttles', {
      at: 'mail',
      rate,
      ...(penalty === undefined ? {} : { penalty }),
      ...(reply === undefined ? {} : { reply }),
    })
  }

  /** Allows `count` simultaneous connections; further ones get 421. */
  allowsConnections(count: number): this {
    return this.#add('allows few connections', { connections_over: count })
  }

  /** Replies 452 4.2.2 to RCPT for an address: for a time from now, or until `recovers`. */
  mailboxIsFull(recipient: string, options: { readonly for?: Time } = {}): this {
    requireRecipient('mailboxIsFull', recipient, this.domain)
    requireKnownOptions('mailboxIsFull', options, ['for'])
    const { for: time } = options
    return this.#add('mailbox is full', {
      at: 'rcpt',
      recipient,
      reply: '452 4.2.2 mailbox full',
      ...(time === undefined ? {} : this.#from(0, time)),
    })
  }

  /** Keeps a message but closes the connection before the reply to the final dot, so that a duplicate follows. Does so `times` times. */
  dropsAfterDot(times = 1): this {
    return this.#add('drops after dot', { at: 'end-of-data', drop: 'fin', first: times })
  }

  /** Delays the reply to RCPT. */
  isSlow(delay: Time): this {
    return this.#add('is slow', { at: 'rcpt', delay })
  }

  /** Makes lookups of the domain fail until `recovers`. */
  failsInDns(fault: DnsFault = 'servfail'): this {
    return this.#add('fails in DNS', { dns: fault })
  }

  /** Sets the MX records: `'10 mx1.example.net', '20 mx2.example.net'`. Throws a TypeError for any other form. */
  hasExchangers(...exchangers: readonly string[]): this {
    const mx = exchangers.map((text) => {
      const [, preference, exchange] = /^(\d+) (\S+)$/.exec(text) ?? []
      if (exchange === undefined) throw new TypeError(`expected a preference and a host such as "10 mx1.${this.domain}", got "${text}"`)
      return { preference: Number(preference), exchange: exchange === '.' ? '' : exchange.toLowerCase() }
    })
    this.#remote.remote.setZone(this.#requireName('hasExchangers'), { mx, a: [], aaaa: [] })
    return this
  }

  /**
   * Offers STARTTLS at all exchangers, with a certificate of WORLD_CA for their names: one that is valid, one with a flaw, or one that is
   * self-signed.
   */
  offersTls(certificate: HostCertificate = 'valid'): this {
    if (!CERTIFICATES.includes(certificate))
      throw new TypeError(`offersTls expects one of ${CERTIFICATES.join(', ')}, got ${shown(certificate)}`)
    this.#remote.remote.offerTls(this.#requireName('offersTls'), certificate)
    return this
  }

  /**
   * Signs the domain and its exchangers (DNSSEC), with TLSA records at port 25 of each exchanger: `'3 1 1'` fits the certificate of
   * `offersTls`, `'3 1 1 d2ab…'` has octets of its own. Throws a TypeError for any other form.
   */
  hasTlsa(...records: readonly string[]): this {
    const texts = records.length === 0 ? ['3 1 1'] : records
    const wrong = texts.find((text) => tlsaRecord(text, this.domain) === undefined)
    if (wrong !== undefined)
      throw new TypeError(`hasTlsa expects usage, selector, matching type and perhaps octets, such as "3 1 1", got ${shown(wrong)}`)
    this.#remote.remote.sign(this.#requireName('hasTlsa'), texts)
    return this
  }

  /** Publishes an MTA-STS policy: its TXT record, and the policy at `mta-sts.DOMAIN` over HTTPS with a certificate of WORLD_CA. */
  hasStsPolicy(policy: StsPolicyOptions): this {
    requireKnownOptions('hasStsPolicy', policy, ['mode', 'mx', 'maxAge', 'fails'])
    const { maxAge, ...table } = policy
    const wrong = (_key: string | null, text: string): void => {
      throw new TypeError(`hasStsPolicy of ${this.domain}: ${text.replace('max_age', 'maxAge')}`)
    }
    const read = readPolicy({ ...table, ...(maxAge === undefined ? {} : { max_age: maxAge }) }, wrong)
    if (read !== null) this.#remote.remote.publishPolicy(this.#requireName('hasStsPolicy'), read)
    return this
  }

  /** Removes all rules of the domain with their state. MX records, certificates, TLSA records and policies are kept. */
  recovers(): this {
    this.#remote.remote.removeRules((rule) => rule.where.domain === this.domain)
    return this
  }

  #add(verb: string, rule: RuleText): this {
    const missing = verb === 'fails' ? undefined : Object.entries(rule).find(([, value]) => value === undefined)
    if (missing !== undefined) throw new TypeError(`${this.domain} ${verb}: expected a value for ${missing[0]}, got undefined`)
    this.#remote.remote.addRules(ruleFrom(`${this.domain} ${verb}`, { ...rule, domain: this.domain }))
    return this
  }

  /** The domain, for a method that acts on one domain. Throws a TypeError for a pattern. */
  #requireName(of: string): string {
    if (!this.domain.includes('*') && !this.domain.startsWith('.')) return this.domain
    throw new TypeError(`${of} expects one domain such as "example.net", got the pattern ${shown(this.domain)}`)
  }

  /** Converts times counted from now to times counted from the start of the world, as rules require. */
  #from(from: Time, until: Time): { readonly from: string; readonly until: string } {
    const now = this.#remote.elapsed()
    return { from: toText(now + toDuration(from)), until: toText(now + toDuration(until)) }
  }
}
