/**
 * `sendmail -bs`: SMTP on standard input and output, without the daemon (stand-alone mode of Postfix smtpd(8)). Messages are submitted
 * through the maildrop. Access restrictions, TLS and limits of network clients do not apply.
 */
import { clockOf } from '../../system/queue-clock.ts'
import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { openAccess } from '../../access/access-tables.ts'
import { defaultConfig } from '../../config/load.ts'
import type { Config } from '../../config/options.ts'
import type { ContentTaker, MessageTaker } from '../../queue/intake/acceptor.ts'
import { WRITE_ERROR } from '../../queue/intake/intake.ts'
import { TOO_BIG, type Acceptance } from '../../queue/intake/message-receiver.ts'
import type { Envelope } from '../../mail/envelope.ts'
import type { SmtpReply } from '../../mail/smtp-reply.ts'
import { startSmtpd } from '../../smtpd/server.ts'
import { errorMessage } from '../../system/caught-error.ts'
import { sleep } from '../../system/clock.ts'
import { ForwardingNet, type Listener, type ListenOptions } from '../../system/net.ts'
import { systemNet } from '../../system/system-net.ts'
import { Events } from '../../telemetry/events.ts'
import type { Shell } from '../shell/shell.ts'
import { announce, submit } from './submit.ts'

/** Answers SMTP commands until QUIT or the end of the input. */
export async function standAlone(shell: Shell, given: Config): Promise<void> {
  const config = standAloneConfig(given)
  const { random } = shell
  const clock = clockOf(null, shell.clock)
  const taker = new MaildropTaker(shell, given)
  const socket = new StandardStreams(shell, () => taker.submitting)
  const smtpd = await startSmtpd({
    config,
    net: new OneConnection(socket),
    clock,
    random,
    acceptor: taker,
    events: new Events(() => shell.clock.now()),
    intake: { refusal: () => undefined, recipientRefusal: () => undefined },
    flushDomain: () => false,
    access: openAccess(config).access,
    deadEnds: { refusalOf: () => undefined, isAlias: () => false },
  })
  await socket.ended
  await smtpd.close(0)
}

/** The configuration of a server for the calling user: parameters about clients of the network have their defaults. */
function standAloneConfig({ myhostname, mydomain, myorigin, message_size_limit, smtpd_banner, smtpd_recipient_limit }: Config): Config {
  return {
    ...defaultConfig(myhostname).config,
    myhostname,
    mydomain,
    myorigin,
    message_size_limit,
    smtpd_banner,
    smtpd_recipient_limit,
    // Scripts write all commands at once, with line ends of any kind.
    smtpd_forbid_unauth_pipelining: false,
    smtpd_forbid_bare_newline_exclusions: [CLIENT_ADDRESS],
    smtpd_error_sleep_time: 0,
  }
}

/** Address of the client (Postfix smtpd_peer). */
const CLIENT_ADDRESS = '127.0.0.1'

/** Submits each message of the session through the maildrop. */
class MaildropTaker implements MessageTaker {
  /** Settles when no message is being submitted. */
  submitting: Promise<unknown> = Promise.resolve()
  readonly #shell: Shell
  readonly #config: Config

  constructor(shell: Shell, config: Config) {
    this.#shell = shell
    this.#config = config
  }

  open({ envelope }: { readonly envelope: Envelope }): ContentTaker {
    return new SubmittedContent(this.#config.message_size_limit, (content) => {
      const stored = this.#submit(envelope, content)
      this.submitting = stored
      return stored
    })
  }

  async #submit(envelope: Envelope, content: Buffer): Promise<Acceptance> {
    const [shell, config] = [this.#shell, this.#config]
    try {
      const [first = ''] = await submit(shell, config, envelope, content)
      await announce(shell, config)
      // The name of the file serves as the queue id until the daemon has assigned one.
      return { kind: 'queued', queueId: first }
    } catch (error) {
      await shell.stderr.write(`sendmail: warning: ${errorMessage(error)}\n`)
      return { kind: 'refused', reply: WRITE_ERROR }
    }
  }
}

