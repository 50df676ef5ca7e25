/**
 * Follows the SMTP dialogue of one recorded session, from the bytes of both sides as they pass. It passes on all bytes but those that the
 * recording cannot follow: it removes extensions from EHLO, and answers their commands itself. It opens no sockets.
 */
import type { Duration } from '../../system/clock.ts'
import type { Drop, FaultStage, SpokenStage } from '../remote/rule.ts'
import { readCommand } from '../remote/server-transaction.ts'
import { ContentTap } from './content-tap.ts'
import {
  faultOf,
  LEAST_DELAY,
  REPLY,
  REPLY_BEGUN,
  rounded,
  type Exchange,
  type Fault,
  type Observation,
  type Piece,
} from './observation.ts'
import { SessionSecrets, type Masks } from './masks.ts'
import { keptExtensions, withoutRemoved } from './offered-extensions.ts'
import { NOBODY, SessionState, type Addresses } from './session-state.ts'

/** Longest line of a client that is read as a command, in bytes. */
const LONGEST_LINE = 65_536

const UNKNOWN = '502 5.5.2 Error: command not recognized\r\n'

/** Stages of commands. */
const STAGES: Readonly<Record<string, SpokenStage>> = {
  EHLO: 'ehlo',
  HELO: 'helo',
  STARTTLS: 'starttls',
  AUTH: 'auth',
  MAIL: 'mail',
  RCPT: 'rcpt',
  DATA: 'data',
  RSET: 'rset',
  QUIT: 'quit',
}

interface TapDeps {
  readonly now: () => Duration
  readonly masks: Masks
  /** False for a session whose STARTTLS is removed. */
  readonly hasTls: boolean
  readonly toRelay: (bytes: Buffer) => void
  readonly toClient: (bytes: Buffer) => void
  /** Begins TLS on both sides. Bytes of the client wait until `secured`. */
  readonly startTls: () => void
  readonly observe: (observation: Observation) => void
}

interface Asked {
  /** Null for a command without a stage in scripts. */
  readonly stage: SpokenStage | null
  asked: Duration
  pieces: Piece[]
  /** False for a command out of sequence, which a scripted server refuses by itself. */
  isOccasion: boolean
  doneAt: Duration | null
  readonly mail: Addresses
}

type Mode = 'commands' | 'login' | 'content' | 'handshake'

export class SessionTap {
  readonly #deps: TapDeps
  readonly #secrets = new SessionSecrets()
  readonly #state: SessionState
  #mode: Mode = 'commands'
  #client: Buffer = Buffer.alloc(0)
  /** Bytes of the relay that are not a whole reply yet. */
  #relay = ''
  /** Bytes of the reply to EHLO, which are passed on when it is complete. */
  #held: Buffer[] = []
  /** Octets that follow BDAT. */
  #skipped = 0
  #waiting: Asked[] = []
  #last: Asked | null = null
  #content: ContentTap | null = null
  #handshakeAt: Duration | null = null
  readonly #offered = new Set<string>()
  readonly #offers: Exchange[] = []
  /** Way in which the relay has closed the connection of an idle client. */
  #idled: Fault | null = null
  #hasEnded = false

  constructor(deps: TapDeps) {
    this.#deps = deps
    this.#state = new SessionState(deps.masks)
    this.#waiting.push(this.#askedFor('greeting', ''))
  }

  // --- the client

