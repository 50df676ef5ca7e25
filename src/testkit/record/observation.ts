/** Observations of a recorded session: one for each occasion on which a rule could act, with the keys of the rule that would do the same. */
import type { Duration } from '../../system/clock.ts'
import { DEFAULT_REPLIES, EXTENSIONS } from '../remote/default-replies.ts'
import type { ConnectFault, Drop, FaultStage, SpokenStage } from '../remote/rule.ts'

/** Waits that are shorter are dropped: they are those of the network. */
export const LEAST_DELAY: Duration = 1_000

/** Keys of a rule, with times in milliseconds. */
export interface Fault {
  readonly connect?: ConnectFault
  readonly reply?: string
  /** One character for each byte. */
  readonly raw?: string
  readonly drop?: Drop
  readonly stall?: true
  readonly delay?: Duration
  readonly drip?: Duration
  readonly split?: number
  readonly gap?: Duration
  readonly repeat?: number
  readonly extensions?: readonly string[]
  /** Time without a command, at the stage `idle`. */
  readonly after?: Duration
}

export interface Observation {
  readonly stage: FaultStage
  /** Time of the command, on the monotonic clock. */
  readonly at: Duration
  /** Reverse-path, as the file has it; null before MAIL. */
  readonly sender: string | null
  /** Forward-path of RCPT, or the first accepted one after it, as the file has it; null before RCPT. */
  readonly recipient: string | null
  /** Null for the default reply of a remote server. */
  readonly fault: Fault | null
  /** Size and names of header fields of the content. */
  readonly content: string | null
}

/** Bytes of the relay, with the time of their arrival. */
export interface Piece {
  readonly at: Duration
  readonly bytes: Buffer
}

/** Bytes of the relay after one command. */
export interface Exchange {
  readonly stage: SpokenStage
  readonly asked: Duration
  readonly pieces: readonly Piece[]
  /** End of the connection, or that the client gave up; null when it went on. */
  readonly ending: Drop | 'silent' | null
}

const firstLine = (lines: readonly string[]): string => lines[0] ?? ''

/** Replies of a remote server without rules, of which only the code counts: clients decide by it (RFC 5321 §4.2). */
const USUAL: Readonly<Partial<Record<SpokenStage, string>>> = {
  greeting: firstLine(DEFAULT_REPLIES.greeting('')),
  ehlo: firstLine(DEFAULT_REPLIES.ehlo('', [])),
  helo: firstLine(DEFAULT_REPLIES.helo('')),
  starttls: firstLine(DEFAULT_REPLIES.starttls),
  auth: firstLine(DEFAULT_REPLIES.auth),
  mail: firstLine(DEFAULT_REPLIES.mail),
  rcpt: firstLine(DEFAULT_REPLIES.rcpt),
  data: firstLine(DEFAULT_REPLIES.data),
  'end-of-data': firstLine(DEFAULT_REPLIES.endOfData(1)),
  rset: firstLine(DEFAULT_REPLIES.rset),
  quit: firstLine(DEFAULT_REPLIES.quit),
}

/** A complete reply (RFC 5321 §4.2.1) at the beginning of a text. */
export const REPLY = /^(?:\d{3}-[^\r\n]*\r\n)*\d{3}(?: [^\r\n]*)?\r\n/

/** The beginning of a reply. */
export const REPLY_BEGUN = /^(?:\d{3}-[^\r\n]*\r\n)*(?:\d{0,3}|\d{3}[ -][^\r\n]*)\r?$/

/** Replies that the key `reply` takes: all lines have one code. */
const IN_SCRIPTS = /^([2-5]\d\d)[^\n]*\n(?:\1[^\n]*\n)*$/

const normalized = (extensions: readonly string[]): string =>
  extensions
    .map((one) => one.toUpperCase())
    .toSorted()
    .join('\n')

const isUsualOffer = (extensions: readonly string[]): boolean => normalized(extensions) === normalized(EXTENSIONS)

/** Rounds to tenths of a second, because the network adds some milliseconds. */
export const rounded = (time: Duration): Duration => Math.round(time / 100) * 100

/** The same reply a number of times; null for any other text. */
function repeated(text: string): { readonly reply: string; readonly repeat: number } | null {
  const reply = REPLY.exec(text)?.[0] ?? ''
  const repeat = reply === '' ? 0 : text.length / reply.length
  return repeat >= 1 && Number.isInteger(repeat) && text === reply.repeat(repeat) && IN_SCRIPTS.test(reply) ? { reply, repeat } : null
}

/** Times at which the bytes arrived. */
function paceOf({ asked, pieces }: Pick<Exchange, 'asked' | 'pieces'>): Fault {
  const [first] = pieces
  const last = pieces.at(-1)
  if (first === undefined || last === undefined || last.at - asked < LEAST_DELAY) return {}
  const gaps = pieces.slice(1).map(({ at }, index) => at - (pieces[index]?.at ?? at))
  const long = gaps.filter((gap) => gap >= LEAST_DELAY)
  const delay = first.at - asked >= LEAST_DELAY ? { delay: rounded(first.at - asked) } : {}
  if (long.length === 0) return { delay: rounded(last.at - asked) }
  if (long.length > 1 && long.length === gaps.length && pieces.every(({ bytes }) => bytes.length === 1))
    return { ...delay, drip: rounded(long.reduce((sum, gap) => sum + gap, 0) / long.length) }
  if (long.length > 1) return { delay: rounded(last.at - asked) }
  const before = pieces.slice(0, gaps.findIndex((gap) => gap >= LEAST_DELAY) + 1)
  return { ...delay, split: before.reduce((sum, { bytes }) => sum + bytes.length, 0), gap: rounded(long[0] ?? 0) }
}

/** Text of the reply as the key `reply` has it. */
const replyKey = (reply: string): string => reply.trimEnd().replaceAll('\r\n', '\n')

/** The keys of a rule that sends these bytes; null for the default reply. `offered` are all extensions that the session has offered. */
export function faultOf(exchange: Exchange, offered: readonly string[]): Fault | null {
  const { stage, pieces, ending } = exchange
  const bytes = Buffer.concat(pieces.map((piece) => piece.bytes))
  const drop = ending === 'fin' || ending === 'rst' ? { drop: ending } : {}
  if (bytes.length === 0) return ending === 'silent' ? { stall: true } : ending === null ? null : drop
  const pace = stage === 'idle' ? { after: rounded((pieces[0]?.at ?? 0) - exchange.asked) } : paceOf(exchange)
  const text = bytes.toString('latin1')
  const isText = Buffer.from(bytes.toString('utf8')).equals(bytes)
  const whole = isText ? repeated(text) : null
  if (whole === null) return { ...pace, raw: text, ...drop }
  const { reply, repeat } = whole
  const isUsual = reply.slice(0, 3) === USUAL[stage]?.slice(0, 3)
  const isOffer = stage === 'ehlo' && isUsual
  const needsText = !isUsual || (!isOffer && (pace.drip !== undefined || pace.split !== undefined || ending !== null))
  // The reply 421 closes the connection.
  const closes = reply.startsWith('421') && ending === 'fin'
  const fault: Fault = {
    ...(needsText ? { reply: replyKey(bytes.subarray(0, reply.length).toString('utf8')) } : {}),
    ...(isOffer && !isUsualOffer(offered) ? { extensions: offered } : {}),
    ...pace,
    ...(repeat > 1 ? { repeat } : {}),
    ...(closes ? {} : drop),
  }
  return Object.keys(fault).length === 0 ? null : fault
}
