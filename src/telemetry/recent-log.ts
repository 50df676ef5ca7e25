/**
 * The last warnings and errors of the log, in memory, for operators. Many new ones push out the oldest; the log itself has them all, and has
 * those of earlier processes.
 */
import type { Level } from '../events/event-kind.ts'
import type { ToldAddresses } from '../mail/told-addresses.ts'
import { parseQueueId } from '../mail/queue-id.ts'
import { patternMatcher } from '../patterns/filter-pattern.ts'
import { HOUR, type Duration, type WallTime } from '../system/clock.ts'
import { KINDS, kindOf, type Listen, type QueueEvent } from './events.ts'
import { postfixLines } from './log-records.ts'

/** Levels of the lines that are kept, from the least severe one. */
export const KEPT_LEVELS = ['warn', 'error', 'fatal'] as const satisfies readonly Level[]
export type KeptLevel = (typeof KEPT_LEVELS)[number]

/** Kinds of events with a line of one of these levels. */
export const KEPT_KINDS: readonly string[] = Object.entries(KINDS).flatMap(([name, kind]) =>
  kind.record !== null && (kind.level !== 'info' || 'levelOf' in kind) ? [name] : [],
)

export const MOST_LINES = 1_000
/** In characters. The rest of a longer line is not kept. */
export const LONGEST_LINE = 2_000
/** Per line. */
const MOST_IDS = 200
const COUNTED: Duration = HOUR

export interface KeptLine {
  /** Number of the line among those of this process. */
  readonly seq: number
  readonly at: WallTime
  readonly level: KeptLevel
  /** Kind of the event. */
  readonly event: string
  readonly program: string
  /** The line in Postfix's format without the word of its level. */
  readonly text: string
  readonly queueIds: readonly string[]
  readonly destination: string | null
}

/** Conditions on lines, all of which must hold; null for any value. */
export interface LogFilter {
  /** The least severe level. */
  readonly level: KeptLevel
  readonly event: string | null
  readonly queueId: string | null
  /** Pattern of a destination that the line is about, or that it names. */
  readonly destination: string | null
  /** Pattern of the text. */
  readonly text: string | null
  readonly after: WallTime | null
  readonly before: WallTime | null
}

type LogPosition = Pick<KeptLine, 'at' | 'seq'>

export interface LogSearch {
  readonly filter: LogFilter
  /** The last line that may be returned; null for no limit. */
  readonly through: LogPosition | null
  readonly limit: number
}

export interface FoundLines {
  /** All warnings and errors since this time are kept. */
  readonly since: WallTime
  /** The last line first. */
  readonly lines: readonly KeptLine[]
  /** Number of lines that match the filter, by level. */
  readonly counts: Readonly<Record<KeptLevel, number>>
}

/** Negative when `a` was logged before `b`. */
export const inOrder = (a: LogPosition, b: LogPosition): number => a.at - b.at || a.seq - b.seq

const keptLevel = (level: Level): KeptLevel | undefined => KEPT_LEVELS.find((one) => one === level)

/** Words of a text without the punctuation around them. */
const wordsOf = (text: string): readonly string[] => text.split(/\s+/).map((word) => word.replace(/^[(<"]+/, '').replace(/[)>",;:.]+$/, ''))

function idsOf(event: QueueEvent, text: string): readonly string[] {
  const listed = event.kind === 'mail-lost' ? event.queueIds : event.kind === 'node-taken-over' ? event.corrupt : []
  const named = wordsOf(text).filter((word) => parseQueueId(word) !== undefined)
  return [...new Set([...listed, ...named])].slice(0, MOST_IDS)
}

const destinationOf = (event: QueueEvent): string | null =>
  event.kind === 'died' ? event.destination : event.kind === 'tls-policy-failed' ? event.domain : null

function predicateOf({ level, event, queueId, destination, text, after, before }: LogFilter): (line: KeptLine) => boolean {
  const least = KEPT_LEVELS.indexOf(level)
  const isNamed = destination === null ? null : patternMatcher(destination)
  const isText = text === null ? null : patternMatcher(text)
  return (line) =>
    KEPT_LEVELS.indexOf(line.level) >= least &&
    (event === null || line.event === event) &&
    (queueId === null || line.queueIds.includes(queueId)) &&
    (after === null || line.at >= after) &&
    (before === null || line.at < before) &&
    (isText === null || isText(line.text)) &&
    (isNamed === null || isNamed(line.destination ?? '') || wordsOf(line.text).some(isNamed))
}

export class RecentLog {
  #lines: KeptLine[] = []
  #seq = 0
  #since: WallTime
  readonly #addresses: ToldAddresses | undefined

  /** `since` is the time of the start. */
  constructor(since: WallTime, addresses?: ToldAddresses) {
    this.#since = since
    this.#addresses = addresses
  }

  readonly listen: Listen = (event, at) => {
    const kind = kindOf(event)
    const level = kind.record === null ? undefined : keptLevel(kind.levelOf?.(event) ?? kind.level)
    if (level === undefined) return
    for (const { program, text: whole } of postfixLines(event, {}, this.#addresses)) {
      const text = whole.replace(/^(?:warning|error|fatal|panic): /, '').slice(0, LONGEST_LINE)
      const [queueIds, destination] = [idsOf(event, text), destinationOf(event)]
      this.#add({ seq: ++this.#seq, at, level, event: event.kind, program, text, queueIds, destination })
    }
  }

  #add(line: KeptLine): void {
    this.#lines.push(line)
    const dropped = this.#lines.length > MOST_LINES ? this.#lines.shift() : undefined
    if (dropped !== undefined) this.#since = Math.max(this.#since, dropped.at + 1)
  }

  find({ filter, through, limit }: LogSearch): FoundLines {
    const found = this.#lines.filter(predicateOf(filter)).toSorted((a, b) => inOrder(b, a))
    const counts = { warn: 0, error: 0, fatal: 0 }
    for (const { level } of found) counts[level]++
    const lines = found.filter((line) => through === null || inOrder(line, through) <= 0).slice(0, limit)
    return { since: this.#since, lines, counts }
  }

  /**
   * Number of notes with a warning or an error in the last hour, the text of the last one, and the time of the first one; null without any.
   * The other events need attention by themselves.
   */
  notes(now: WallTime): { readonly count: number; readonly last: string; readonly since: WallTime } | null {
    const recent = this.#lines.filter(({ event, at }) => event === 'note' && at > now - COUNTED)
    const [first, last] = [recent[0], recent.at(-1)]
    return first === undefined || last === undefined ? null : { count: recent.length, last: last.text, since: first.at }
  }
}
