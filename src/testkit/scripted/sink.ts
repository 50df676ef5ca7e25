/**
 * Serves the remote network on real ports, for any SMTP client. Prints each event as a JSON object, and counts the events for a
 * summary.
 */
import { placeText } from '../../config/values/endpoints.ts'
import type { Endpoint, Net } from '../../system/net.ts'
import type { MachineClock, WallTime } from '../../system/clock.ts'
import { isoInstant } from '../../mail/mail-date.ts'
import type { Random } from '../../system/random.ts'
import { Authority } from './test-authority.ts'
import type { AuthorityOptions } from '../options/authority-options.ts'
import type { HostIdentity } from '../remote/policy-host.ts'
import type { RemoteEvent } from '../remote/remote-events.ts'
import { RemoteNetwork } from '../remote/remote-network.ts'
import { RemotePorts, type RemotePort } from './remote-ports.ts'
import type { AcceptedLogins } from '../remote/server-login.ts'
import type { Script } from '../remote/rule.ts'

/** An event with its time, and the seconds since the start. */
export type SinkEvent = RemoteEvent & { readonly time: string; readonly after: number }

interface SinkDeps {
  readonly net: Net
  readonly clock: MachineClock
  readonly random: Random
  readonly ports: readonly RemotePort[]
  /** Script of the remote network. Where none of its rules acts, recipient addresses request faults. */
  readonly script: Script | null
  /** Certificate with which all ports offer STARTTLS; absent without one. */
  readonly identity?: HostIdentity | undefined
  /** Logins that all ports offer and accept; absent without AUTH. */
  readonly logins?: AcceptedLogins | undefined
  /** Authorization server whose tokens all ports require. */
  readonly authority?: SinkAuthority | undefined
  /** Receives each event as an object that can be written as JSON. */
  readonly print: (event: SinkEvent) => void
  /** Receives the content of each message that is kept, before its event. */
  readonly keep?: ((content: Buffer) => void) | undefined
}

export interface SinkAuthority {
  readonly at: Endpoint
  readonly options: AuthorityOptions
  /** Keys and tokens are derived from these octets. */
  readonly seed: Uint8Array
  /** Certificate of all servers of the sink. */
  readonly identity: HostIdentity
}

/** Addresses of the open ports. */
export interface SinkPlaces {
  readonly ports: readonly Endpoint[]
  /** Null without an authorization server. */
  readonly authority: Authority | null
}

/** Totals of a sink: replies by code, actions by the name of their rule. */
export interface SinkSummary {
  readonly connections: number
  readonly refused_connections: number
  readonly messages_kept: number
  readonly recipients_kept: number
  /** Number of messages that were kept without a positive reply. The client sends such a message again. */
  readonly kept_unacknowledged: number
  readonly replies: Readonly<Record<string, number>>
  readonly rules: Readonly<Record<string, number>>
}

export class Sink {
  readonly #deps: SinkDeps
  readonly #remote: RemoteNetwork
  readonly #startedAt: WallTime
  readonly #ports: RemotePorts
  readonly #totals = new Totals()
  #closed = false

  constructor(deps: SinkDeps) {
    const { clock, random, script, identity, logins, keep } = deps
    this.#deps = deps
    this.#startedAt = clock.now()
    this.#remote = new RemoteNetwork({
      clock,
      random,
      script: script ?? undefined,
      addresses: true,
      logins,
      onEvent: (event, at) => this.#onEvent(event, at),
      keep: keep && ((mail) => keep(mail.content)),
    })
    this.#ports = new RemotePorts(deps.net, this.#remote)
    if (identity !== undefined) {
      // A certificate of the script is that of its host.
      for (const { mx } of deps.ports) if (script?.certificates.has(mx) !== true) this.#remote.setIdentity(mx, identity)
    }
  }

  /** Opens the ports in the given order. Rejects with the system's error, such as EADDRINUSE, for the first port that fails. */
  async open(): Promise<SinkPlaces> {
    const ports = []
    for (const port of this.#deps.ports) ports.push(await this.#ports.open(port))
    const { authority } = this.#deps
    return { ports, authority: authority === undefined ? null : await this.#openAuthority(authority) }
  }

  async #openAuthority({ at, options, seed, identity }: SinkAuthority): Promise<Authority> {
    const { clock, script } = this.#deps
    let server: Authority | null = null
    // A connection cannot arrive before the next turn of the event loop.
    const { address, port } = await this.#ports.openWeb(at, () => server)
    server = new Authority(options, {
      clock,
      startedAt: this.#startedAt,
      beganAt: clock.monotonic() - this.#remote.age(),
      seed,
      origin: `https://${placeText({ address, port })}`,
      identityOf: () => identity,
      rules: script?.authority ?? [],
      report: (event) => this.#remote.report(event),
      protect: (host, own, guard) => this.#remote.protect(host, own, guard),
      run: async (call) => ({ value: call() }),
    })
    for (const { mx } of this.#deps.ports) server.protects(mx)
    return server
  }

  summary(): SinkSummary {
    return this.#totals.summary()
  }

  /** Closes the ports and all connections. No event follows, so that a summary is the last line. */
  async close(): Promise<void> {
    await this.#ports.close()
    this.#closed = true
  }

  #onEvent(event: RemoteEvent, at: WallTime): void {
    if (this.#closed) return
    this.#totals.count(event)
    this.#deps.print({ time: isoInstant(at), after: (at - this.#startedAt) / 1000, ...event })
  }
}

class Totals {
  #connections = 0
  #refused = 0
  #messages = 0
  #recipients = 0
  #unacknowledged = 0
  readonly #replies = new Map<string, number>()
  readonly #rules = new Map<string, number>()

  count(event: RemoteEvent): void {
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
      case 'mistyped':
      case 'authority':
      case 'closed':
    }
  }

  summary(): SinkSummary {
    return {
      connections: this.#connections,
      refused_connections: this.#refused,
      messages_kept: this.#messages,
      recipients_kept: this.#recipients,
      kept_unacknowledged: this.#unacknowledged,
      replies: Object.fromEntries([...this.#replies].toSorted(([a], [b]) => a.localeCompare(b))),
      rules: Object.fromEntries(this.#rules),
    }
  }

  #countKept({ recipients, reply_code }: Extract<RemoteEvent, { readonly event: 'message' }>): void {
    this.#messages++
    this.#recipients += recipients.length
    if (reply_code === null || reply_code >= 300) this.#unacknowledged++
  }
}

const add = (counts: Map<string, number>, key: string): void => void counts.set(key, (counts.get(key) ?? 0) + 1)
