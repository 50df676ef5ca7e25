/**
 * A private Postfix that leaves mail in all its queues: a remote server that defers, refuses, accepts or never answers by the local part
 * of the recipient, mail that is held, and mail submitted while Postfix is stopped.
 */
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { startPostfix } from '../../scripts/bench/postfix.ts'
import { greeted, type Child } from '../../scripts/bench/child.ts'
import { Client } from '../interop/dialogue.ts'
import { portBelowEphemeral } from './ports.ts'

const NAMES = { myhostname: 'relay.example', myorigin: 'origin.example', recipient_delimiter: '+' }

/** Mail for Postfix. The local part of a recipient decides its outcome: defer, ok, no, hang. */
export interface SpoolMail {
  readonly sender: string
  /** Parameters of MAIL. */
  readonly parameters?: string
  readonly recipients: readonly { readonly address: string; readonly parameters?: string }[]
  readonly content: string
}

export class PostfixSpool {
  readonly folder: string
  readonly spool: string
  readonly #instance: Child
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  readonly #port: number
  #isStopped = false
  /** The stopped queue manager, which leaves mail in `incoming`. */
  #frozen: number | null = null

  private constructor(folder: string, port: number, instance: Child, server: Server, sockets: Set<Socket>) {
    this.folder = folder
    this.spool = join(folder, 'spool')
    this.#port = port
    this.#instance = instance
    this.#server = server
    this.#sockets = sockets
  }

  static async start(settings: Readonly<Record<string, string>> = {}): Promise<PostfixSpool> {
    // Not in the folder of the tests, which Postfix's own user may not enter.
    const folder = mkdtempSync('/tmp/deferd-import-')
    chmodSync(folder, 0o755)
    const sockets = new Set<Socket>()
    const server = createServer((socket) => converse(socket, sockets))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const port = await portBelowEphemeral()
    const { port: nextHop } = server.address() as AddressInfo
    const instance = await startPostfix(folder, { listen: port, nextHop }, { ...NAMES, ...settings })
    await greeted(instance, port, new AbortController().signal)
    return new PostfixSpool(folder, port, instance, server, sockets)
  }

  /** Submits mail by SMTP, on one connection. Throws when any is refused. */
  async submit(mails: readonly SpoolMail[]): Promise<void> {
    const client = await Client.open(this.#port, '127.0.0.1')
    try {
      const say = async (text: string): Promise<void> => {
        client.send(`${text}\r\n`)
        const reply = await client.reply()
        if (!/^[23]/.test(reply)) throw new Error(`${text.slice(0, 100)}: ${reply}`)
      }
      await client.reply()
      await say('EHLO client.example')
      for (const { sender, parameters = '', recipients, content } of mails) {
        await say(`MAIL FROM:<${sender}>${parameters}`)
        for (const { address, parameters: wishes = '' } of recipients) await say(`RCPT TO:<${address}>${wishes}`)
        await say('DATA')
        await say(`${content.replaceAll(/^\./gm, '..')}.`)
      }
    } finally {
      client.close()
    }
  }

  /** Submits a message by Postfix's sendmail. */
  sendmail(args: readonly string[], input: string): void {
    execFileSync('/usr/sbin/sendmail', ['-C', join(this.folder, 'etc'), '-i', ...args], { input, env: {} })
  }

  run(program: string, ...args: readonly string[]): string {
    return execFileSync(program, ['-c', join(this.folder, 'etc'), ...args], {
      encoding: 'latin1',
      maxBuffer: 1 << 28,
      env: { ...process.env, TZ: 'UTC' },
    })
  }

  /** Names of the files of a queue. */
  queue(name: string): readonly string[] {
    const entries = readdirSync(join(this.spool, name), { recursive: true, withFileTypes: true })
    return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  }

  /** Stops the queue manager, so that new mail stays in `incoming`. */
  freeze(): void {
    const master = readFileSync(join(this.spool, 'pid/master.pid'), 'latin1').trim()
    const [manager] = execFileSync('pgrep', ['-P', master, 'qmgr'], { encoding: 'latin1' }).trim().split('\n')
    this.#frozen = Number(manager)
    process.kill(this.#frozen, 'SIGSTOP')
  }

  async stop(): Promise<void> {
    if (this.#isStopped) return
    this.#isStopped = true
    await this.#instance.stop()
    // Not before master has ended: a queue manager that master starts again moves the mail of `active` to `incoming`.
    if (this.#frozen !== null) endIfRunning(this.#frozen)
    for (const socket of this.#sockets) socket.destroy()
    this.#server.close()
  }

  async remove(): Promise<void> {
    await this.stop()
    rmSync(this.folder, { recursive: true, force: true })
  }
}

function endIfRunning(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

const EHLO = ['250-remote.example', '250-PIPELINING', '250-DSN', '250-SMTPUTF8', '250 8BITMIME']

function converse(socket: Socket, sockets: Set<Socket>): void {
  sockets.add(socket)
  socket.on('close', () => sockets.delete(socket))
  socket.on('error', () => undefined)
  socket.write('220 remote.example ESMTP\r\n')
  let rest = ''
  let isMute = false
  socket.on('data', (data) => {
    const lines = (rest + data.toString('latin1')).split('\r\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      const reply = replyTo(line)
      isMute ||= reply === null
      if (!isMute && reply !== '') socket.write(`${reply}\r\n`)
    }
  })
}

/** The reply to a line; empty for a line of content, null to reply nothing any more. */
function replyTo(line: string): string | null {
  const recipient = /^RCPT TO:<"?(\w+)/.exec(line)?.[1] ?? ''
  if (line.startsWith('EHLO')) return EHLO.join('\r\n')
  if (line === 'DATA') return '354 go on'
  if (recipient.startsWith('hang')) return null
  if (recipient === '') return line === '.' || /^(?:MAIL|RSET|QUIT)/.test(line) ? '250 2.0.0 fine' : ''
  if (recipient.startsWith('ok')) return '250 2.1.5 fine'
  return recipient.startsWith('no') ? '550 5.1.1 no such user' : '450 4.2.1 busy'
}
