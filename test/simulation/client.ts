/** A client that submits one message, byte for byte, and returns the last reply. */
import type { Socket } from 'node:net'
import type { World } from '../../src/testkit/index.ts'
import type { Mail } from './scenario.ts'

/** The content of a message, with lines that need transparency: dots, 8-bit text, long lines. */
export function contentOf({ number, size }: Mail): string {
  const head = `From: app@us.example\r\nMessage-ID: <${number}@sim.example>\r\nSubject: mail ${number}\r\nDate: Thu, 01 Jan 2026 00:00:00 +0000\r\n\r\n`
  const line = `.${number} na\u00efve \u2014 ..\r\n`
  return `${head}${line.repeat(Math.ceil(size / line.length))}.\u00b7\r\n`
}

/** The last reply; null when the connection ended before the reply to the content. */
export async function submit(world: Pick<World, 'transport'>, mail: Mail): Promise<string | null> {
  const socket = await connection(world)
  if (socket === null) return null
  const replies = new Replies(socket)
  const commands = [null, 'EHLO app.us.example', mailFrom(mail), ...mail.to.map(rcptTo), 'DATA']
  for (const command of commands) {
    if (command !== null) socket.write(`${command}\r\n`)
    const reply = await replies.next()
    if (reply === null || !/^[23]/.test(reply)) {
      socket.end('QUIT\r\n')
      return reply
    }
  }
  socket.write(`${contentOf(mail).replaceAll(/^\./gm, '..')}.\r\n`)
  const reply = await replies.next()
  socket.end('QUIT\r\n')
  return reply
}

const mailFrom = ({ sender, ret }: Mail): string => `MAIL FROM:<${sender}> BODY=8BITMIME${ret === undefined ? '' : ` RET=${ret}`}`
const rcptTo = ({ address, notify }: Mail['to'][number]): string => `RCPT TO:<${address}>${notify === undefined ? '' : ` NOTIFY=${notify}`}`

function connection(world: Pick<World, 'transport'>): Promise<Socket | null> {
  return new Promise((resolve) => {
    world.transport().getSocket({}, (_error, socket) => resolve(socket?.connection ?? null))
  })
}

class Replies {
  readonly #lines: string[] = []
  #rest = ''
  #ended = false
  #wake: () => void = () => undefined

  constructor(socket: Socket) {
    socket.on('data', (bytes: Buffer) => {
      const lines = (this.#rest + bytes.toString('latin1')).split('\r\n')
      this.#rest = lines.pop() ?? ''
      this.#lines.push(...lines.filter((line) => /^\d{3}(?: |$)/.test(line)))
      this.#wake()
    })
    const end = () => {
      this.#ended = true
      this.#wake()
    }
    socket.once('close', end).once('end', end).on('error', end)
  }

  async next(): Promise<string | null> {
    while (this.#lines.length === 0 && !this.#ended) await new Promise<void>((resolve) => (this.#wake = resolve))
    return this.#lines.shift() ?? null
  }
}
