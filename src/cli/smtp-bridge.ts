/**
 * `sendmail -bs`: SMTP on standard input and output, spoken by the daemon. Scripts write all their commands at once, which
 * the daemon takes for the manners of a spammer; so they are handed over one by one, each when the one before is answered.
 */
import { connect, type Socket } from 'node:net'
import type { Config } from '../config/options.ts'
import { CommandError, EX, type Shell } from './shell.ts'
import { localEndpoint } from './submit.ts'

/** Lines with their ends; bytes are kept as they are, one letter each. */
async function* linesOf(input: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let rest = ''
  for await (const chunk of input) {
    rest += Buffer.from(chunk).toString('latin1')
    for (let end = rest.indexOf('\n'); end >= 0; end = rest.indexOf('\n')) {
      yield rest.slice(0, end + 1)
      rest = rest.slice(end + 1)
    }
  }
  if (rest !== '') yield rest
}

/** Hands lines over; a content goes in one piece. */
class Conversation {
  readonly #socket: Socket
  readonly #replies: AsyncGenerator<string>
  readonly #shell: Shell

  constructor(socket: Socket, shell: Shell) {
    this.#socket = socket
    this.#replies = linesOf(socket as AsyncIterable<Uint8Array>)
    this.#shell = shell
  }

  /** Passes a whole reply on; its code, or null when the daemon has hung up. */
  async reply(): Promise<string | null> {
    for (let next = await this.#replies.next(); next.done !== true; next = await this.#replies.next()) {
      await this.#shell.stdout.write(Buffer.from(next.value, 'latin1'))
      if (next.value[3] !== '-') return next.value.slice(0, 3)
    }
    return null
  }

  async run(): Promise<void> {
    let inContent = false
    if ((await this.reply()) === null) return
    for await (const line of linesOf(this.#shell.stdin)) {
      this.#socket.write(line, 'latin1')
      if (inContent && !/^\.\r?\n?$/.test(line)) continue
      const code = await this.reply()
      if (code === null) return
      inContent = code === '354'
    }
    this.#socket.end()
    while ((await this.reply()) !== null);
  }
}

export async function bridge(shell: Shell, config: Config): Promise<void> {
  const endpoint = localEndpoint(config)
  if (endpoint === null) throw new CommandError(EX.unavailable, 'the daemon takes no mail over SMTP')
  const socket = connect({ host: endpoint.address, port: endpoint.port })
  try {
    await new Conversation(socket, shell).run()
  } catch (cause) {
    throw new CommandError(EX.unavailable, `the daemon cannot be reached: ${(cause as Error).message}`, { cause })
  } finally {
    socket.destroy()
  }
}
