/**
 * The text of a recorded SMTP session: a heading, then lines with the milliseconds since the connection began, who speaks (`C` the client, `S` the
 * server, `*` for an event), and what is said. The same text is stored, shown and read again. Pure.
 */
import { isoInstant } from '../mail/mail-date.ts'
import { parseInstant } from '../mail/message-times.ts'
import type { Duration, WallTime } from '../system/clock.ts'
import { shownLine } from './masked-line.ts'

export type Speaker = 'C' | 'S' | '*'

export interface SessionLine {
  /** Since the connection began. */
  readonly at: Duration
  readonly speaker: Speaker
  readonly text: string
}

/** `to` a host, for deliveries; `from` a client, for mail that is received. */
export type Direction = 'to' | 'from'

/** The ends of a session. */
export interface SessionEnds {
  readonly protocol: 'smtp' | 'lmtp'
  /** The other side: `mx.example[192.0.2.1]:25` of a delivery, `unknown[192.0.2.7]:40312` of mail that is received. */
  readonly peer: string
  readonly direction: Direction
}

const WIDTH = 7

/** For example `# deferd session, smtp to mx.example[192.0.2.1]:25, 2026-11-29T03:00:00.000Z`. */
export const headingOf = ({ protocol, peer, direction }: SessionEnds, at: WallTime): string =>
  `# deferd session, ${protocol} ${direction} ${shownLine(peer)}, ${isoInstant(at)}`

/** For example `   1204 S 250 2.0.0 queued`. */
export const lineText = ({ at, speaker, text }: SessionLine): string => `${String(Math.round(at)).padStart(WIDTH)} ${speaker} ${text}`

/** For example `# 12 lines are left out here`, in place of these lines. */
export const leftOutText = (lines: number): string => `# ${lines} lines are left out here`

/** A line of a trace that shows several sessions, for example `2:    1204 S 250 2.0.0 queued`. */
export const tracedText = (session: number, text: string): string => `${session}: ${text}`

/** `session` is its number in a trace; null outside of traces, and for lines that a trace leaves out of any session. */
type ReadLine = { readonly session: number | null } & (
  | { readonly kind: 'heading'; readonly peer: string; readonly at: WallTime }
  | ({ readonly kind: 'line' } & SessionLine)
  | { readonly kind: 'left-out' }
)

const TRACED = /^(?:(\d+): )?(.*)$/
const HEADING = /^# deferd session, (?:smtp|lmtp) (?:to|from) (\S+), (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)$/
const LINE = /^ *(\d+) ([CS*]) (.*)$/
const LEFT_OUT = /^# \d+ lines are left out here$/

/** Reads a line of the text of sessions. Undefined for a line of another form. The time of a heading is 0 for a day that does not exist. */
export function readLine(line: string): ReadLine | undefined {
  const [, number, text = ''] = TRACED.exec(line) ?? []
  const session = number === undefined ? null : Number(number)
  const [, peer = '', instant] = HEADING.exec(text) ?? []
  if (instant !== undefined) return { session, kind: 'heading', peer, at: parseInstant(instant) ?? 0 }
  const [, at, speaker, said = ''] = LINE.exec(text) ?? []
  if (speaker !== undefined) return { session, kind: 'line', at: Number(at), speaker: speaker as Speaker, text: said }
  return LEFT_OUT.test(text) ? { session, kind: 'left-out' } : undefined
}
