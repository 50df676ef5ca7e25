/**
 * A domain of the far side, told in verbs how to fail. Each verb is one rule of the script language; what is said last
 * holds first. Times are written as `'5m'`, or in seconds.
 */
import { ConfigError } from '../config/problem.ts'
import type { Duration } from '../mail/clock.ts'
import type { RuleText } from './far-side/rule-keys.ts'
import { readRule } from './far-side/rule-reader.ts'
import type { DnsFault, Rule, Zone } from './far-side/rule.ts'
import { toDuration, toText, type Time } from './time.ts'

/** What a destination needs of its world. */
export interface FarGround {
  obey(rule: Rule): void
  forget(isForgotten: (rule: Rule) => boolean): void
  tellOf(domain: string, zone: Zone): void
  /** Since the script began. */
  elapsed(): Duration
}

/** Reads a rule that was written in code; a mistake is the caller's, and told at once. */
export function ruleFrom(name: string, written: RuleText): Rule {
  const read = readRule(name, written)
  if ('rule' in read) return read.rule
  throw new ConfigError(read.mistakes.map(({ key, text }) => ({ where: key === null ? name : `${name}.${key}`, text })))
}

export class Destination {
  readonly domain: string
  readonly #ground: FarGround

  constructor(domain: string, ground: FarGround) {
    this.domain = domain.toLowerCase()
    this.#ground = ground
  }

  /** Any rule of the script language, for this domain. */
  fails(rule: RuleText): this {
    return this.#add('fails', rule)
  }

  /** Turns each triplet of client, sender and recipient away until it has waited so long. */
  greylists(delay: Time, { window }: { readonly window?: Time } = {}): this {
    return this.#add('greylists', { greylist: delay, ...(window === undefined ? {} : { greylist_window: window }) })
  }

  /** Refuses connections until it is told to recover. */
  isDown(): this {
    return this.#add('is down', { connect: 'refused' })
  }

  /** Refuses connections from now on for so long. */
  isDownFor(time: Time): this {
    return this.#add('is down', { connect: 'refused', ...this.#from(0, time) })
  }

  /** Refuses connections, counted from now, between two times. */
  isDownBetween(from: Time, until: Time): this {
    return this.#add('is down', { connect: 'refused', ...this.#from(from, until) })
  }

  /** Lets connections time out until it is told to recover. */
  isUnreachable(): this {
    return this.#add('is unreachable', { connect: 'timeout' })
  }

  /** Answers RCPT for an address (or for all) with a refusal. */
  rejects(recipient = '*', reply = '550 5.1.1 no such user'): this {
    return this.#add('rejects', { at: 'rcpt', recipient, reply })
  }

  /** Answers RCPT for an address (or for all) with a temporary failure, from now on for so long or until it recovers. */
  defers(recipient = '*', reply = '451 4.3.0 try again later', { for: time }: { readonly for?: Time } = {}): this {
    return this.#add('defers', { at: 'rcpt', recipient, reply, ...(time === undefined ? {} : this.#from(0, time)) })
  }

  /** Fails the first so many tries of each recipient; then all is well. */
  failsFirst(times: number, reply = '451 4.3.0 try again later'): this {
    return this.#add('fails first', { at: 'rcpt', reply, first: times, per: 'recipient' })
  }

  /** Takes so many messages in a time, such as `10/1m`; more are turned away, for `penalty` at least. */
  throttles(rate: string, { penalty, reply }: { readonly penalty?: Time; readonly reply?: string } = {}): this {
    return this.#add('throttles', {
      at: 'mail',
      rate,
      ...(penalty === undefined ? {} : { penalty }),
      ...(reply === undefined ? {} : { reply }),
    })
  }

  /** Lets no more than so many connections be open at once. */
  allowsConnections(count: number): this {
    return this.#add('allows few connections', { connections_over: count })
  }

  /** The mailbox is full from now on for so long, or until it recovers. */
  mailboxIsFull(recipient: string, { for: time }: { readonly for?: Time } = {}): this {
    return this.#add('mailbox is full', {
      at: 'rcpt',
      recipient,
      reply: '452 4.2.2 mailbox full',
      ...(time === undefined ? {} : this.#from(0, time)),
    })
  }

  /** Accepts a message and hangs up before it says so, so many times: the message will come again. */
  dropsAfterDot(times = 1): this {
    return this.#add('drops after dot', { at: 'end-of-data', drop: 'fin', first: times })
  }

  /** Answers RCPT late. */
  isSlow(delay: Time): this {
    return this.#add('is slow', { at: 'rcpt', delay })
  }

  /** DNS fails for the domain until it recovers. */
  failsInDns(fault: DnsFault = 'servfail'): this {
    return this.#add('fails in DNS', { dns: fault })
  }

  /** Says which hosts take the mail of the domain: `'10 mx1.example.net', '20 mx2.example.net'`. */
  hasExchangers(...exchangers: readonly string[]): this {
    const mx = exchangers.map((text) => {
      const [, preference, exchange] = /^(\d+) (\S+)$/.exec(text) ?? []
      if (exchange === undefined) throw new TypeError(`expected a preference and a host such as "10 mx1.${this.domain}", got "${text}"`)
      return { preference: Number(preference), exchange: exchange === '.' ? '' : exchange.toLowerCase() }
    })
    this.#ground.tellOf(this.domain, { mx, a: [], aaaa: [] })
    return this
  }

  /** Forgets all that was said of it, with what it remembers. */
  recovers(): this {
    this.#ground.forget((rule) => rule.where.domain === this.domain)
    return this
  }

  #add(verb: string, rule: RuleText): this {
    this.#ground.obey(ruleFrom(`${this.domain} ${verb}`, { ...rule, domain: this.domain }))
    return this
  }

  /** Times of rules count from the beginning; those of verbs from now. */
  #from(from: Time, until: Time): { readonly from: string; readonly until: string } {
    const now = this.#ground.elapsed()
    return { from: toText(now + toDuration(from)), until: toText(now + toDuration(until)) }
  }
}
