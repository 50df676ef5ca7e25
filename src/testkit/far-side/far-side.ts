/**
 * Everything beyond our own machine: names, doors and mail servers that fail as a script says. It stands behind a
 * MemoryNet in a world and behind TCP ports in a sink; the rules, their memory and the bytes are the same.
 */
import type { Socket } from 'node:net'
import type { Endpoint, Lookup, MxRecord } from '../../delivery/net.ts'
import { sleep, type Clock, type Duration } from '../../mail/clock.ts'
import type { Random } from '../../mail/random.ts'
import type { Door, Outside } from '../memory-net.ts'
import { addressRules } from './address-rules.ts'
import { isAbout, type Circumstances } from './circumstances.ts'
import type { FarEvent, Hear, ReceivedMail } from './events.ts'
import { RuleMemory } from './memory.ts'
import { Names } from './names.ts'
import { NO_SCRIPT, type DnsFault, type FaultStage, type Rule, type Script, type Zone } from './rule.ts'
import { Session, type Host } from './session.ts'

/** How long a resolver waits for servers that never answer (resolv.conf: timeout 5, attempts 2). */
const RESOLVER_PATIENCE: Duration = 10_000

export interface FarSideParts {
  readonly clock: Clock
  readonly random: Random
  readonly script?: Script | undefined
  /** Do addresses such as `550@…` say what they want? */
  readonly addresses?: boolean | undefined
  /** Told of everything that happens. */
  readonly hear?: Hear | undefined
  /** Given every message that is kept. */
  readonly keep?: ((mail: ReceivedMail) => void) | undefined
}

interface RememberedRule {
  readonly rule: Rule
  readonly memory: RuleMemory
}

export class FarSide implements Outside, Host {
  readonly clock: Clock
  readonly #parts: FarSideParts
  readonly #names: Names
  readonly #startedAt: Duration
  #rules: readonly RememberedRule[]
  /** Rules that came in by addresses, made once for each that asks for something. */
  readonly #addressRules = new Map<string, readonly RememberedRule[]>()
  readonly #held = new Map<string, number>()
  readonly #sockets = new Set<Socket>()
  #sessions = 0
  #mails = 0

  constructor(parts: FarSideParts) {
    this.clock = parts.clock
    this.#parts = parts
    this.#startedAt = parts.clock.monotonic()
    const { rules, zones } = parts.script ?? NO_SCRIPT
    this.#names = new Names(zones)
    this.#rules = rules.map((rule) => this.#remember(rule))
  }

  /** Adds rules before all others: what is said last holds first. */
  obey(...rules: readonly Rule[]): void {
    this.#rules = [...rules.map((rule) => this.#remember(rule)), ...this.#rules]
  }

  /** Forgets rules, with all they remember. */
  forget(isForgotten: (rule: Rule) => boolean): void {
    this.#rules = this.#rules.filter(({ rule }) => !isForgotten(rule))
  }

  /** DNS says this of a domain from now on. */
  tellOf(domain: string, zone: Zone): void {
    this.#names.tell(domain, zone)
  }

  /** The mailbox was emptied. */
  emptyMailbox(recipient: string): void {
    this.#held.delete(recipient)
  }

  async lookupMx(domain: string): Promise<Lookup<MxRecord>> {
    const facts = this.#farFacts('dns', { mx: '', domains: [domain] })
    return this.#lookup(facts, 'MX', domain, () => this.#names.mx(domain), [{ preference: 0, exchange: '' }])
  }

  async lookupAddresses(host: string, family: 4 | 6): Promise<Lookup<string>> {
    const facts = this.#farFacts('dns', { mx: host, domains: [host] })
    return this.#lookup(facts, family === 4 ? 'A' : 'AAAA', host, () => this.#names.addresses(host, family), [])
  }

  door(to: Endpoint, from: Endpoint): Door {
    const mx = this.#names.hostAt(to.address)
    const rule = this.#decideDoor(mx, from.address)
    const accept = (socket: Socket) => this.#open(socket, mx, from.address)
    if (rule?.fault.at !== 'connect') return { kind: 'open', accept }
    const { connect, delay: after } = rule.fault
    switch (connect) {
      case 'refused':
        return { kind: 'closed', code: 'ECONNREFUSED', after }
      case 'unreachable':
        return { kind: 'closed', code: 'EHOSTUNREACH', after }
      case 'timeout':
        return { kind: 'silent' }
      case 'slow':
        return { kind: 'open', accept, after }
      case 'reset':
      case 'closed':
        return { kind: 'open', accept: (socket) => hangUp(socket, connect), after }
    }
  }

  /**
   * Takes a connection that the system has already made, for the host of that name. What a rule would have done to the
   * connecting itself is done as nearly as it can be: refusing becomes a reset, a timeout silence.
   */
  async accept(socket: Socket, mx: string): Promise<void> {
    const client = socket.remoteAddress ?? ''
    const rule = this.#decideDoor(mx, client)
    if (rule?.fault.at !== 'connect') return this.#open(socket, mx, client)
    const { connect, delay } = rule.fault
    this.#track(socket)
    socket.on('error', () => socket.destroy())
    await sleep(this.clock, delay)
    if (connect === 'slow') return this.#open(socket, mx, client)
    if (connect === 'timeout') socket.resume()
    else hangUp(socket, connect)
    return undefined
  }

