/** A client that plays an SMTP dialogue with a server on loopback and records the replies. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

/** Content that answers 354. */
const CONTENT = 'Subject: x\r\n\r\nx\r\n.\r\n'

const PATIENCE = 20_000

export class Client {
  readonly #socket: Socket
  #heard = ''
  #closed = false
  #woken: () => void = () => undefined

  private constructor(socket: Socket) {
    this.#socket = socket
    const wake = () => this.#woken()
    socket.setEncoding('latin1')
    socket.on('data', (text: string) => {
      this.#heard += text
      wake()
    })
    socket.on('error', wake)
    socket.on('close', () => {
      this.#closed = true
      wake()
    })
  }

  static async open(port: number, from: string): Promise<Client> {
    const socket = connect({ host: '127.0.0.1', port, localAddress: from })
    await once(socket, 'connect')
    return new Client(socket)
  }

  send(text: string): void {
    if (this.#socket.writable) this.#socket.write(Buffer.from(text, 'latin1'))
  }

  /** The next complete reply; `(closed)` when the server has closed the connection. */
  async reply(): Promise<string> {
    const deadline = Date.now() + PATIENCE
    for (;;) {
      const whole = /^(?:\d{3}-[^\n]*\n)*\d{3}(?: [^\n]*)?\n/.exec(this.#heard)?.[0]
      if (whole !== undefined) {
        this.#heard = this.#heard.slice(whole.length)
        return whole.trimEnd().replaceAll('\r\n', '\n')
      }
      if (this.#closed) return '(closed)'
      if (Date.now() > deadline) return `(no reply) ${this.#heard}`
      await this.#activity()
    }
  }

  #activity(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, 1000)
      this.#woken = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  /** Everything that the server sends until it closes the connection. */
  async rest(): Promise<string> {
    const deadline = Date.now() + PATIENCE
    while (!this.#closed && Date.now() < deadline) await this.#activity()
    return this.#heard.replaceAll('\r\n', '\n')
  }

  close(): void {
    this.#socket.destroy()
  }
}

/** Sends command lines one after the other, then QUIT. Content follows 354. Returns the replies after `quiet` lines. */
export async function play(port: number, lines: readonly string[], { quiet = 0, from = '127.0.0.1' } = {}): Promise<readonly string[]> {
  const client = await Client.open(port, from)
  try {
    const replies = [await client.reply()]
    for (const line of [...lines, 'QUIT']) {
      client.send(`${line}\r\n`)
      const reply = await client.reply()
      replies.push(reply)
      if (reply.startsWith('354 ')) {
        client.send(CONTENT)
        replies.push(await client.reply())
      }
      if (reply === '(closed)') break
    }
    return replies.slice(quiet)
  } finally {
    client.close()
  }
}

/** Sends bytes without waiting for replies, after the greeting, and returns everything that follows. */
export async function burst(port: number, bytes: string): Promise<readonly string[]> {
  const client = await Client.open(port, '127.0.0.1')
  try {
    await client.reply()
    client.send(bytes)
    return [await client.rest()]
  } finally {
    client.close()
  }
}
