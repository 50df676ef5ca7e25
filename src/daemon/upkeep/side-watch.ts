/**
 * Watches whether reader and writer of the store answer, and reports a silent one. A stop ends a silent side, because the daemon would wait
 * for it for ever.
 */
import { SECOND, seconds, type Clock, type Duration } from '../../system/clock.ts'
import { every, type PeriodicTask } from '../../system/periodic-task.ts'
import type { SideName, StoreSide, StoreSides } from '../../store/store-health.ts'
import type { Events } from '../../telemetry/events.ts'

/** A side without an answer for this time is reported. */
const SILENT_FROM: Duration = seconds(10)
/** From this time after the begin of a stop on, silent sides are ended. */
const STOP_LIMIT: Duration = seconds(8.5)

/** In the order of reports. */
const SIDE_NAMES: readonly SideName[] = ['reader', 'writer']

/** A side at the last look. */
export interface Look {
  readonly answered: number
  readonly isWaiting: boolean
  /** In whole seconds: time for which a call has waited while none was answered. */
  readonly silence: number
}

/**
 * The next look at a side, a second after the last one. The event loop reads no answer while it is delayed, so a delay counts as one
 * second.
 */
export function nextLook(last: Look | undefined, { answered, isWaiting }: Pick<StoreSide, 'answered' | 'isWaiting'>): Look {
  const isSilent = isWaiting && last?.isWaiting === true && last.answered === answered
  return { answered, isWaiting, silence: isSilent ? last.silence + 1 : 0 }
}

/** A stop has ended a side of the store that did not answer (EX_SOFTWARE). All acknowledged mail is in the queue. */
export class StoreSilent extends Error {
  override readonly name = 'StoreSilent'
  readonly exitCode = 70
  /** True when a thread could not be ended, because a system call of the thread does not return: the process cannot exit by itself. */
  readonly isStuck: boolean

  constructor(names: readonly SideName[], isStuck: boolean) {
    super(`the ${names.join(' and the ')} of the store did not answer, and had to be ended`)
    this.isStuck = isStuck
  }
}

const CONSEQUENCE: Readonly<Record<SideName, string>> = {
  reader: 'the API, the page and operations wait for it',
  writer: 'mail is neither accepted nor delivered',
}

const LOSS: Readonly<Record<SideName, string>> = { reader: '', writer: '; mail in transfer may be delivered again' }

interface SideWatchDeps {
  readonly clock: Clock
  readonly events: Pick<Events, 'emit'>
  /** Null while no queue is open. */
  readonly sides: () => StoreSides | null
}

export class SideWatch {
  readonly #deps: SideWatchDeps
  readonly #looks = new Map<SideName, Look>()
  #sides: StoreSides | null = null
  /** Sides that a stop has ended; true where the end succeeded. */
  readonly #ended = new Map<SideName, Promise<boolean>>()
  #task: PeriodicTask | null = null

  constructor(deps: SideWatchDeps) {
    this.#deps = deps
  }

  start(): void {
    this.#task = every(this.#deps.clock, SECOND, () => this.#look())
  }

  stop(): void {
    void this.#task?.stop()
  }

  /** Time for which a side has had a call without answering any; 0 for a side that answers. */
  silence(name: SideName): Duration {
    return (this.#looks.get(name)?.silence ?? 0) * SECOND
  }

  /** Throws for a side that does not answer. */
  assertAnswers(name: SideName): void {
    if (this.silence(name) >= SILENT_FROM) throw new Error(silent(name, this.silence(name)))
  }

  /**
   * Waits for the end of a stop. From STOP_LIMIT on, ends silent sides, so that the stop can end. Rejects with StoreSilent when it has
   * ended one.
   */
  async during(stop: Promise<void>): Promise<void> {
    const { clock } = this.#deps
    const endSilent = (): void => {
      for (const name of SIDE_NAMES) if (this.silence(name) > 0) this.#end(name)
      timer = clock.after(SECOND, endSilent)
    }
    let timer = clock.after(STOP_LIMIT, endSilent)
    try {
      await stop
    } finally {
      timer.cancel()
      this.stop()
    }
    if (this.#ended.size === 0) return
    const all = await Promise.all(this.#ended.values())
    throw new StoreSilent([...this.#ended.keys()], all.includes(false))
  }

  #end(name: SideName): void {
    const side = this.#sides?.[name]
    if (side === undefined || this.#ended.has(name)) return
    const text = `${silent(name, this.silence(name))}: it is ended, since the daemon stops${LOSS[name]}`
    this.#deps.events.emit({ kind: 'note', level: 'error', text })
    this.#ended.set(name, side.abandon())
  }

  #look(): void {
    const sides = this.#deps.sides()
    if (sides !== this.#sides) this.#looks.clear()
    this.#sides = sides
    if (sides === null) return
    for (const name of SIDE_NAMES) {
      if (this.#ended.has(name)) continue
      const last = this.#looks.get(name)
      const next = nextLook(last, sides[name])
      this.#looks.set(name, next)
      this.#report(name, last?.silence ?? 0, next.silence)
    }
  }

  /** Reports the begin and the end of a silence. */
  #report(name: SideName, before: number, now: number): void {
    const { events } = this.#deps
    const limit = SILENT_FROM / SECOND
    if (now === limit) events.emit({ kind: 'note', level: 'error', text: `${silent(name, SILENT_FROM)}: ${CONSEQUENCE[name]}` })
    if (before >= limit && now === 0)
      events.emit({ kind: 'note', level: 'info', text: `the ${name} of the store answers again, after ${before} s` })
  }
}

const silent = (name: SideName, silence: Duration): string => `the ${name} of the store has not answered for ${silence / SECOND} s`
