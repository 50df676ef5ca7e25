/** Asks policy servers (Postfix SMTPD_POLICY_README): attributes in, an action of access(5) out. Connections are kept. */
import { isUtf8 } from 'node:buffer'
import { isIP, type Socket } from 'node:net'
import type { PolicyService } from '../config/values/restrictions.ts'
import { minutes, SECOND, sleep, withTimeout, type Clock, type Duration, type Timer } from '../system/clock.ts'
import type { Net } from '../system/net.ts'

interface PolicyClientDeps {
  readonly net: Pick<Net, 'dial' | 'lookupHost'>
  readonly clock: Clock
  /** Time limit for a connection, and for an answer (smtpd_policy_service_timeout), of servers without one of their own. */
  readonly timeout: () => Duration
}

/** Wait before the second try (Postfix smtpd_policy_service_retry_delay). */
const RETRY_DELAY: Duration = SECOND
/** Time after which an unused connection is closed (Postfix smtpd_policy_service_max_idle). */
const IDLE_LIMIT: Duration = minutes(5)
/** Octets of an answer above which the server is taken for broken. */
const ANSWER_LIMIT = 64 * 1024

interface IdleConnection {
  readonly socket: Socket
  readonly timer: Timer
}

export class PolicyClient {
  readonly #deps: PolicyClientDeps
  /** Connections without a request, by name of the server. */
  readonly #idle = new Map<string, IdleConnection[]>()
  #isClosed = false

  constructor(deps: PolicyClientDeps) {
    this.#deps = deps
  }

  /** Returns the action. Rejects with an Error that names the server after two tries without an answer. */
  async ask(service: PolicyService, attributes: Readonly<Record<string, string>>): Promise<string> {
    const request = `${Object.entries(attributes)
      .map(([key, value]) => `${key}=${value.replaceAll(/[\r\n\0]/g, '?')}\n`)
      .join('')}\n`
    const kept = this.#idle.get(service.name)?.pop()
    if (kept !== undefined) {
      kept.timer.cancel()
      // The server may have closed a kept connection, so that a failure is not counted as a try.
      const action = await this.#askOn(kept.socket, service, request).catch(() => undefined)
      if (action !== undefined) return action
    }
    try {
      return await this.#askOn(await this.#connect(service), service, request)
    } catch {
      await sleep(this.#deps.clock, RETRY_DELAY)
      return this.#askOn(await this.#connect(service), service, request)
    }
  }

  /** Closes the kept connections. Those with a request are closed after its answer. */
  close(): void {
    this.#isClosed = true
    for (const { socket, timer } of [...this.#idle.values()].flat()) {
      timer.cancel()
      socket.destroy()
    }
    this.#idle.clear()
  }

  #timeoutOf({ timeout }: PolicyService): Duration {
    return timeout ?? this.#deps.timeout()
  }

  async #connect(service: PolicyService): Promise<Socket> {
    const { net } = this.#deps
    const { server } = service
    const timeout = this.#timeoutOf(service)
    const at = 'path' in server ? { address: server.path, port: 0 } : { address: await this.#addressOf(server.host), port: server.port }
    const socket = await net.dial({ ...at, timeout })
    // The event `close` follows each error.
    socket.on('error', () => undefined)
    return socket
  }

  async #addressOf(host: string): Promise<string> {
    if (isIP(host) !== 0) return host
    const found = await this.#deps.net.lookupHost(host)
    if (found.kind !== 'found' || found.records[0] === undefined) throw new Error(`the name ${host} has no address`)
    return found.records[0]
  }

  async #askOn(socket: Socket, service: PolicyService, request: string): Promise<string> {
    const { clock } = this.#deps
    try {
      const answer = answerOf(socket)
      socket.write(request)
      const text = await withTimeout(answer, clock, this.#timeoutOf(service))
      const action = /(?:^|\n)action=([^\n]*)/.exec(text ?? '')?.[1]
      if (action === undefined)
        throw new Error(text === undefined ? 'no answer in time' : `no action in ${JSON.stringify(text.slice(0, 100))}`)
      this.#keep(service.name, socket)
      return action
    } catch (error) {
      socket.destroy()
      throw error
    }
  }

  #keep(name: string, socket: Socket): void {
    if (this.#isClosed || socket.destroyed) return void socket.destroy()
    const idle = this.#idle.get(name) ?? []
    this.#idle.set(name, idle)
    const connection = { socket, timer: this.#deps.clock.after(IDLE_LIMIT, () => socket.destroy()) }
    idle.push(connection)
    socket.once('close', () => {
      connection.timer.cancel()
      const at = idle.indexOf(connection)
      if (at >= 0) idle.splice(at, 1)
    })
  }
}

/** The text up to the empty line that ends an answer. Rejects when the connection ends before it, and when the text is no UTF-8. */
function answerOf(socket: Socket): Promise<string> {
  return new Promise((resolve, reject) => {
    let heard = Buffer.alloc(0)
    const settle = (act: () => void): void => {
      socket.off('data', hear)
      socket.off('close', lose)
      act()
    }
    const hear = (piece: Buffer): void => {
      heard = Buffer.concat([heard, piece])
      const end = heard.indexOf('\n\n')
      if (end >= 0 && isUtf8(heard)) settle(() => resolve(heard.toString('utf8', 0, end)))
      else if (end >= 0) settle(() => reject(new Error('the answer is not UTF-8')))
      else if (heard.length > ANSWER_LIMIT) settle(() => reject(new Error('the answer has no end')))
    }
    const lose = (): void => settle(() => reject(new Error('the connection was closed')))
    socket.on('data', hear)
    socket.on('close', lose)
  })
}
