/**
 * Reads scripts, and dialogues that a relay has kept or traced (docs/dialogues.md): the server's side of these is followed as `deferd record`
 * follows a live session, and becomes a script. Pure.
 */
import { ConfigError } from '../../config/values/problem.ts'
import { readLine, type SessionLine } from '../../sessions/session-lines.ts'
import { MINUTE, type Duration } from '../../system/clock.ts'
import { isPositive } from '../remote/fault-injector.ts'
import { readScript } from '../remote/script.ts'
import type { ConnectFault, Drop, Script } from '../remote/rule.ts'
import { Masks } from './masks.ts'
import type { Observation } from './observation.ts'
import { recordedScript } from './recorded-script.ts'
import { SessionTap } from './session-tap.ts'

const CONTENT = /^\[[\d,]+ bytes?\]$/
/** A fault lasts after its last occasion for this time at most, when it ends: the default of `deferd record`. */
const MAX_GAP: Duration = 5 * MINUTE

/** Reads the script in `text`, or the dialogues. Throws a ConfigError with all mistakes. */
export const readScriptOrDialogue = (text: string, file: string): Script =>
  readScript(readLine(firstLine(text))?.kind === 'heading' ? scriptOf(text, file) : text, file)

const firstLine = (text: string): string => text.split(/\r?\n/, 1)[0] ?? ''

/** Writes the script of dialogues, with their addresses. Throws a ConfigError that names a line which is none of a dialogue. */
export function scriptOf(text: string, file: string): string {
  const observations: Observation[] = []
  const sessions = new Map<number | null, ReplayedSession>()
  const first = readLine(firstLine(text))
  const { peer: relay, at: startedAt } = first?.kind === 'heading' ? first : { peer: '', at: 0 }
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    const read = readLine(line)
    const session = sessions.get(read?.session ?? null)
    if (read?.kind === 'heading') {
      session?.end()
      sessions.set(read.session, new ReplayedSession(read.at - startedAt, (one) => void observations.push(one)))
    } else if (read?.kind === 'line' && session !== undefined) {
      session.follow(read)
    } else if (read?.kind === 'left-out') {
      const concerned = session === undefined ? sessions.values() : [session]
      for (const one of concerned) one.skip()
    } else if (line !== '')
      throw new ConfigError([{ where: `${file}:${index + 1}`, text: 'is no line of a dialogue: leave the text of deferd as it is' }])
  }
  for (const session of sessions.values()) session.end()
  const recording = {
    relay,
    startedAt,
    duration: Math.max(0, ...observations.map(({ at }) => at)),
    sessions: sessions.size,
    clients: 1,
    observations,
  }
  return recordedScript(recording, { hasTls: true, keepsAddresses: true, maxGap: MAX_GAP }).text
}

/** Events with which a session ends (delivery/smtp/session-events); the first one that fits counts. */
const ENDINGS: readonly (readonly [event: RegExp, how: Drop | 'silent'])[] = [
  [/^Connection reset|^TLS failed: .*ECONNRESET/, 'rst'],
  [/^timeout in |^TLS failed: .*timed out/, 'silent'],
  [/^connection lost in |^TLS failed: /, 'fin'],
]

/** A command without its reply. BDAT is followed as DATA with its final dot, because scripts have the stages of these. */
interface Awaited {
  readonly at: Duration
  readonly line: string
}

const isChunk = ({ line }: Awaited): boolean => /^BDAT /i.test(line)

class ReplayedSession {
  /** Time of the heading. */
  readonly #begun: Duration
  readonly #observe: (observation: Observation) => void
  readonly #masks = new Masks(true)
  #tap: SessionTap | null = null
  #now: Duration = 0
  #awaited: Awaited[] = []
  /** Lines of the reply that is not complete. */
  #reply: SessionLine[] = []
  #accepted = 0
  #isContent = false
  /** True after lines that are left out, up to a command with which a transaction begins. */
  #isSkipping = false

  constructor(begun: Duration, observe: (observation: Observation) => void) {
    this.#begun = begun
    this.#observe = observe
  }

