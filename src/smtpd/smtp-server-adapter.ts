/**
 * The server object of smtp-server, without a port of its own. It receives sockets, holds their certificate, and checks logins.
 * In the relay, only this file and smtp-connection-adapter.ts use the library.
 */
import type { Socket } from 'node:net'
import { SMTPServer, type SMTPServerAuthentication, type SMTPServerAuthenticationResponse } from 'smtp-server'
import { formatReply, type SmtpReply } from '../mail/smtp-reply.ts'
import { peerAddress } from '../config/values/networks.ts'
import type { Listener } from '../config/options.ts'
import type { ClientFailure } from '../telemetry/kinds/client-failures.ts'
import { Connection, type ServerContext } from './connection.ts'
import { checkSmtpServer, type AdapterSession } from './smtp-connection-adapter.ts'
import type { Certificate } from '../config/smtpd-listeners.ts'
import type { OpenConnection } from './open-connections.ts'
import { ProxyHandshake } from './proxy-handshake.ts'
import * as replies from './dialogue/replies.ts'
import type { SessionRules, Login } from './dialogue/client-identity.ts'
import type { SessionRecorder } from '../sessions/session-recorder.ts'
import { UNKNOWN } from './dialogue/peer-name.ts'
import type { Users } from '../access/users.ts'

interface SmtpServerAdapterDeps {
  readonly context: ServerContext
  readonly connections: { add(connection: OpenConnection): void; delete(connection: OpenConnection): void }
  readonly rules: SessionRules & Pick<Listener, 'address' | 'upstream_proxy_protocol'>
  readonly certificate: Certificate | null
  /** Null without smtpd_sasl_users_file. */
  readonly users: Pick<Users, 'accepts'> | null
}

type Answered = (error: Error | null | undefined, response?: SMTPServerAuthenticationResponse) => void

export class SmtpServerAdapter extends SMTPServer {
  readonly #deps: SmtpServerAdapterDeps
  #count = 0

  constructor(deps: SmtpServerAdapterDeps) {
    const wrapped = deps.rules.tls === 'wrapper'
    super({
      name: deps.context.settings.myhostname,
      logger: false,
      hideENHANCEDSTATUSCODES: false,
      disableReverseLookup: true,
      authMethods: ['PLAIN', 'LOGIN'],
      secure: wrapped,
      needsUpgrade: wrapped,
      ...deps.certificate,
    })
    checkSmtpServer(this)
    this.#deps = deps
    this.on('error', (error) => this.#note(error.message))
  }

  override connect(socket: Socket): void {
    const address = peerAddress(socket.remoteAddress ?? '')
    if (this.#deps.rules.upstream_proxy_protocol === '') this.#open(socket, address)
    else this.#awaitHeader(socket, address)
  }

  #open(socket: Socket, address: string): void {
    const { context, connections, rules } = this.#deps
    const recorder = this.#record(socket, address)
    const connection = new Connection(this, socket, { context, rules, id: String(++this.#count), address, recorder })
    connections.add(connection)
    connection.init()
  }

  /** The addresses of a socket are asked for only when the session is recorded, because each costs a system call. */
  #record(socket: Socket, address: string): SessionRecorder | null {
    const { context, rules } = this.#deps
    if (context.recordings?.wants('from') !== true) return null
    const peer = `${UNKNOWN}[${address}]:${socket.remotePort ?? 0}`
    const recorder = context.recordings.begin({ protocol: 'smtp', peer, direction: 'from' }, { listener: rules.address })
    recorder?.connected(socket.localAddress)
    return recorder
  }

  /** Waits for the PROXY header of a connection. Until then, the connection counts for smtpd_process_limit only. */
  #awaitHeader(socket: Socket, proxy: string): void {
    const { context, connections } = this.#deps
    const { clock, settings, hasRoom } = context
    const handshake = new ProxyHandshake(socket, {
      clock,
      timeout: settings.smtpd_upstream_proxy_timeout,
      received: (client) => {
        this.#open(socket, client ?? proxy)
        connections.delete(handshake)
      },
      failed: (why) => refuse(replies.localError(settings.myhostname), { what: 'proxy-header', why }),
      closed: () => connections.delete(handshake),
    })
    const refuse = (reply: SmtpReply, failure: ClientFailure = { what: 'rejected', reply }): void => {
      handshake.stop()
      connections.delete(handshake)
      context.sessions.events.emit({ kind: 'client-failure', client: { name: UNKNOWN, address: proxy }, failure })
      socket.write(`${formatReply(reply)}\r\n`)
      socket.destroySoon()
    }
    connections.add(handshake)
    if (!hasRoom()) refuse(replies.tooManyConnections(settings.myhostname))
  }

  override onAuth(auth: SMTPServerAuthentication, { handler }: AdapterSession, answered: Answered): void {
    this.#accepts(auth).then(
      (accepted) => {
        const login: Login = { name: auth.username ?? '', method: auth.method }
        if (!accepted) handler.loginRefused(login)
        answered(null, accepted ? { user: login } : { message: 'Error: authentication failed' })
      },
      (error: unknown) => {
        // The server caused the error, not the client. The reply 454 asks the client to try again with the same password.
        this.#note(`cannot check a password: ${error instanceof Error ? error.message : String(error)}`)
        answered(null, { responseCode: 454, message: 'Temporary authentication failure' })
      },
    )
  }

  /** Checks a login. Refuses an authorization identity that differs from the user name (RFC 4616). */
  async #accepts({ username, password, authzid }: SMTPServerAuthentication): Promise<boolean> {
    const { users } = this.#deps
    if (users === null || username === undefined || typeof password !== 'string') return false
    const itself = authzid === undefined || authzid === '' || authzid === username
    return (await users.accepts(username, password)) && itself
  }

  #note(text: string): void {
    this.#deps.context.sessions.events.emit({ kind: 'note', level: 'error', text: `smtpd: ${text}` })
  }
}
