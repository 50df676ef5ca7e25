/**
 * What one client address may do at once and in a while (postfix anvil). Addresses are forgotten as soon as nothing
 * about them matters, and the number of those that are remembered is bounded, so that a crowd costs no memory.
 */
import type { Config } from '../config/options.ts'
import type { Clock, Duration } from '../mail/clock.ts'
import type { SmtpReply } from '../mail/reply.ts'
import { Networks } from '../config/networks.ts'
import { reply, shownOut } from './replies.ts'

export type ClientLimitSettings = Pick<
  Config,
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

/** What is counted by the minute. */
export type Deed = 'connection' | 'message' | 'recipient' | 'handshake' | 'auth'

interface Record {
  connections: number
  /** On the stopwatch; counts older than the time unit begin anew. */
  since: Duration
  deeds: { [K in Deed]?: number }
}

/** Addresses remembered beyond those that are connected. */
const MEMORY = 10_000

export class ClientLimits {
  readonly #settings: ClientLimitSettings
  readonly #clock: Clock
  readonly #exceptions: Networks
  readonly #limits: { readonly [K in Deed]: number }
  readonly #records = new Map<string, Record>()

  constructor(settings: ClientLimitSettings, clock: Clock) {
    this.#settings = settings
    this.#clock = clock
    this.#exceptions = new Networks(settings.smtpd_client_event_limit_exceptions, 'smtpd_client_event_limit_exceptions')
    this.#limits = {
      connection: settings.smtpd_client_connection_rate_limit,
      message: settings.smtpd_client_message_rate_limit,
      recipient: settings.smtpd_client_recipient_rate_limit,
      handshake: settings.smtpd_client_new_tls_session_rate_limit,
      auth: settings.smtpd_client_auth_rate_limit,
    }
  }

  /** Counts a connection in; the reply when it is one too many. Every `enter` has its `leave`. */
  enter(address: string): SmtpReply | undefined {
    const { smtpd_client_connection_count_limit: most } = this.#settings
    const record = this.#recordOf(address)
    record.connections++
    const tooMany = most > 0 && record.connections > most && !this.#exceptions.has(address)
    return this.count('connection', address) ?? (tooMany ? this.#refusal('connection', address) : undefined)
  }

  leave(address: string): void {
    const record = this.#records.get(address)
    if (record === undefined) return
    record.connections--
    if (record.connections === 0 && Object.keys(record.deeds).length === 0) this.#records.delete(address)
  }

  /** Counts one deed of a client; the reply when it was one too many. */
  count(deed: Deed, address: string): SmtpReply | undefined {
    const limit = this.#limits[deed]
    if (limit === 0 || this.#exceptions.has(address)) return undefined
    const record = this.#recordOf(address)
    const now = this.#clock.monotonic()
    if (now - record.since >= this.#settings.anvil_rate_time_unit) Object.assign(record, { since: now, deeds: {} })
    const count = (record.deeds[deed] ?? 0) + 1
    record.deeds[deed] = count
    return count > limit ? this.#refusal(deed, address) : undefined
  }

  #recordOf(address: string): Record {
    const known = this.#records.get(address)
    if (known !== undefined) return known
    if (this.#records.size >= MEMORY) this.#forget()
    const record: Record = { connections: 0, since: this.#clock.monotonic(), deeds: {} }
    this.#records.set(address, record)
    return record
  }

  /** Drops those that have gone; the ones that came first, first. */
  #forget(): void {
    for (const [address, record] of this.#records) {
      if (record.connections === 0) this.#records.delete(address)
      if (this.#records.size < MEMORY / 2) return
    }
  }

  #refusal(deed: Deed, address: string): SmtpReply {
    switch (deed) {
      case 'connection':
        return shownOut('4.7.0', this.#settings.myhostname, `Error: too many connections from ${address}`)
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
