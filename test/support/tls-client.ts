/** A hand-written SMTP client over any socket: STARTTLS and one command at a time. */
import type { Socket } from 'node:net'
import { connect, type TLSSocket } from 'node:tls'

export class TlsClient {
  #socket: Socket | TLSSocket
  #text = ''
  #wake: () => void = () => undefined

  private constructor(socket: Socket) {
    this.#socket = socket
    this.#listen()
  }

  /** Reads the greeting, and begins TLS with a server whose certificate the CA signed for the host. */
  static async open(socket: Socket, host: string, ca: string): Promise<TlsClient> {
    const client = new TlsClient(socket)
    await client.reply()
    await client.say('EHLO client.example')
    await client.say('STARTTLS')
    socket.removeAllListeners('data')
    const secure = connect({ socket, servername: host, ca })
    await new Promise((resolve, reject) => secure.once('secureConnect', resolve).once('error', reject))
    client.#socket = secure
    client.#listen()
    return client
  }

  /** Sends a line and returns the reply, its lines joined by `\n`. */
  async say(line: string): Promise<string> {
    this.#socket.write(`${line}\r\n`)
    return this.reply()
  }

  async reply(): Promise<string> {
    for (;;) {
      const match = /^(?:\d{3}-.*\r\n)*\d{3} .*\r\n/.exec(this.#text)
      if (match !== null) {
        this.#text = this.#text.slice(match[0].length)
        return match[0].trimEnd().replaceAll('\r\n', '\n')
      }
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }

  close(): void {
    this.#socket.destroy()
  }

  #listen(): void {
    this.#socket.on('data', (chunk: Buffer) => {
      this.#text += chunk.toString('latin1')
      this.#wake()
    })
  }
}

/** The initial response of XOAUTH2. */
export const xoauth2 = (user: string, token: string): string =>
  Buffer.from(`user=${user}\u0001auth=Bearer ${token}\u0001\u0001`).toString('base64')

/** The initial response of OAUTHBEARER (RFC 7628 §3.1). */
export const oauthbearer = (user: string, token: string): string =>
  Buffer.from(`n,a=${user},\u0001host=h\u0001port=587\u0001auth=Bearer ${token}\u0001\u0001`).toString('base64')
