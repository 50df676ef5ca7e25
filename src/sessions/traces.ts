/**
 * Traces: operators who read the lines of the next sessions as they are said. A trace selects sessions by their facts, shows at most 200 lines in
 * a second, and counts those that it drops. Nothing is stored.
 */
import { addressMatcher, patternMatcher } from '../patterns/filter-pattern.ts'
import { formatDuration } from '../system/duration.ts'
import { SECOND, type Clock, type Duration, type Timer } from '../system/clock.ts'
import type { Direction } from './session-lines.ts'
import type { SessionRecorder, SessionWatch } from './session-recorder.ts'

export const MOST_TRACES = 3
/** Lines of a trace that are shown in a second. */
export const LINES_PER_SECOND = 200

/** Patterns with `*`. */
interface TraceFilter {
  readonly direction: Direction
  readonly destination?: string | undefined
  /** Name or address of the other side. */
  readonly peer?: string | undefined
  /** Local address. */
  readonly source?: string | undefined
  readonly sender?: string | undefined
  readonly recipient?: string | undefined
  readonly listener?: string | undefined
}

export interface TraceTerms extends TraceFilter {
  /** Number of sessions. */
  readonly count: number
  readonly for: Duration
}

/** Sessions of one node are traced, where several share a queue. */
interface TracedNode {
  readonly node: string
  readonly others: readonly string[]
  /** The other node that delivers to the destination of the trace; null where the trace has none, or a pattern. */
  readonly deliverer: string | null
}

/** A line of a session, or the number of lines of a second that are not shown. `session` counts the sessions of the trace from 1. */
export type TraceEntry = { readonly session: number; readonly text: string } | { readonly dropped: number }

/** Progress of a trace, in the order of its answer. */
export type TraceProgress = TracedNode | TraceEntry

export interface TraceSummary {
  /** `count`: all sessions have ended; `stopped`: the client has left, or the daemon ends. */
  readonly why: 'count' | 'time' | 'stopped'
  readonly sessions: number
  /** Lines that were not shown. */
  readonly dropped: number
}

interface TraceOutput {
  readonly write: (entry: TraceEntry) => void
  /** True while the reader does not read: lines are dropped then. */
  readonly isBehind: () => boolean
}

interface RunningTrace {
  readonly ended: Promise<TraceSummary>
  stop(): void
}

/** Place of one of the MOST_TRACES, for a trace that starts when its record is in the audit log. */
interface TracePlace {
  start(terms: TraceTerms, output: TraceOutput): RunningTrace
  /** Gives the place back, when the trace does not start. */
  leave(): void
}

/** The terms in one line, for the audit log. */
export function traceWords({ direction, count, for: time, ...filter }: TraceTerms): string {
  const given = Object.entries(filter).flatMap(([name, value]) => (value === undefined ? [] : [`--${name} ${value}`]))
  return [...(direction === 'from' ? ['--smtpd'] : []), ...given, `--count ${count}`, `--for ${formatDuration(time)}`].join(' ')
}

type TraceClock = Pick<Clock, 'monotonic' | 'after'>

const PEER_PARTS = /^(.*)\[([^[\]]*)\](?::\d+)?$/

/** Returns a predicate of sessions. A fact that is not known matches no pattern. */
function sessionMatcher(filter: TraceFilter): (session: Pick<SessionRecorder, 'ends' | 'facts'>) => boolean {
  const plain = (pattern: string | undefined) => (pattern === undefined ? null : patternMatcher(pattern))
  const address = (pattern: string | undefined) => (pattern === undefined ? null : addressMatcher(pattern))
  const [destination, peer, source, listener] = [filter.destination, filter.peer, filter.source, filter.listener].map(plain)
  const [sender, recipient] = [filter.sender, filter.recipient].map(address)
  const fits = (matches: ((text: string) => boolean) | null | undefined, texts: readonly (string | undefined)[]): boolean =>
    matches === null || matches === undefined || texts.some((text) => text !== undefined && matches(text))
  return ({ ends, facts }) => {
    const [, name, ip] = PEER_PARTS.exec(ends.peer) ?? []
    return (
      ends.direction === filter.direction &&
      fits(destination, [facts.destination]) &&
      fits(peer, [ends.peer, name, ip, facts.name]) &&
      fits(source, [facts.source]) &&
      fits(listener, [facts.listener]) &&
      fits(sender, [facts.sender]) &&
      fits(recipient, facts.recipients ?? [])
    )
  }
}