/** Keeps the content of one message in memory until it is submitted. */
class SubmittedContent implements ContentTaker {
  readonly staging = null
  readonly queueId = 'NOQUEUE'
  octets = 0
  refusal: SmtpReply | undefined
  readonly #limit: number
  readonly #store: (content: Buffer) => Promise<Acceptance>
  #pieces: Uint8Array[] = []

  /** `limit` is the maximum number of octets; 0 for no limit. */
  constructor(limit: number, store: (content: Buffer) => Promise<Acceptance>) {
    this.#limit = limit
    this.#store = store
  }

  write(pieces: readonly Uint8Array[]): undefined {
    for (const piece of pieces) this.octets += piece.length
    if (this.#limit > 0 && this.octets > this.#limit) this.refuse(TOO_BIG)
    // Copied, because the reader uses its buffer again.
    if (this.refusal === undefined) this.#pieces.push(...pieces.map((piece) => Buffer.from(piece)))
  }

  refuse(reply: SmtpReply): void {
    this.refusal ??= reply
    this.#pieces = []
  }

  async abandon(): Promise<void> {
    this.#pieces = []
  }

  async end(): Promise<Acceptance> {
    return this.refusal === undefined ? this.#store(Buffer.concat(this.#pieces)) : { kind: 'refused', reply: this.refusal }
  }
}

/** A network with one connection, which is open. */
class OneConnection extends ForwardingNet {
  readonly #socket: StandardStreams

  constructor(socket: StandardStreams) {
    super(systemNet)
    this.#socket = socket
  }

  override async listen(at: ListenOptions, accept: (socket: Socket) => void): Promise<Listener> {
    accept(this.#socket.asSocket)
    return { ...at, close: async () => undefined }
  }
}

/** Standard input and output with the members of net.Socket that the SMTP server uses without TLS. */
class StandardStreams extends Duplex {
  readonly remoteAddress = CLIENT_ADDRESS
  /** Resolves when the session has ended. */
  readonly ended: Promise<void>
  readonly #shell: Shell
  readonly #idle: () => Promise<unknown>
  #wanted: (() => void) | null = null
  #reads = false

  /** `idle` returns a promise of the message that is being submitted, which settles when it is answered. */
  constructor(shell: Shell, idle: () => Promise<unknown>) {
    super({ allowHalfOpen: true })
    this.#shell = shell
    this.#idle = idle
    this.ended = new Promise((resolve) => this.once('close', resolve))
    this.once('end', () => void this.#finish())
  }

  /** This stream with the type of the Net port. */
  get asSocket(): Socket {
    return this as unknown as Socket
  }

  destroySoon(): void {
    this.end()
  }

  override _read(): void {
    this.#wanted?.()
  }

  override _write(chunk: Uint8Array, _encoding: string, done: (error?: Error) => void): void {
    this.#shell.stdout.write(chunk).then(() => done(), done)
    // Input before the greeting would be refused as pipelining.
    if (!this.#reads) void this.#readInput()
    this.#reads = true
  }

  override _final(done: () => void): void {
    done()
    this.once('finish', () => this.destroy())
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    const { stdin } = this.#shell
    // The command ends although its input is still open.
    if ('destroy' in stdin && typeof stdin.destroy === 'function') stdin.destroy()
    done(error)
  }

  async #readInput(): Promise<void> {
    try {
      for await (const chunk of this.#shell.stdin) {
        if (this.destroyed) return
        if (!this.push(Buffer.from(chunk))) await new Promise<void>((resolve) => (this.#wanted = resolve))
      }
      this.push(null)
    } catch (error) {
      if (!this.destroyed) this.destroy(error instanceof Error ? error : new Error(String(error)))
    }
  }

  /** Ends the output when the last command is answered. A script may have sent several messages before the end of its input. */
  async #finish(): Promise<void> {
    for (let last: Promise<unknown> | null = null; last !== this.#idle(); await sleep(this.#shell.clock, 0)) {
      last = this.#idle()
      await last
    }
    this.end()
  }
}
