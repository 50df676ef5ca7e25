/** Decides which sessions are recorded: deliveries with session_transcripts, and those in the direction of a trace. */
import type { Clock, Duration } from '../system/clock.ts'
import { SessionRecorder, type SessionFacts } from './session-recorder.ts'
import type { Direction, SessionEnds } from './session-lines.ts'
import { Traces } from './traces.ts'

interface RecordingDeps {
  readonly clock: Pick<Clock, 'now' | 'monotonic' | 'wall' | 'after'>
  /** False with `session_transcripts = "no"`. */
  readonly keepsDeliveries: () => boolean
}

export class SessionRecordings {
  readonly traces: Traces
  readonly #deps: RecordingDeps

  constructor(deps: RecordingDeps) {
    this.#deps = deps
    this.traces = new Traces(deps.clock)
  }

  /** False when the record of a session would have no reader. */
  wants(direction: Direction): boolean {
    return (direction === 'to' && this.#deps.keepsDeliveries()) || this.traces.wants(direction)
  }

  /** Records a session from its beginning, or a reused connection from now, if it is wanted. `openedAt` is on the monotonic clock. */
  begin(ends: SessionEnds, facts: SessionFacts, openedAt?: Duration): SessionRecorder | null {
    if (!this.wants(ends.direction)) return null
    return new SessionRecorder({ clock: this.#deps.clock, watch: this.traces, openedAt }, ends, facts)
  }
}