  follow({ at, speaker, text }: SessionLine): void {
    const line = { at: this.#begun + at, speaker, text }
    this.#now = line.at
    if (speaker === '*') return this.#event(text)
    if (this.#isSkipping && !(speaker === 'C' && /^(?:EHLO|HELO|LHLO|RSET|MAIL)\b/i.test(text))) return undefined
    if (this.#isSkipping) this.#resume()
    return speaker === 'C' ? this.#client(line) : this.#server(line)
  }

  /** Lines are missing here. */
  skip(): void {
    this.end()
    this.#isSkipping = true
  }

  end(): void {
    this.#chunkUnanswered()
    this.#tap?.clientEnded()
    this.#tap = null
  }

  #open(): SessionTap {
    this.end()
    this.#awaited = []
    this.#reply = []
    this.#accepted = 0
    this.#isContent = false
    const ignored = (): void => undefined
    const now = (): Duration => this.#now
    this.#tap = new SessionTap({
      now,
      masks: this.#masks,
      hasTls: true,
      toRelay: ignored,
      toClient: ignored,
      startTls: ignored,
      observe: this.#observe,
    })
    return this.#tap
  }

  /** Goes on in the middle of a session, whose beginning is unknown. */
  #resume(): void {
    this.#isSkipping = false
    const tap = this.#open()
    tap.fromRelay(bytes('220 .'))
    tap.fromClient(bytes('HELO .'))
    tap.fromRelay(bytes('250 .'))
  }

  #client({ at, text }: SessionLine): void {
    const tap = this.#tap
    if (this.#isContent || (CONTENT.test(text) && this.#awaited.some(isChunk))) {
      if (this.#isContent) tap?.fromClient(bytes('.'))
      if (this.#isContent) this.#awaited.push({ at, line: '.' })
      this.#isContent = false
      return
    }
    // A step of a login has the reply of AUTH.
    if (!/^AUTH /i.test(this.#awaited[0]?.line ?? '')) this.#awaited.push({ at, line: text })
    if (!isChunk({ at, line: text })) tap?.fromClient(bytes(CONTENT.test(text) ? 'X' : text))
  }

  #server(line: SessionLine): void {
    this.#reply.push(line)
    const [, code = '', more] = /^(\d{3})([ -]?)/.exec(line.text) ?? []
    if (code !== '' && more === '-') return
    const lines = this.#reply
    this.#reply = []
    // The greeting has no command.
    const awaited = this.#awaited[0]
    if (code !== '334') this.#awaited.shift()
    if (awaited !== undefined && isChunk(awaited)) {
      if (isPositive(Number(code)) && !/ LAST$/i.test(awaited.line)) return
      this.#chunk(awaited)
    }
    this.#answered(awaited?.line ?? '', Number(code))
    for (const { at, text } of lines) {
      this.#now = at
      this.#tap?.fromRelay(bytes(text))
    }
  }

  #answered(line: string, code: number): void {
    if (/^MAIL\b/i.test(line)) this.#accepted = 0
    if (/^RCPT\b/i.test(line) && isPositive(code)) this.#accepted++
    if (/^DATA\b/i.test(line)) this.#isContent = code === 354
  }

  /** Sends the content of a chunk as DATA has it, at the time of the chunk. */
  #chunk({ at }: Awaited): void {
    this.#now = at
    this.#tap?.fromClient(bytes('DATA'))
    if (this.#accepted === 0) return
    this.#tap?.fromRelay(bytes('354 .'))
    this.#tap?.fromClient(bytes('.'))
  }

  /** A chunk that the end of the session leaves without a reply. */
  #chunkUnanswered(): void {
    const [first] = this.#awaited
    const now = this.#now
    if (first !== undefined && isChunk(first)) this.#chunk(first)
    this.#now = now
  }

  #event(text: string): void {
    const [, why] = /^cannot connect: (.*)$/.exec(text) ?? []
    if (why !== undefined) return this.#connected({ connect: connectFault(why) })
    if (/^connected\b/.test(text)) {
      this.#connected(null)
      return void this.#open()
    }
    if (/^the connection .*is used again$/.test(text)) return this.#resume()
    const [, how] = ENDINGS.find(([event]) => event.test(text)) ?? []
    if (how === 'silent') this.end()
    else if (how !== undefined) this.#ended(how)
    else if (text.startsWith('TLSv')) this.#tap?.secured()
    return undefined
  }

  #connected(fault: Observation['fault']): void {
    this.#observe({ stage: 'connect', at: this.#now, sender: null, recipient: null, content: null, fault })
  }

  #ended(how: Drop): void {
    this.#chunkUnanswered()
    this.#tap?.relayEnded(how)
    this.#tap = null
  }
}

const bytes = (line: string): Buffer => Buffer.from(`${line}\r\n`)

function connectFault(why: string): ConnectFault {
  if (/refused/i.test(why)) return 'refused'
  if (/timed out/i.test(why)) return 'timeout'
  return /reset/i.test(why) ? 'reset' : 'unreachable'
}
