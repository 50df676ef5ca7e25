/**
 * Messages in the queue by age, in the columns of qshape(1). The whole queue is read, so the counts are made seldom, in the background, and
 * not at all for more than MOST_COUNTED messages.
 */
import type { MessageId } from '../mail/message.ts'
import type { AgesJson } from '../resources/status-json.ts'
import type { QueueReader } from '../store/queue-reader.ts'
import { ANY_MESSAGE } from '../store/message-conditions.ts'
import { MINUTE, seconds, withTimeout, type Duration } from '../system/clock.ts'
import type { QueueView } from './queue-view.ts'

/** Upper limits of the columns, in minutes. The last column has none. */
const LIMITS = [5, 10, 20, 40, 80, 160, 320, 640, 1280] as const
/** Some milliseconds of work. */
const IDS_PER_SLICE = 16_000
/** The counts are made again when both have passed: this time, and a multiple of the time that a count takes. */
const LEAST_INTERVAL: Duration = seconds(30)
const COUNT_TIME_MULTIPLE = 100
/** In messages; above, none are counted. The counts of a million messages would take 2 s of processor time and 70 MB. */
export const MOST_COUNTED = 100_000
/** Counts are shown until this time after the next ones were due: nobody has asked since, or they cannot be made. */
const SHOWN_AFTER_DUE: Duration = seconds(10)
/** Time for which a client waits for counts where there are none to show. */
const FIRST_WITHIN: Duration = 100

type AgesView = Pick<QueueView, 'reader' | 'clock'>

async function countedAges(view: AgesView): Promise<AgesJson> {
  const now = view.clock.now()
  const bounds = LIMITS.map((minutes) => now - minutes * MINUTE)
  const older = LIMITS.map(() => 0)
  let messages = 0
  for (let after: MessageId | null = 0; after !== null;) {
    const page = { after, through: Number.MAX_SAFE_INTEGER, size: IDS_PER_SLICE, queues: null, destinations: false, bounds }
    const slice: Awaited<ReturnType<QueueReader['survey']>> = await view.reader.survey(ANY_MESSAGE, page)
    messages += slice.messages
    for (const [n, count] of slice.arrivedBefore.entries()) older[n] = (older[n] ?? 0) + count
    after = slice.last
  }
  const counts = [messages, ...older].map((atLeast, n) => atLeast - (older[n] ?? 0))
  return { as_of: view.clock.wall.seconds(now), limits: [...LIMITS, null], counts }
}

export class MessageAges {
  readonly #view: AgesView
  #last: AgesJson | null = null
  #running: Promise<AgesJson> | null = null
  #nextAt: Duration = -Infinity
  /** Time at which the last counts are too old to be shown. */
  #staleAt: Duration = -Infinity

  constructor(view: AgesView) {
    this.#view = view
  }

  /** The last counts. Null without recent ones, for which the call waits a moment, and above MOST_COUNTED messages. */
  async value(messages: number): Promise<AgesJson | null> {
    if (messages > MOST_COUNTED) return null
    const { clock } = this.#view
    if (this.#running === null && clock.monotonic() >= this.#nextAt) this.#begin()
    if (this.#recent === null && this.#running !== null) await withTimeout(this.#running, clock, FIRST_WITHIN).catch(() => undefined)
    return this.#recent
  }

  get #recent(): AgesJson | null {
    return this.#view.clock.monotonic() < this.#staleAt ? this.#last : null
  }

  #begin(): void {
    const { clock } = this.#view
    const at = clock.monotonic()
    const ended = (ages: AgesJson | null): void => {
      this.#running = null
      this.#nextAt = clock.monotonic() + Math.max(LEAST_INTERVAL, COUNT_TIME_MULTIPLE * (clock.monotonic() - at))
      if (ages === null) return
      this.#last = ages
      this.#staleAt = this.#nextAt + SHOWN_AFTER_DUE
    }
    this.#running = countedAges(this.#view)
    // The store may be unavailable for a moment: the next count comes after the usual time.
    this.#running.then(ended, () => ended(null))
  }
}
