/** A proxy for one relay, which records how it answers. The dialogue is followed by `testkit/record/session-tap`. */
import { isIP, type Socket } from 'node:net'
import { connect as connectTls, TLSSocket } from 'node:tls'
import { placeText } from '../../config/values/endpoints.ts'
import { errorCode } from '../../system/caught-error.ts'
import { SECOND, type Duration, type MachineClock, type WallTime } from '../../system/clock.ts'
import type { Endpoint, Listener, Net } from '../../system/net.ts'
import type { HostIdentity } from '../remote/policy-host.ts'
import type { ConnectFault, Drop } from '../remote/rule.ts'
import { Masks } from './masks.ts'
import type { Observation } from './observation.ts'
import type { Recording } from './recorded-script.ts'
import { SessionTap } from './session-tap.ts'

/** Time limit of a connection to the relay; that of smtp_connect_timeout. */
const CONNECT_TIMEOUT: Duration = 30 * SECOND

const CONNECT_FAULTS: Readonly<Record<string, ConnectFault>> = {
  ECONNREFUSED: 'refused',
  ETIMEDOUT: 'timeout',
  ECONNRESET: 'reset',
}

export interface RecordedRelay {
  readonly host: string
  readonly port: number
  /** Addresses of the host, which are tried in turn. */
  readonly addresses: readonly string[]
}

export interface RecorderDeps {
  readonly net: Net
  readonly clock: MachineClock
  readonly relay: RecordedRelay
  readonly keepsAddresses: boolean
  /** Certificate towards clients; null for sessions without TLS. */
  readonly identity: HostIdentity | null
}

export class Recorder {
  readonly #deps: RecorderDeps
  readonly #masks: Masks
  readonly #observations: Observation[] = []
  readonly #clients = new Set<string>()
  readonly #sessions = new Set<RecordedSession>()
  readonly #startedAt: WallTime
  readonly #began: Duration
  #count = 0
  #listener: Listener | null = null

  constructor(deps: RecorderDeps) {
    this.#deps = deps
    this.#masks = new Masks(deps.keepsAddresses)
    this.#startedAt = deps.clock.now()
    this.#began = deps.clock.monotonic()
  }

  /** Opens the port. Rejects with the error of the system. */
  async open(at: Endpoint): Promise<Endpoint> {
    this.#listener = await this.#deps.net.listen(at, (client) => this.#accept(client))
    const { address, port } = this.#listener
    return { address, port }
  }

  /** Ends all sessions, and resolves with the recording. */
  async close(): Promise<Recording> {
    await this.#listener?.close()
    for (const session of this.#sessions) session.end()
    const { clock, relay } = this.#deps
    return {
      relay: placeText({ address: relay.host, port: relay.port }),
      startedAt: this.#startedAt,
      duration: clock.monotonic() - this.#began,
      sessions: this.#count,
      clients: this.#clients.size,
      observations: this.#observations,
    }
  }

  #accept(client: Socket): void {
    this.#count++
    this.#clients.add(client.remoteAddress ?? '')
    const session = new RecordedSession(client, {
      ...this.#deps,
      masks: this.#masks,
      observe: (observation) => this.#observations.push(observation),
    })
    this.#sessions.add(session)
    client.once('close', () => this.#sessions.delete(session))
    void session.run()
  }
}

interface SessionDeps extends RecorderDeps {
  readonly masks: Masks
  readonly observe: (observation: Observation) => void
}

class RecordedSession {
  readonly #deps: SessionDeps
  readonly #tap: SessionTap
  /** The TCP connections; TLS is above them. */
  readonly #outer: Socket
  #inner: Socket | null = null
  #client: Socket
  #relay: Socket | null = null

