/**
 * Enforces the order of an SMTP dialogue: the reply that is awaited, its time limit, and the command that the reply belongs to. A
 * reply that is impossible at its position ends the dialogue. Has no socket.
 */
import type { Settings } from '../../config/destination-settings.ts'
import type { Clock, Duration } from '../../system/clock.ts'
import type { Stage } from '../../mail/smtp-reply.ts'
import { Concealment } from './concealment.ts'
import { Deadline } from './stage-deadline.ts'
import { parseChallenge, type SaslChallenge } from '../sasl-challenge.ts'
import type { Step } from './mail-transaction.ts'
import { ReplyReader, type ServerReply } from '../reply-reader.ts'
import type { SessionFailure } from '../transcript.ts'

/** A command whose reply is awaited with `expect`. */
type Expected = Step | 'auth'

export type Waiting = Step | 'tls' | 'greeting' | 'ehlo' | 'starttls' | 'handshake' | 'auth' | 'body' | 'idle'

/** Name of the parameter that limits each wait. */
const TIMEOUTS = {
  greeting: 'smtp_helo_timeout',
  ehlo: 'smtp_helo_timeout',
  auth: 'smtp_helo_timeout',
  starttls: 'smtp_starttls_timeout',
  handshake: 'smtp_starttls_timeout',
  tls: 'smtp_starttls_timeout',
  rset: 'smtp_rset_timeout',
  mail: 'smtp_mail_timeout',
  rcpt: 'smtp_rcpt_timeout',
  data: 'smtp_data_init_timeout',
  body: 'smtp_data_xfer_timeout',
  bdat: 'smtp_data_xfer_timeout',
  'end-of-data': 'smtp_data_done_timeout',
} as const satisfies Record<Exclude<Waiting, 'idle'>, keyof Settings>

/** True when RFC 5321 §4.3.2 allows the reply here. Any other reply is a protocol error. */
function isPossible(waiting: Waiting, { code }: ServerReply): boolean {
  if (waiting === 'data') return code === 354 || code >= 400
  if (waiting === 'greeting') return code === 220 || code >= 400
  if (waiting === 'body') return false
  return code < 300 || code >= 400 || (waiting === 'auth' && code === 334)
}

type Answered = (reply: ServerReply | undefined) => void

interface DialogueDeps {
  readonly clock: Clock
  readonly settings: Settings
  /** Ends the connection at once. */
  readonly disconnect: () => void
  /** Called with the lines of each reply, without secrets, and with the reason that a challenge (334) states. */
  readonly heard: (lines: readonly string[], challenge: SaslChallenge | undefined) => void
  /** Called with the failure that ends the dialogue. */
  readonly failed: (failure: SessionFailure) => void
  /** Called with the lines of a reply to the greeting, EHLO, STARTTLS or AUTH. */
  readonly handshake: (lines: readonly string[]) => void
}

export class Dialogue {
  readonly #deps: DialogueDeps
  readonly #reader = new ReplyReader()
  readonly #deadline: Deadline
  readonly #expected: { readonly step: Expected; readonly answered: Answered }[] = []
  #concealment = new Concealment()
  #waiting: Waiting = 'greeting'
  #over = false
  #failure: SessionFailure | undefined
  /** Last reply of the handshake, which consists of the greeting, EHLO, STARTTLS and AUTH. */
  lastReply: ServerReply | undefined
  /** Called once, when the dialogue has ended. */
  onOver: () => void = () => {}

  constructor(deps: DialogueDeps) {
    this.#deps = deps
    this.#deadline = new Deadline(deps.clock, () => this.#timedOut())
  }

  get over(): boolean {
    return this.#over
  }

  get failure(): SessionFailure | undefined {
    return this.#failure
  }

