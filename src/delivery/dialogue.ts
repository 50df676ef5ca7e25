/**
 * The order of a conversation: what is waited for, until when, which reply answers what, and how it ends. Every reply
 * must fit what was asked; what does not fit ends the conversation. Knows nothing of sockets.
 */
import type { Settings } from '../config/destination-settings.ts'
import type { Clock, Duration } from '../mail/clock.ts'
import type { Stage } from '../mail/reply.ts'
import { Deadline } from './deadline.ts'
import type { Step } from './mail-transaction.ts'
import { ReplyReader, type ServerReply } from './reply-reader.ts'
import type { Trouble } from './transcript.ts'

export type Waiting = Step | 'greeting' | 'ehlo' | 'starttls' | 'auth' | 'body' | 'idle'

/** Which parameter limits which wait (fact sheet §6.5). */
const TIMEOUTS = {
  greeting: 'smtp_helo_timeout',
  ehlo: 'smtp_helo_timeout',
  auth: 'smtp_helo_timeout',
  starttls: 'smtp_starttls_timeout',
  rset: 'smtp_rset_timeout',
  mail: 'smtp_mail_timeout',
  rcpt: 'smtp_rcpt_timeout',
  data: 'smtp_data_init_timeout',
  body: 'smtp_data_xfer_timeout',
  'end-of-data': 'smtp_data_done_timeout',
} as const satisfies Record<Exclude<Waiting, 'idle'>, keyof Settings>

/** Is a reply of this class possible here? Every other one is nonsense. */
function fits(waiting: Waiting, { code }: ServerReply): boolean {
  if (waiting === 'data') return code === 354 || code >= 400
  if (waiting === 'greeting') return code === 220 || code >= 400
  if (waiting === 'body') return false
  return code < 300 || code >= 400 || (waiting === 'auth' && code === 334)
}

type Answered = (reply: ServerReply | undefined) => void

export interface DialogueParts {
  readonly clock: Clock
  readonly settings: Settings
  /** Ends the connection at once. */
  readonly hangUp: () => void
  /** Takes a reply to the greeting, EHLO, STARTTLS or AUTH, as received. */
  readonly handshake: (lines: readonly string[]) => void
}

export class Dialogue {
  readonly #parts: DialogueParts
  readonly #reader = new ReplyReader()
  readonly #deadline: Deadline
  readonly #expected: { readonly step: Step; readonly answered: Answered }[] = []
  #waiting: Waiting = 'greeting'
  #over = false
  #trouble: Trouble | undefined
  /** The last reply that was no answer to a mail command. */
  lastReply: ServerReply | undefined
  /** Called once, when the conversation has ended. */
  onOver: () => void = () => {}

  constructor(parts: DialogueParts) {
    this.#parts = parts
    this.#deadline = new Deadline(parts.clock, () => this.fail({ kind: 'timeout', stage: this.stage }))
  }

  get over(): boolean {
    return this.#over
  }

  get trouble(): Trouble | undefined {
    return this.#trouble
  }

  get stage(): Stage {
    return this.#waiting === 'idle' || this.#waiting === 'rset' ? 'mail' : this.#waiting
  }

  /** No wait goes beyond this time on the stopwatch. */
  endBy(at: Duration): void {
    this.#deadline.limit(at)
  }

  /** What is waited for now, for as long as that may take. */
  await(what: Waiting): void {
    this.#waiting = what
    if (what === 'idle') this.#deadline.clear()
    else this.#deadline.set(this.#parts.settings[TIMEOUTS[what]])
  }

  /** The reply to a mail command that is being sent, after those already expected; undefined when none comes. */
  expect(step: Step): Promise<ServerReply | undefined> {
    if (this.#over) return Promise.resolve(undefined)
    if (this.#expected.length === 0) this.await(step)
    return new Promise((answered) => this.#expected.push({ step, answered }))
  }

  /** Takes what came in. `still`: the bytes belong to the connection as it is now; TLS makes it another one. */
  receive(chunk: Buffer, still: () => boolean): void {
    this.#reader.feed(chunk)
    while (!this.#over && still()) {
      const reading = this.#reader.next()
      if (reading === undefined) return
      if (reading.kind === 'nonsense') return this.nonsense(reading.what)
      this.#answer(reading.reply, reading.lines)
    }
  }

  /** Forgets what came in before TLS: it may be an injection (CVE-2011-0411). */
  forget(): void {
    this.#reader.discard()
  }

  nonsense(what: string): void {
    this.fail({ kind: 'nonsense', stage: this.stage, what })
  }

  /** It broke off. Only the first trouble counts. */
  fail(trouble: Trouble): void {
    if (!this.#over) this.#trouble = trouble
    this.end()
  }

  /** Nothing more will be said. */
  end(): void {
    if (this.#over) return
    this.#over = true
    this.#deadline.close()
    this.#parts.hangUp()
    for (const { answered } of this.#expected.splice(0)) answered(undefined)
    this.onOver()
  }

  /** We have said good-bye: whatever comes now does not matter, and the connection ends by itself. */
  leave(): void {
    this.#over = true
    this.#deadline.close()
  }

  #answer(reply: ServerReply, lines: readonly string[]): void {
    const waiting = this.#waiting
    // It refuses content before it has seen the end, or hangs up on a connection nobody uses: both are allowed.
    if (waiting === 'body' && reply.code >= 400) return this.fail({ kind: 'refused', stage: 'body', reply })
    if (waiting === 'idle' && reply.code === 421) return this.fail({ kind: 'refused', stage: 'mail', reply })
    if (waiting === 'idle' || !fits(waiting, reply)) return this.nonsense(reply.raw)
    const expected = this.#expected.shift()
    if (expected === undefined) {
      this.lastReply = reply
      return this.#parts.handshake(lines)
    }
    this.await(this.#expected[0]?.step ?? 'idle')
    expected.answered(reply)
  }
}