  constructor(client: Socket, deps: SessionDeps) {
    this.#deps = deps
    this.#outer = client
    this.#client = client
    client.setNoDelay(true)
    client.on('error', () => client.destroy())
    client.once('close', () => this.#clientEnded())
    this.#tap = new SessionTap({
      now: () => deps.clock.monotonic(),
      masks: deps.masks,
      hasTls: deps.identity !== null,
      toRelay: (bytes) => pass(bytes, this.#client, this.#relay),
      toClient: (bytes) => pass(bytes, this.#relay, this.#client),
      startTls: () => this.#startTls(),
      observe: deps.observe,
    })
  }

  async run(): Promise<void> {
    const at = this.#deps.clock.monotonic()
    const outcome = await this.#dial()
    const observed = { stage: 'connect' as const, at, sender: null, recipient: null, content: null }
    if (typeof outcome === 'string') {
      this.#deps.observe({ ...observed, fault: { connect: outcome } })
      // A host that does not answer leaves the client without a greeting.
      if (outcome === 'timeout') this.#outer.resume()
      else this.#outer.resetAndDestroy()
      return
    }
    this.#deps.observe({ ...observed, fault: null })
    this.#inner = outcome
    this.#relay = outcome
    outcome.setNoDelay(true)
    outcome.on('error', (error) => this.#relayEnded(errorCode(error) === 'ECONNRESET' ? 'rst' : 'fin'))
    outcome.once('close', () => this.#relayEnded('fin'))
    if (this.#outer.destroyed) outcome.destroy()
    this.#follow()
  }

  /** Ends the session with the recording. */
  end(): void {
    if (this.#relay !== null) this.#tap.clientEnded()
    this.#outer.destroy()
    this.#inner?.destroy()
  }

  async #dial(): Promise<Socket | ConnectFault> {
    const { net, relay } = this.#deps
    let fault: ConnectFault = 'unreachable'
    for (const address of relay.addresses) {
      try {
        return await net.dial({ address, port: relay.port, timeout: CONNECT_TIMEOUT })
      } catch (error) {
        fault = CONNECT_FAULTS[errorCode(error)] ?? 'unreachable'
      }
    }
    return fault
  }

  #follow(): void {
    const [client, relay] = [this.#client, this.#relay]
    relay?.on('data', (bytes: Buffer) => this.#tap.fromRelay(bytes))
    relay?.once('end', () => this.#relayEnded('fin'))
    client.on('data', (bytes: Buffer) => this.#tap.fromClient(bytes))
    client.once('end', () => this.#clientEnded())
  }

  /** Begins TLS with the relay, and then with the client, which sees a failure of the relay in its own handshake. */
  #startTls(): void {
    const { identity, relay } = this.#deps
    const [outer, inner] = [this.#outer, this.#inner]
    if (identity === null || inner === null) return
    for (const socket of [outer, inner]) for (const event of ['data', 'end']) socket.removeAllListeners(event)
    outer.pause()
    const toRelay = connectTls({ socket: inner, servername: isIP(relay.host) === 0 ? relay.host : '', rejectUnauthorized: false })
    toRelay.on('error', (error) => this.#relayEnded(errorCode(error) === 'ECONNRESET' ? 'rst' : 'fin'))
    toRelay.once('secureConnect', () => {
      const toClient = new TLSSocket(outer, { ...identity, isServer: true })
      toClient.on('error', () => outer.destroy())
      this.#relay = toRelay
      this.#client = toClient
      this.#follow()
      this.#tap.secured()
    })
  }

  #relayEnded(how: Drop): void {
    this.#tap.relayEnded(how)
    if (how === 'rst') this.#outer.resetAndDestroy()
    else this.#client.end()
    this.#inner?.destroy()
  }

  #clientEnded(): void {
    if (this.#relay === null) return
    this.#tap.clientEnded()
    this.#relay.end()
    if (this.#outer.destroyed) this.#inner?.destroySoon()
  }
}

/** Passes bytes on. The sender waits while the receiver does not read. */
function pass(bytes: Buffer, from: Socket | null, to: Socket | null): void {
  if (to === null || !to.writable || to.write(bytes)) return
  from?.pause()
  to.once('drain', () => from?.resume())
}