class Trace {
  readonly direction: Direction
  readonly #terms: TraceTerms
  readonly #matches: ReturnType<typeof sessionMatcher>
  readonly #clock: TraceClock
  readonly #output: TraceOutput
  readonly #over: () => void
  readonly #end = Promise.withResolvers<TraceSummary>()
  readonly #sessions = new WeakSet<SessionRecorder>()
  readonly #timer: Timer
  #begun = 0
  #open = 0
  /** Start of the current second, and its lines. */
  #second: Duration
  #lines = 0
  #dropped = 0
  #droppedNow = 0
  #hasEnded = false

  constructor(terms: TraceTerms, clock: TraceClock, calls: { readonly output: TraceOutput; readonly over: () => void }) {
    this.direction = terms.direction
    this.#terms = terms
    this.#matches = sessionMatcher(terms)
    this.#clock = clock
    this.#output = calls.output
    this.#over = calls.over
    this.#second = clock.monotonic()
    this.#timer = clock.after(terms.for, () => this.end('time'))
  }

  get ended(): Promise<TraceSummary> {
    return this.#end.promise
  }

  consider(recorder: SessionRecorder): void {
    if (this.#begun >= this.#terms.count || this.#sessions.has(recorder) || !this.#matches(recorder)) return
    this.#sessions.add(recorder)
    const session = ++this.#begun
    this.#open++
    recorder.listen({
      line: (text) => this.#line(session, text),
      ended: () => {
        this.#open--
        if (this.#open === 0 && this.#begun >= this.#terms.count) this.end('count')
      },
    })
  }

  end(why: TraceSummary['why']): void {
    if (this.#hasEnded) return
    this.#tellDropped()
    this.#hasEnded = true
    this.#timer.cancel()
    this.#over()
    this.#end.resolve({ why, sessions: this.#begun, dropped: this.#dropped })
  }

  #line(session: number, text: string): void {
    if (this.#hasEnded) return
    const now = this.#clock.monotonic()
    if (now - this.#second >= SECOND) {
      this.#tellDropped()
      this.#second = now
      this.#lines = 0
    }
    if (this.#lines++ < LINES_PER_SECOND && !this.#output.isBehind()) return this.#output.write({ session, text })
    this.#dropped++
    this.#droppedNow++
  }

  #tellDropped(): void {
    if (this.#droppedNow === 0) return
    this.#output.write({ dropped: this.#droppedNow })
    this.#droppedNow = 0
  }
}

export class Traces implements SessionWatch {
  readonly #clock: TraceClock
  readonly #active = new Set<Trace>()
  /** Places of traces that have not started. */
  #reserved = 0

  constructor(clock: TraceClock) {
    this.#clock = clock
  }

  wants(direction: Direction): boolean {
    for (const trace of this.#active) if (trace.direction === direction) return true
    return false
  }

  consider(recorder: SessionRecorder): void {
    for (const trace of this.#active) trace.consider(recorder)
  }

  /** Takes the place of a trace. Null when MOST_TRACES run already. */
  reserve(): TracePlace | null {
    if (this.#active.size + this.#reserved >= MOST_TRACES) return null
    this.#reserved++
    return {
      start: (terms, output) => {
        this.#reserved--
        return this.#start(terms, output)
      },
      leave: () => void this.#reserved--,
    }
  }

  #start(terms: TraceTerms, output: TraceOutput): RunningTrace {
    const trace = new Trace(terms, this.#clock, { output, over: () => this.#active.delete(trace) })
    this.#active.add(trace)
    return { ended: trace.ended, stop: () => trace.end('stopped') }
  }

  /** Ends all traces, with the process. */
  close(): void {
    for (const trace of this.#active) trace.end('stopped')
  }
}
