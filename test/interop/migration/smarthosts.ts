/** Smarthosts on loopback that need TLS and a login: submission by STARTTLS (port 587), and TLS from the start (port 465). */
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { createSecureContext, createServer as createTlsServer, TLSSocket } from 'node:tls'
import { CERTIFICATE, KEY } from '../../support/certificates.ts'

/** Mail that a smarthost has accepted. */
export interface AcceptedMail {
  /** Name of the smarthost, and the user that was logged in. */
  readonly host: string
  readonly login: string
  readonly sender: string
  readonly mailParameters: string
  readonly recipients: readonly { readonly address: string; readonly parameters: string }[]
  readonly content: string
}

/** Mail that the smarthosts have accepted, and the rule by which they accept. */
export class Acceptance {
  #accepted: AcceptedMail[] = []
  /** Defers recipients outside of now.test. */
  isDeferring = false
  /** Refuses these recipients. */
  refused: RegExp | null = null

  get accepted(): readonly AcceptedMail[] {
    return this.#accepted
  }

  add(mail: AcceptedMail): void {
    this.#accepted.push(mail)
  }

  /** Returns all mail that was accepted since the last call. */
  take(): readonly AcceptedMail[] {
    const taken = this.#accepted
    this.#accepted = []
    return taken
  }

  /** The reply to RCPT. */
  replyTo(address: string): string {
    if (this.refused?.test(address) === true) return '550 5.1.1 no such user'
    return this.isDeferring && !address.endsWith('@now.test') ? '450 4.2.1 later' : '250 2.1.5 fine'
  }
}

export interface SmarthostOptions {
  readonly name: string
  /** True for TLS from the start of the connection. */
  readonly isWrapped: boolean
  readonly users: Readonly<Record<string, string>>
}

export class Smarthost {
  readonly port: number
  readonly #server: Server
  readonly #sockets: ReadonlySet<Socket>

  private constructor(server: Server, sockets: ReadonlySet<Socket>) {
    this.#server = server
    this.#sockets = sockets
    this.port = (server.address() as AddressInfo).port
  }

  static async open(options: SmarthostOptions, acceptance: Acceptance): Promise<Smarthost> {
    const sockets = new Set<Socket>()
    const converse = (socket: Socket): void => {
      sockets.add(socket)
      socket.on('close', () => sockets.delete(socket))
      new Session(socket, options, acceptance).greet()
    }
    const server = options.isWrapped ? createTlsServer({ cert: CERTIFICATE, key: KEY }, converse) : createServer(converse)
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return new Smarthost(server, sockets)
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy()
    this.#server.close()
  }
}

const CONTEXT = createSecureContext({ cert: CERTIFICATE, key: KEY })
const EXTENSIONS = ['PIPELINING', 'SIZE 10000000', '8BITMIME', 'DSN', 'ENHANCEDSTATUSCODES']

class Session {
  #socket: Socket
  readonly #options: SmarthostOptions
  readonly #acceptance: Acceptance
  #isSecure: boolean
  #login = ''
  #sender = ''
  #mailParameters = ''
  #recipients: { readonly address: string; readonly parameters: string }[] = []
  #rest = ''
  /** Lines of the content; null outside DATA. */
  #content: string[] | null = null

  constructor(socket: Socket, options: SmarthostOptions, acceptance: Acceptance) {
    this.#socket = socket
    this.#options = options
    this.#acceptance = acceptance
    this.#isSecure = options.isWrapped
    this.#listen()
  }

  greet(): void {
    this.#socket.write(`220 ${this.#options.name} ESMTP\r\n`)
  }

  #listen(): void {
    this.#socket.on('error', () => undefined)
    this.#socket.on('data', (data) => this.#hear(data.toString('latin1')))
  }

  #hear(text: string): void {
    const lines = (this.#rest + text).split('\r\n')
    this.#rest = lines.pop() ?? ''
    for (const line of lines) {
      const reply = this.#content === null ? this.#command(line) : this.#contentLine(line, this.#content)
      if (reply !== '') this.#socket.write(`${reply}\r\n`)
      if (line.toUpperCase() === 'STARTTLS' && reply.startsWith('220')) return this.#secure()
      if (line.toUpperCase() === 'QUIT') this.#socket.end()
    }
  }

  #secure(): void {
    const plain = this.#socket
    plain.removeAllListeners('data')
    this.#socket = new TLSSocket(plain, { isServer: true, secureContext: CONTEXT })
    this.#isSecure = true
    this.#listen()
  }

  #command(line: string): string {
    const [verb = ''] = line.toUpperCase().split(' ', 1)
    if (verb === 'EHLO') return this.#hello()
    if (verb === 'STARTTLS') return this.#isSecure ? '503 5.5.1 TLS runs' : '220 2.0.0 go on'
    if (verb === 'AUTH') return this.#authenticate(line)
    if (verb === 'RSET' || verb === 'NOOP') return (this.#reset(), '250 2.0.0 fine')
    if (verb === 'QUIT') return '221 2.0.0 bye'
    if (this.#login === '') return '530 5.7.0 log in first'
    return this.#transaction(verb, line)
  }

  #transaction(verb: string, line: string): string {
    const [, path = '', parameters = ''] = /^(?:MAIL FROM|RCPT TO):<((?:"(?:[^"\\]|\\.)*"|[^>"])*)>\s*(.*)$/i.exec(line) ?? []
    if (verb === 'MAIL') {
      this.#reset()
      this.#sender = path
      this.#mailParameters = parameters
      return '250 2.1.0 fine'
    }
    if (verb === 'RCPT') {
      const reply = this.#acceptance.replyTo(path)
      if (reply.startsWith('2')) this.#recipients.push({ address: path, parameters })
      return reply
    }
    if (verb !== 'DATA') return '500 5.5.2 unknown'
    if (this.#recipients.length === 0) return '554 5.5.1 no recipients'
    this.#content = []
    return '354 go on'
  }

  #hello(): string {
    const offered = this.#isSecure ? ['AUTH PLAIN'] : ['STARTTLS']
    return [...EXTENSIONS, ...offered].reduce((text, one) => `${text}\r\n250-${one}`, `250-${this.#options.name}`).concat('\r\n250 HELP')
  }

  #authenticate(line: string): string {
    const [, user = '', password = ''] = Buffer.from(line.split(' ')[2] ?? '', 'base64')
      .toString('latin1')
      .split('\0')
    if (!this.#isSecure || this.#options.users[user] !== password) return '535 5.7.8 refused'
    this.#login = user
    return '235 2.7.0 fine'
  }

  #contentLine(line: string, content: string[]): string {
    if (line !== '.') {
      content.push(line.startsWith('.') ? line.slice(1) : line)
      return ''
    }
    this.#acceptance.add({
      host: this.#options.name,
      login: this.#login,
      sender: this.#sender,
      mailParameters: this.#mailParameters,
      recipients: this.#recipients,
      content: content.map((one) => `${one}\r\n`).join(''),
    })
    this.#reset()
    return '250 2.0.0 accepted'
  }

  #reset(): void {
    this.#recipients = []
    this.#content = null
  }
}
