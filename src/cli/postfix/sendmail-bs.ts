/**
 * `sendmail -bs`: SMTP on standard input and output, answered by the daemon. Scripts write all commands at once, which the daemon
 * would refuse as unauthorized pipelining. So a command is forwarded after the previous one was answered.
 */
import { connect, type Socket } from 'node:net'
import { errorMessage } from '../../system/caught-error.ts'
import type { Config } from '../../config/options.ts'
import { CommandError, EX } from '../shell/exit.ts'
import type { Shell } from '../shell/shell.ts'
import { localEndpoint } from './submit.ts'

/** Splits input into lines with their line ends; each byte becomes one character (latin1). */
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

/** Forwards lines of the client. The content after DATA is forwarded without waiting for replies. */
class Conversation {
  readonly #socket: Socket
  readonly #replies: AsyncGenerator<string>
  readonly #shell: Shell

  constructor(socket: Socket, shell: Shell) {
    this.#socket = socket
    this.#replies = linesOf(socket as AsyncIterable<Uint8Array>)
    this.#shell = shell
  }

  /** Forwards a complete reply to the client. Resolves with its code, or with null when the daemon has closed the connection. */
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
  if (endpoint === null) throw new CommandError(EX.unavailable, 'the daemon has no SMTP listener that this command can use')
  const socket = connect({ host: endpoint.address, port: endpoint.port })
  try {
    await new Conversation(socket, shell).run()
  } catch (cause) {
    throw new CommandError(EX.unavailable, `cannot connect to the daemon: ${errorMessage(cause)}`, { cause })
  } finally {
    socket.destroy()
  }
}