  get stage(): Stage {
    if (this.#waiting === 'bdat') return 'body'
    if (this.#waiting === 'tls') return 'handshake'
    return this.#waiting === 'idle' || this.#waiting === 'rset' ? 'mail' : this.#waiting
  }

  /** Sets the end of the attempt, on the monotonic clock. No wait lasts longer. */
  endBy(at: Duration): void {
    this.#deadline.limit(at)
  }

  /** Starts to wait for a reply, with the time limit of its parameter. */
  await(what: Waiting): void {
    this.#waiting = what
    if (what === 'idle') this.#deadline.clear()
    else this.#deadline.set(this.#deps.settings[TIMEOUTS[what]])
  }

  /**
   * Registers a command that is about to be sent, and resolves with its reply. Replies are assigned in the order of the calls.
   * Resolves with undefined when the dialogue ends first.
   */
  expect(step: Expected): Promise<ServerReply | undefined> {
    if (this.#over) return Promise.resolve(undefined)
    if (this.#expected.length === 0) this.await(step)
    return new Promise((answered) => this.#expected.push({ step, answered }))
  }

  /** Parses received bytes. When `isCurrent` returns false, because TLS has replaced the connection, the rest of the bytes is ignored. */
  receive(chunk: Buffer, isCurrent: () => boolean): void {
    this.#reader.feed(chunk)
    while (!this.#over && isCurrent()) {
      const reading = this.#reader.next()
      if (reading === undefined) return
      if (reading.kind === 'protocol-error') return this.protocolError(this.concealed(reading.what))
      const { reply, lines } = reading
      // The text of a challenge stays as it is, because it is base64 to be decoded.
      const text = reply.code === 334 ? reply.text : this.concealed(reply.text)
      const challenge = reply.code === 334 ? parseChallenge(reply.text, (shown) => this.concealed(shown)) : undefined
      this.#deps.heard(this.#concealment.applyAll(lines), challenge)
      this.#answer({ ...reply, text, raw: this.concealed(reply.raw) }, lines)
    }
  }

  /** Removes these secrets from all later replies, in place of those of an earlier call. */
  conceal(secrets: readonly string[]): void {
    this.#concealment = new Concealment(secrets)
  }

  concealed(text: string): string {
    return this.#concealment.apply(text)
  }

  /** Discards all bytes received before TLS, because they may be an injection (CVE-2011-0411). */
  discard(): void {
    this.#reader.discard()
  }

  protocolError(what: string): void {
    this.fail({ kind: 'protocol-error', stage: this.stage, what })
  }

  /** Ends the dialogue with a failure. Later failures are ignored. */
  fail(failure: SessionFailure): void {
    if (!this.#over) {
      this.#failure = failure
      this.#deps.failed(failure)
    }
    this.end()
  }

  /** Ends the dialogue and closes the connection. */
  end(): void {
    if (this.#over) return
    this.#over = true
    this.#deadline.close()
    this.#deps.disconnect()
    for (const { answered } of this.#expected.splice(0)) answered(undefined)
    this.onOver()
  }

  /** Ends the dialogue after QUIT. Later replies are ignored, and the connection is closed separately. */
  quit(): void {
    this.#over = true
    this.#deadline.close()
  }

  #timedOut(): void {
    this.fail(this.#waiting === 'tls' ? { kind: 'tls', why: 'TLS handshake timed out' } : { kind: 'timeout', stage: this.stage })
  }

  #answer(reply: ServerReply, lines: readonly string[]): void {
    const waiting = this.#waiting
    // The server may refuse before the end of the content, and may send 421 on an idle connection.
    if (waiting === 'body' && reply.code >= 400) return this.fail({ kind: 'refused', stage: 'body', reply })
    if (waiting === 'idle' && reply.code === 421) return this.fail({ kind: 'refused', stage: 'mail', reply })
    if (waiting === 'idle' || !isPossible(waiting, reply)) return this.protocolError(reply.raw)
    const expected = this.#expected.shift()
    if (expected === undefined) {
      this.lastReply = reply
      return this.#deps.handshake(lines)
    }
    this.await(this.#expected[0]?.step ?? 'idle')
    expected.answered(reply)
  }
}
