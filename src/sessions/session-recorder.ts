/**
 * Records one SMTP session in memory while it runs: its first 12 kB, and its last 4 kB. Lines are masked when they arrive
 * (sessions/masked-line), and formatted only when the record is read.
 */
import type { Clock, Duration, QueueTime } from '../system/clock.ts'
import { bytesText, MASKED, maskedCommand, maskedReply, shownLine } from './masked-line.ts'
import { headingOf, leftOutText, lineText, type SessionEnds, type SessionLine, type Speaker } from './session-lines.ts'

/** Octets of the lines that are kept from the beginning and from the end of a session. */
const HEAD = 12_288
const TAIL = 4_096
/** Octets of a line besides its text: time, speaker, separators and line end. */
const OVERHEAD = 11

const sizeOf = ({ text }: SessionLine): number => Buffer.byteLength(text) + OVERHEAD

/** The record of a session up to a moment. */
export interface SessionRecord {
  /** Time when the connection began. */
  readonly at: QueueTime
  /** Local address of the connection; null where none was made. */
  readonly source: string | null
  readonly host: string
  readonly text: string
}

/** Receives the lines of a session as they are said. */
interface SessionListener {
  /** Called with each line, also with those that were recorded before the listener was added. */
  line(line: string): void
  ended(): void
}

/** Facts by which a trace selects sessions. They become known as the session goes on. */
export interface SessionFacts {
  /** Destination of the mail that is delivered. */
  readonly destination?: string
  /** Address of the listener that receives mail, as it is configured. */
  readonly listener?: string
  /** Name of the client that was looked up. */
  readonly name?: string
  /** Local address. */
  readonly source?: string
  readonly sender?: string
  /** Recipients of a delivery; of mail that is received, the latest one. */
  readonly recipients?: readonly string[]
}

/** Is told of each session that has begun, and of each new fact of it. */
export interface SessionWatch {
  consider(session: SessionRecorder): void
}

const SENDER = /^MAIL +FROM: ?<([^<>]*)>/i
const RECIPIENT = /^RCPT +TO: ?<([^<>]*)>/i

type RecorderClock = Pick<Clock, 'now' | 'monotonic' | 'wall'>

interface RecorderDeps {
  readonly clock: RecorderClock
  readonly watch: SessionWatch
  /** Time when the connection began, on the monotonic clock; now by default. */
  readonly openedAt?: Duration | undefined
}

export class SessionRecorder {
  readonly ends: SessionEnds
  readonly #clock: RecorderClock
  readonly #watch: SessionWatch
  #facts: SessionFacts
  readonly #at: QueueTime
  readonly #began: Duration
  readonly #head: SessionLine[] = []
  readonly #tail: SessionLine[] = []
  #headSize = 0
  #tailSize = 0
  #leftOut = 0
  /** Octets of content since the last line, and the time of the last ones. */
  #content = 0
  #contentAt: Duration = 0
  #hasBegun = false
  #hasEnded = false
  readonly #listeners = new Set<SessionListener>()

  constructor({ clock, watch, openedAt = clock.monotonic() }: RecorderDeps, ends: SessionEnds, facts: SessionFacts) {
    this.#clock = clock
    this.#watch = watch
    this.ends = ends
    this.#facts = facts
    this.#began = openedAt
    this.#at = clock.now() - this.#elapsed
  }

  get facts(): SessionFacts {
    return this.#facts
  }

  /** Notes the local address of the connection. */
  connected(source: string | undefined): void {
    if (source !== undefined) this.learn({ source })
    this.event(source === undefined ? 'connected' : `connected ${this.ends.direction === 'to' ? 'from' : 'to'} ${source}`)
  }

  /** Notes that a connection is used for other mail than before. */
  reused(source: string | undefined): void {
    if (source !== undefined) this.learn({ source })
    this.event(source === undefined ? 'the connection is used again' : `the connection from ${source} is used again`)
  }

  /** Notes the name of the client that was looked up. */
  named(name: string): void {
    this.learn({ name })
    this.event(`the name of the client is ${name}`)
  }

  /** Adds facts, in place of earlier ones. */
  learn(facts: SessionFacts): void {
    this.#facts = { ...this.#facts, ...facts }
    if (this.#hasBegun) this.#watch.consider(this)
  }

  /** A line of the client. `isLogin` is true for a step of a login after AUTH. */
  client(line: string, isLogin = false): void {
    if (isLogin) return this.#add('C', MASKED)
    this.#add('C', maskedCommand(line))
    if (this.ends.direction === 'from') this.#learnFrom(line)
  }

  /** Notes the addresses of mail that is received, also of refused commands. */
  #learnFrom(line: string): void {
    const [sender, recipient] = [SENDER.exec(line)?.[1], RECIPIENT.exec(line)?.[1]]
    if (sender !== undefined) this.learn({ sender, recipients: [] })
    if (recipient !== undefined) this.learn({ recipients: [recipient] })
  }

  /** Lines of the server, without the secrets that it repeats. `challenge` is the reason of a refusal in a challenge (334). */
  server(lines: readonly string[], challenge?: string): void {
    for (const line of lines) this.#add('S', maskedReply(line, challenge))
  }

  /** Octets of a content, which are counted. */
  content(bytes: number): void {
    this.#content += bytes
    this.#contentAt = this.#elapsed
  }

  event(text: string): void {
    this.#add('*', text)
  }

  /** Ends the record, with its connection. Later lines are dropped. */
  end(): void {
    if (this.#hasEnded) return
    this.#flushContent()
    this.#hasEnded = true
    for (const listener of this.#listeners) listener.ended()
    this.#listeners.clear()
  }

  /** Reports all lines from the beginning of the session to its end. */
  listen(listener: SessionListener): void {
    this.#listeners.add(listener)
    for (const line of this.#text()) listener.line(line)
  }

  record(): SessionRecord {
    this.#flushContent()
    return { at: this.#at, source: this.#facts.source ?? null, host: this.ends.peer, text: `${this.#text().join('\n')}\n` }
  }

  #text(): readonly string[] {
    const left = this.#leftOut === 0 ? [] : [leftOutText(this.#leftOut)]
    return [headingOf(this.ends, this.#clock.wall.of(this.#at)), ...this.#head.map(lineText), ...left, ...this.#tail.map(lineText)]
  }

  #flushContent(): void {
    if (this.#content === 0) return
    const text = bytesText(this.#content)
    this.#content = 0
    this.#keep({ at: this.#contentAt, speaker: 'C', text })
  }

  get #elapsed(): Duration {
    return this.#clock.monotonic() - this.#began
  }

  #add(speaker: Speaker, text: string): void {
    if (this.#hasEnded) return
    this.#flushContent()
    this.#keep({ at: this.#elapsed, speaker, text: shownLine(text) })
  }

  #keep(line: SessionLine): void {
    const size = sizeOf(line)
    if (this.#tail.length === 0 && this.#headSize + size <= HEAD) {
      this.#head.push(line)
      this.#headSize += size
    } else this.#addToTail(line, size)
    for (const listener of this.#listeners) listener.line(lineText(line))
    if (this.#hasBegun) return
    this.#hasBegun = true
    this.#watch.consider(this)
  }

  #addToTail(line: SessionLine, size: number): void {
    this.#tail.push(line)
    this.#tailSize += size
    let surplus = 0
    while (this.#tailSize > TAIL) {
      const oldest = this.#tail[surplus++]
      if (oldest === undefined) break
      this.#tailSize -= sizeOf(oldest)
    }
    if (surplus === 0) return
    this.#tail.splice(0, surplus)
    this.#leftOut += surplus
  }
}
