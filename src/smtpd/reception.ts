/**
 * smtp-server's server without its own port: it is given sockets, keeps the certificate for them, and asks who may log
 * in. With wire.ts and wire-reader.ts it is all that knows of the library.
 */
import type { Socket } from 'node:net'
import { SMTPServer, type SMTPServerAuthentication, type SMTPServerAuthenticationResponse, type SMTPServerSession } from 'smtp-server'
import { harmless } from '../mail/reply.ts'
import { Connection, type House } from './connection.ts'
import type { Certificate } from './listeners.ts'
import type { ListenerRules, Login } from './session.ts'
import type { Users } from './users.ts'

export interface ReceptionParts {
  /** The house as it is now: a reload changes it. */
  readonly house: () => House
  readonly guests: { add(connection: Connection): void }
  readonly rules: ListenerRules
  readonly certificate: Certificate | null
  /** Null when nobody can log in. */
  readonly users: Users | null
}

type Answered = (error: Error | null | undefined, response?: SMTPServerAuthenticationResponse) => void

export class Reception extends SMTPServer {
  readonly #parts: ReceptionParts
  #count = 0

  constructor(parts: ReceptionParts) {
    const wrapped = parts.rules.tls === 'wrapper'
    super({
      name: parts.house().settings.myhostname,
      logger: false,
      hideENHANCEDSTATUSCODES: false,
      disableReverseLookup: true,
      authMethods: ['PLAIN', 'LOGIN'],
      secure: wrapped,
      needsUpgrade: wrapped,
      ...parts.certificate,
    })
    this.#parts = parts
    this.on('error', (error) => this.#note(error.message))
  }

  override connect(socket: Socket): void {
    const { house, guests, rules } = this.#parts
    const connection = new Connection(this, socket, house(), rules, String(++this.#count))
    guests.add(connection)
    connection.init()
  }

  override onAuth(auth: SMTPServerAuthentication, session: SMTPServerSession, answered: Answered): void {
    this.#accepts(auth).then(
      (accepted) => {
        const login: Login = { name: auth.username ?? '', method: auth.method }
        if (!accepted) this.#reportFailure(login, session.remoteAddress)
        answered(null, accepted ? { user: login } : { message: 'Error: authentication failed' })
      },
      (error: unknown) => {
        // Our own trouble: the client shall try again, not forget its password.
        this.#note(`cannot check a password: ${error instanceof Error ? error.message : String(error)}`)
        answered(null, { responseCode: 454, message: 'Temporary authentication failure' })
      },
    )
  }

  /** Nobody logs in as one user to act as another. */
  async #accepts({ username, password, authzid }: SMTPServerAuthentication): Promise<boolean> {
    const { users } = this.#parts
    if (users === null || username === undefined || typeof password !== 'string') return false
    const itself = authzid === undefined || authzid === '' || authzid === username
    return (await users.accepts(username, password)) && itself
  }

  #reportFailure({ name, method }: Login, address: string): void {
    const what = `SASL ${method} authentication failed: sasl_username=${harmless(name)}`
    this.#parts.house().desk.events.emit({ kind: 'client-trouble', client: { name: 'unknown', address }, what })
  }

  #note(text: string): void {
    this.#parts.house().desk.events.emit({ kind: 'note', level: 'error', text: `smtpd: ${text}` })
  }
}
