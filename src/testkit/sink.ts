/**
 * The far side on real ports, for anything that speaks SMTP: prints what happens, one JSON object for each event, and
 * counts what is worth a summary.
 */
import type { Endpoint, Listener, Net } from '../delivery/net.ts'
import type { Clock, Instant } from '../mail/clock.ts'
import { isoInstant } from '../mail/mail-date.ts'
import type { Random } from '../mail/random.ts'
import type { FarEvent } from './far-side/events.ts'
import { FarSide } from './far-side/far-side.ts'
import type { Script } from './far-side/rule.ts'

/** A port, and the name of the host that is played there. */
export interface SinkPort {
  readonly at: Endpoint
  readonly mx: string
}

export interface SinkParts {
  readonly net: Net
  readonly clock: Clock
  readonly random: Random
  readonly ports: readonly SinkPort[]
  /** Without one, addresses say what they want. */
  readonly script: Script | null
  /** Given each event as an object fit for JSON. */
  readonly print: (event: object) => void
}

/** What came of everything. Replies by their code, deeds by the rule that asked for them. */
export interface SinkSummary {
  readonly connections: number
  readonly refused_connections: number
  readonly messages_kept: number
  readonly recipients_kept: number
  /** Messages that were kept although the client was not told so: it will send them again. */
  readonly kept_but_not_told: number
  readonly replies: Readonly<Record<string, number>>
  readonly rules: Readonly<Record<string, number>>
}

export class Sink {
  readonly #parts: SinkParts
  readonly #far: FarSide
  readonly #startedAt: Instant
  readonly #listeners: Listener[] = []
  readonly #tally = new Tally()

  constructor(parts: SinkParts) {
    const { clock, random, script } = parts
    this.#parts = parts
    this.#startedAt = clock.now()
    this.#far = new FarSide({
      clock,
      random,
      script: script ?? undefined,
      addresses: script === null,
      hear: (event, at) => this.#hear(event, at),
    })
  }

  /** Opens the ports, in the order given; rejects with the system's error when one cannot be had. */
  async open(): Promise<readonly Endpoint[]> {
    for (const { at, mx } of this.#parts.ports) {
      const listener = await this.#parts.net.listen(at, (socket) => void this.#far.accept(socket, mx))
      this.#listeners.push(listener)
    }
    return this.#listeners.map(({ address, port }) => ({ address, port }))
  }

  summary(): SinkSummary {
    return this.#tally.summary()
  }

  /** Closes the ports and hangs up on everybody. */
  async close(): Promise<void> {
    const closed = Promise.all(this.#listeners.map((listener) => listener.close()))
    this.#far.close()
    await closed
  }

  #hear(event: FarEvent, at: Instant): void {
    this.#tally.count(event)
    this.#parts.print({ time: isoInstant(at), after: (at - this.#startedAt) / 1000, ...event })
  }
}

class Tally {
  #connections = 0
  #refused = 0
  #messages = 0
  #recipients = 0
  #notTold = 0
  readonly #replies = new Map<string, number>()
  readonly #rules = new Map<string, number>()

  count(event: FarEvent): void {
    if ('rule' in event && event.rule !== undefined) add(this.#rules, event.rule)
    switch (event.event) {
      case 'connected':
        this.#connections++
        return
      case 'refused':
        this.#refused++
        return
      case 'reply':
        add(this.#replies, /^\d{3}(?=[ -]|$)/.exec(event.reply)?.[0] ?? 'none')
        return
      case 'message':
        if (event.kept) this.#countKept(event)
        return
      case 'lookup':
      case 'closed':
    }
  }

  summary(): SinkSummary {
    return {
      connections: this.#connections,
      refused_connections: this.#refused,
      messages_kept: this.#messages,
      recipients_kept: this.#recipients,
      kept_but_not_told: this.#notTold,
      replies: Object.fromEntries([...this.#replies].toSorted(([a], [b]) => a.localeCompare(b))),
      rules: Object.fromEntries(this.#rules),
    }
  }

  #countKept({ recipients, told }: Extract<FarEvent, { readonly event: 'message' }>): void {
    this.#messages++
    this.#recipients += recipients.length
    if (told === null || told >= 300) this.#notTold++
  }
}

const add = (counts: Map<string, number>, key: string): void => void counts.set(key, (counts.get(key) ?? 0) + 1)