  fromClient(bytes: Buffer): void {
    this.#client = this.#client.length === 0 ? bytes : Buffer.concat([this.#client, bytes])
    while (this.#client.length > 0 && this.#mode !== 'handshake' && this.#takeClientBytes());
  }

  /** Takes what is complete. Returns false when more bytes are needed. */
  #takeClientBytes(): boolean {
    if (this.#skipped > 0) {
      this.#skipped -= this.#cut(Math.min(this.#skipped, this.#client.length)).length
      return true
    }
    if (this.#content !== null && this.#mode === 'content') return this.#takeContent(this.#content)
    const end = this.#client.indexOf('\n')
    if (end < 0 && this.#client.length < LONGEST_LINE) return false
    this.#takeLine(this.#cut(end < 0 ? this.#client.length : end + 1))
    return true
  }

  #cut(length: number): Buffer {
    const taken = this.#client.subarray(0, length)
    this.#client = this.#client.subarray(length)
    return taken
  }

  #takeContent(content: ContentTap): boolean {
    const used = this.#cut(content.read(this.#client))
    if (content.isWhole) {
      this.#secrets.learnContent(content.text())
      this.#mode = 'commands'
      this.#bodySettled()
      // A reply in the content is the reply to the message.
      if (this.#last?.stage !== 'body') this.#ask('end-of-data', '')
    }
    this.#deps.toRelay(used)
    return true
  }

  #takeLine(bytes: Buffer): void {
    const line = bytes.toString('utf8').replace(/\r?\n$/, '')
    // The header of a proxy comes before the greeting, and has no reply.
    if (!this.#state.isGreeted && line.startsWith('PROXY ')) return this.#deps.toRelay(bytes)
    if (this.#mode === 'login') {
      this.#secrets.learnLogin(line)
      this.#mode = 'commands'
      const [login] = this.#waiting
      if (login !== undefined) Object.assign(login, { asked: this.#deps.now(), pieces: [] })
      return this.#deps.toRelay(bytes)
    }
    const { verb, argument } = readCommand(line)
    if (verb === 'BDAT' || (verb === 'STARTTLS' && !this.#deps.hasTls)) {
      this.#skipped = verb === 'BDAT' ? Number(/^\d{1,12}/.exec(argument)?.[0] ?? 0) : 0
      return this.#deps.toClient(Buffer.from(UNKNOWN))
    }
    if (verb === 'EHLO' || verb === 'HELO') this.#secrets.helo = argument
    if (verb === 'AUTH') this.#secrets.learnLogin(argument.split(/\s+/)[1] ?? '')
    this.#ask(STAGES[verb] ?? null, line)
    if (verb === 'STARTTLS') this.#mode = 'handshake'
    this.#deps.toRelay(bytes)
    return undefined
  }

  #ask(stage: SpokenStage | null, line: string): void {
    // A reply that was not understood belongs to its command, when the client goes on.
    const [open] = this.#waiting
    if (open !== undefined && open.pieces.length > 0 && !REPLY_BEGUN.test(this.#relay)) this.#complete(null)
    if (this.#waiting.length === 0) this.#settle(null)
    this.#waiting.push(this.#askedFor(stage, line))
  }

  #askedFor(stage: SpokenStage | null, line: string): Asked {
    const mail = this.#state.addressesAt(stage, line)
    return { stage, asked: this.#deps.now(), pieces: [], isOccasion: true, doneAt: null, mail }
  }

  // --- the relay

  fromRelay(bytes: Buffer): void {
    const piece = { at: this.#deps.now(), bytes }
    const isOffer = this.#waiting[0]?.stage === 'ehlo'
    // The reply to STARTTLS is passed on before TLS begins.
    if (isOffer) this.#held.push(bytes)
    else this.#deps.toClient(bytes)
    if (this.#waiting.length === 0) this.#unasked(piece)
    else this.#take(piece)
    if (isOffer && (this.#waiting[0]?.stage !== 'ehlo' || !REPLY_BEGUN.test(this.#relay))) this.#passOffer()
  }

  #take(piece: Piece): void {
    this.#relay += piece.bytes.toString('latin1')
    let rest = piece.bytes
    for (;;) {
      const [open] = this.#waiting
      if (open === undefined) break
      const reply = REPLY.exec(this.#relay)?.[0]
      if (reply === undefined) {
        if (rest.length > 0) open.pieces.push({ at: piece.at, bytes: rest })
        return
      }
      const before = open.pieces.reduce((sum, { bytes }) => sum + bytes.length, 0)
      open.pieces.push({ at: piece.at, bytes: rest.subarray(0, reply.length - before) })
      rest = rest.subarray(reply.length - before)
      this.#relay = this.#relay.slice(reply.length)
      this.#complete(reply)
    }
    this.#relay = ''
    if (rest.length > 0) this.#last?.pieces.push({ at: piece.at, bytes: rest })
  }

  /** Bytes without a command: in the content, while the client is idle, or more of the last reply. */
  #unasked(piece: Piece): void {
    const last = this.#last
    if (this.#mode === 'content' && last?.stage !== 'body') {
      this.#settle(null)
      this.#last = { ...this.#askedFor('body', ''), pieces: [piece], doneAt: piece.at }
      return
    }
    if (last?.stage === 'end-of-data' && last.doneAt !== null && piece.at - last.doneAt >= LEAST_DELAY) {
      this.#settle(null, false)
      this.#last = { ...this.#askedFor('idle', ''), asked: last.doneAt, pieces: [piece], doneAt: piece.at }
      return
    }
    last?.pieces.push(piece)
  }

  /** The oldest command has its reply; null for bytes that are none. */
  #complete(reply: string | null): void {
    this.#settle(null)
    const asked = this.#waiting.shift()
    if (asked === undefined) return
    if (reply === null) this.#relay = ''
    const code = reply === null ? undefined : Number(reply.slice(0, 3))
    if (asked.stage === 'auth' && code === 334) {
      this.#waiting.unshift(asked)
      this.#mode = 'login'
      return
    }
    asked.doneAt = this.#deps.now()
    this.#last = asked
    this.#answered(asked, code, reply ?? '')
  }

  #answered(asked: Asked, code: number | undefined, reply: string): void {
    asked.isOccasion = this.#state.answered(asked.stage, code, asked.mail)
    if (asked.stage === 'ehlo' && code === 250) for (const one of keptExtensions(reply, this.#deps.hasTls)) this.#offered.add(one)
    if (asked.stage === 'starttls' && code === 220) this.#beginHandshake()
    else if (asked.stage === 'starttls') this.#proceed()
    if (asked.stage !== 'data' || code !== 354) return
    this.#content = new ContentTap()
    this.#mode = 'content'
  }

  /** The content has ended: an occasion of `body`, without a fault unless the relay has replied in it. */
  #bodySettled(): void {
    if (this.#last?.stage === 'body') return
    this.#settle(null)
    this.#observe('body', null, this.#state.addressesAt('body', ''))
  }

  // --- TLS

  #beginHandshake(): void {
    this.#settle(null)
    this.#handshakeAt = this.#deps.now()
    this.#offered.add('STARTTLS')
    // Bytes that follow STARTTLS in plain text are lost, as RFC 3207 §4.2 requires.
    this.#client = Buffer.alloc(0)
    this.#deps.startTls()
  }

  /** TLS has begun on the side of the relay. */
  secured(): void {
    this.#observe('handshake', null, NOBODY, this.#handshakeAt ?? undefined)
    this.#handshakeAt = null
    this.#state.secured()
    this.#proceed()
  }

  #proceed(): void {
    this.#mode = 'commands'
    this.fromClient(Buffer.alloc(0))
  }

  // --- the end

  /** The relay has closed the connection, or has failed in the TLS handshake. */
  relayEnded(how: Drop): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    this.#passOffer()
    const [open] = this.#waiting
    const last = this.#last
    const doneAt = last?.doneAt ?? this.#deps.now()
    const isLate = this.#deps.now() - doneAt >= LEAST_DELAY
    if (this.#handshakeAt !== null) this.#observe('handshake', { drop: how }, NOBODY, this.#handshakeAt)
    else if (open !== undefined) {
      this.#settle(null)
      this.#last = open
      this.#settle(how)
    } else if (this.#mode === 'content' && last?.stage !== 'body') {
      this.#settle(null)
      this.#observe('body', { drop: how }, this.#state.addressesAt('body', ''))
    } else if (last?.stage === 'quit') this.#settle(how === 'rst' ? how : null)
    else if (last?.stage === 'end-of-data' && isLate) {
      this.#idled = { after: rounded(this.#deps.now() - doneAt), drop: how }
      this.#settle(null)
    } else this.#settle(isLate && last?.stage !== 'idle' ? null : how)
    this.#observeOffers()
  }

  /** The client has closed the connection, or the recording ends. */
  clientEnded(): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    this.#settle(null)
    const [open] = this.#waiting
    const since = open?.asked ?? this.#handshakeAt
    const isLong = since !== null && this.#deps.now() - since >= LEAST_DELAY
    if (since !== null && (isLong || (open !== undefined && open.pieces.length > 0))) {
      this.#last = open ?? null
      if (open === undefined) this.#observe('handshake', { stall: true }, NOBODY, since)
      else this.#settle('silent')
    }
    this.#observeOffers()
  }

  // --- observations

  /** Observes the last reply, to which nothing can be added. `isIdle` is false when an observation of idleness follows. */
  #settle(ending: Exchange['ending'], isIdle = true): void {
    const last = this.#last
    this.#last = null
    if (last?.stage === undefined || last.stage === null) return
    const { stage, asked, pieces, mail } = last
    const exchange = { stage, asked, pieces, ending }
    if (stage === 'ehlo') this.#offers.push(exchange)
    else if (last.isOccasion) this.#observe(stage, this.#masked(faultOf(exchange, [])), mail, asked)
    if (stage !== 'end-of-data') return
    if (isIdle) this.#observe('idle', this.#idled, this.#state.addressesAt('idle', ''), last.doneAt ?? undefined)
    this.#secrets.forgetContent()
  }

  /** A rule has one list of extensions for EHLO before TLS and in it, so that each reply to EHLO has all of the session. */
  #observeOffers(): void {
    for (const exchange of this.#offers) this.#observe('ehlo', this.#masked(faultOf(exchange, [...this.#offered])), NOBODY, exchange.asked)
  }

  #masked(fault: Fault | null): Fault | null {
    if (fault === null) return null
    const masked = (text: string): string => this.#deps.masks.text(text, this.#secrets)
    return {
      ...fault,
      ...(fault.reply === undefined ? {} : { reply: masked(fault.reply) }),
      ...(fault.raw === undefined ? {} : { raw: masked(fault.raw) }),
    }
  }

  #observe(stage: FaultStage, fault: Fault | null, mail: Addresses, at = this.#deps.now()): void {
    const content = stage === 'end-of-data' ? (this.#content?.inWords() ?? null) : null
    this.#deps.observe({ stage, at, ...mail, fault, content })
  }

  /** Passes on the reply to EHLO, without the extensions that are removed. */
  #passOffer(): void {
    const bytes = Buffer.concat(this.#held)
    this.#held = []
    if (bytes.length > 0) this.#deps.toClient(withoutRemoved(bytes, this.#deps.hasTls))
  }
}
