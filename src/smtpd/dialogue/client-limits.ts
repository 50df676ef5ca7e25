/**
 * Connection and rate limits per client address (Postfix anvil). The number of addresses in memory is bounded. An address is
 * dropped when it has no connections and no counts.
 */
import type { SharedSettings } from '../../config/options.ts'
import type { Clock, Duration } from '../../system/clock.ts'
import type { SmtpReply } from '../../mail/smtp-reply.ts'
import { Networks } from '../../config/values/networks.ts'
import { reply, disconnect } from './replies.ts'

type ClientLimitSettings = Pick<
  SharedSettings,
  | 'myhostname'
  | 'anvil_rate_time_unit'
  | 'smtpd_client_connection_count_limit'
  | 'smtpd_client_connection_rate_limit'
  | 'smtpd_client_message_rate_limit'
  | 'smtpd_client_recipient_rate_limit'
  | 'smtpd_client_new_tls_session_rate_limit'
  | 'smtpd_client_auth_rate_limit'
  | 'smtpd_client_event_limit_exceptions'
>

/** Events counted per anvil_rate_time_unit. */
export type CountedEvent = 'connection' | 'message' | 'recipient' | 'handshake' | 'auth'

interface ClientRecord {
  connections: number
  /** Start of the current time unit, on the monotonic clock. */
  since: Duration
  events: { [K in CountedEvent]?: number }
}

/** Number of addresses in memory; those with connections are never dropped. */
const MOST_ADDRESSES = 10_000

/** Connections and events of the clients at all listeners. A reload keeps them. */
export class ClientCounts {
  readonly #clock: Clock
  readonly #records = new Map<string, ClientRecord>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Counts a connection. Returns how many the client has. */
  enter(address: string): number {
    return ++this.#recordOf(address).connections
  }

  leave(address: string): void {
    const record = this.#records.get(address)
    if (record === undefined) return
    record.connections--
    if (record.connections === 0 && Object.keys(record.events).length === 0) this.#records.delete(address)
  }

  /** Counts an event. Returns how many there were in the current time unit. */
  count(event: CountedEvent, address: string, unit: Duration): number {
    const record = this.#recordOf(address)
    const now = this.#clock.monotonic()
    if (now - record.since >= unit) Object.assign(record, { since: now, events: {} })
    return (record.events[event] = (record.events[event] ?? 0) + 1)
  }

  #recordOf(address: string): ClientRecord {
    const known = this.#records.get(address)
    if (known !== undefined) return known
    if (this.#records.size >= MOST_ADDRESSES) this.#forget()
    const record: ClientRecord = { connections: 0, since: this.#clock.monotonic(), events: {} }
    this.#records.set(address, record)
    return record
  }

  /** Drops addresses without connections, oldest first, until half remain. */
  #forget(): void {
    for (const [address, record] of this.#records) {
      if (record.connections === 0) this.#records.delete(address)
      if (this.#records.size < MOST_ADDRESSES / 2) return
    }
  }
}

export class ClientLimits {
  readonly #settings: ClientLimitSettings
  readonly #counts: ClientCounts
  readonly #exceptions: Networks
  readonly #limits: { readonly [K in CountedEvent]: number }

  constructor(settings: ClientLimitSettings, counts: ClientCounts) {
    this.#settings = settings
    this.#counts = counts
    this.#exceptions = new Networks(settings.smtpd_client_event_limit_exceptions, 'smtpd_client_event_limit_exceptions')
    this.#limits = {
      connection: settings.smtpd_client_connection_rate_limit,
      message: settings.smtpd_client_message_rate_limit,
      recipient: settings.smtpd_client_recipient_rate_limit,
      handshake: settings.smtpd_client_new_tls_session_rate_limit,
      auth: settings.smtpd_client_auth_rate_limit,
    }
  }

  /**
   * Counts a connection. Returns a refusal when the client has too many connections, or opened too many in the current time unit.
   * Every `enter` needs a `leave`, also after a refusal.
   */
  enter(address: string): SmtpReply | undefined {
    const { smtpd_client_connection_count_limit: most } = this.#settings
    const connections = this.#counts.enter(address)
    const tooMany = most > 0 && connections > most && !this.#exceptions.has(address)
    return this.count('connection', address) ?? (tooMany ? this.#refusal('connection', address) : undefined)
  }

  leave(address: string): void {
    this.#counts.leave(address)
  }

  /** Counts an event of a client. Returns a refusal when the client exceeds the limit of that event in the current time unit. */
  count(event: CountedEvent, address: string): SmtpReply | undefined {
    const limit = this.#limits[event]
    if (limit === 0 || this.#exceptions.has(address)) return undefined
    const count = this.#counts.count(event, address, this.#settings.anvil_rate_time_unit)
    return count > limit ? this.#refusal(event, address) : undefined
  }

  #refusal(event: CountedEvent, address: string): SmtpReply {
    switch (event) {
      case 'connection':
        return disconnect('4.7.0', this.#settings.myhostname, `Error: too many connections from ${address}`)
      case 'message':
        return reply(450, '4.7.1', `Error: too much mail from ${address}`)
      case 'recipient':
        return reply(450, '4.7.1', `Error: too many recipients from ${address}`)
      case 'handshake':
        return reply(454, '4.7.0', `Error: too many new TLS sessions from ${address}`)
      case 'auth':
        return reply(450, '4.7.1', `Error: too many AUTH commands from ${address}`)
    }
  }
}