  domainsOf(mx: string): readonly string[] {
    return this.#names.domainsOf(mx)
  }

  /** Since it began. */
  age(): Duration {
    return this.clock.monotonic() - this.#startedAt
  }

  nextMailNumber(): number {
    return ++this.#mails
  }

  keep(mail: ReceivedMail): void {
    for (const recipient of mail.recipients) this.#held.set(recipient, (this.#held.get(recipient) ?? 0) + 1)
    this.#parts.keep?.(mail)
  }

  tell(event: FarEvent): void {
    this.#parts.hear?.(event, this.clock.now())
  }

  decide(facts: Circumstances, early: boolean): Rule | undefined {
    for (const { rule, memory } of this.#rulesFor(facts)) {
      if (rule.fault.at === facts.stage && rule.early === early && isAbout(rule.where, facts) && memory.acts(facts)) return rule
    }
    return undefined
  }

  /** Hangs up on everybody. */
  close(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  #remember(rule: Rule): RememberedRule {
    const held = (recipient: string) => this.#held.get(recipient) ?? 0
    return { rule, memory: new RuleMemory(rule, { random: this.#parts.random, held }) }
  }

  *#rulesFor(facts: Circumstances): Generator<RememberedRule> {
    yield* this.#rules
    if (this.#parts.addresses === true) for (const address of facts.recipients) yield* this.#wishesOf(address)
  }

  #wishesOf(address: string): readonly RememberedRule[] {
    const known = this.#addressRules.get(address)
    if (known !== undefined) return known
    const rules = addressRules(address).map((rule) => this.#remember(rule))
    if (rules.length > 0) this.#addressRules.set(address, rules)
    return rules
  }

  #farFacts(
    stage: FaultStage,
    { mx, domains, client = '' }: { readonly mx: string; readonly domains: readonly string[]; readonly client?: string },
  ) {
    return { stage, age: this.age(), connection: 0, client, mx, domains, recipients: [], accepted: 0 } satisfies Circumstances
  }

  #decideDoor(mx: string, client: string): Rule | undefined {
    const rule = this.decide(this.#farFacts('connect', { mx, domains: this.domainsOf(mx), client }), false)
    if (rule?.fault.at === 'connect' && rule.fault.connect !== 'slow') {
      this.tell({ event: 'refused', mx, client, how: rule.fault.connect, rule: rule.name })
    }
    return rule
  }

  #open(socket: Socket, mx: string, client: string): void {
    const number = ++this.#sessions
    this.#track(socket)
    socket.setNoDelay(true)
    const facts = { ...this.#farFacts('greeting', { mx, domains: this.domainsOf(mx), client }), connection: number }
    for (const { rule, memory } of this.#rules) {
      const { domain, mx: host, client: caller } = rule.where
      if (isAbout({ domain, mx: host, client: caller }, facts)) memory.opened(facts)
    }
    socket.once('close', () => {
      for (const { memory } of this.#rules) memory.closed(number)
    })
    this.tell({ event: 'connected', session: number, mx, client })
    void new Session(this, { socket, number, mx, client }).run()
  }

  #track(socket: Socket): void {
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
  }

  async #lookup<T>(
    facts: Circumstances,
    type: string,
    name: string,
    usual: () => Lookup<T>,
    nullRecords: readonly T[],
  ): Promise<Lookup<T>> {
    const rule = this.decide(facts, false)
    const fault = rule?.fault.at === 'dns' ? rule.fault : undefined
    const delay = (fault?.delay ?? 0) + (fault?.dns === 'timeout' ? RESOLVER_PATIENCE : 0)
    if (delay > 0) await sleep(this.clock, delay)
    const answer = fault === undefined || fault.dns === 'slow' ? usual() : failedLookup(fault.dns, nullRecords)
    this.tell({ event: 'lookup', name, type, answer: answerInWords(answer), rule: rule?.name })
    return answer
  }
}

function hangUp(socket: Socket, how: 'refused' | 'unreachable' | 'reset' | 'closed'): void {
  socket.on('error', () => socket.destroy())
  socket.resume()
  if (how === 'closed') socket.end()
  else socket.resetAndDestroy()
}

function failedLookup<T>(fault: DnsFault, nullRecords: readonly T[]): Lookup<T> {
  switch (fault) {
    case 'nxdomain':
      return { kind: 'none', nxdomain: true }
    case 'no-data':
      return { kind: 'none', nxdomain: false }
    case 'null-mx':
      return nullRecords.length > 0 ? { kind: 'found', records: nullRecords } : { kind: 'none', nxdomain: false }
    case 'servfail':
      return { kind: 'failed', soft: true, reason: 'SERVFAIL' }
    case 'timeout':
      return { kind: 'failed', soft: true, reason: 'timeout' }
    case 'refused':
      return { kind: 'failed', soft: false, reason: 'REFUSED' }
  }
}

function answerInWords<T>(answer: Lookup<T>): string {
  switch (answer.kind) {
    case 'found':
      return answer.records.map((record) => (typeof record === 'string' ? record : JSON.stringify(record))).join(', ')
    case 'none':
      return answer.nxdomain ? 'NXDOMAIN' : 'no data'
    case 'failed':
      return answer.reason
  }
}
