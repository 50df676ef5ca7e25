/**
 * The state of the queue now: rates, queues, the largest destinations, and what needs attention. It is made at most once a second, from
 * memory; parts that are read from the store are read again in the background.
 */
import { attentionOf, type AttentionFacts } from '../queue/attention.ts'
import type { ListedMessage } from '../store/queue-reader.ts'
import { wholeTime } from '../resources/members.ts'
import { attentionJson, statusJson, troublesJson, type NowJson } from '../resources/status-json.ts'
import { jsonLine } from '../presentation/text.ts'
import { queueIdOf } from '../mail/message.ts'
import {
  COUNTED,
  oldestArrival,
  readStored,
  statusOf,
  unconfirmedClosed,
  type LiveStatus,
  type QueueStatus,
  type StoredStatus,
} from '../queue/queue-status.ts'
import type { QueueTally } from '../store/counts/queue-tally.ts'
import { countedAt, waitingOf } from '../store/records/backlog.ts'
import { ANY_MESSAGE } from '../store/message-conditions.ts'
import { HOUR, MINUTE, SECOND, seconds, withTimeout, type Duration } from '../system/clock.ts'
import { every, type PeriodicTask } from '../system/periodic-task.ts'
import { maySee } from './message-query.ts'
import { absentNodes } from './nodes.ts'
import { MessageAges } from './message-ages.ts'
import { asOf, type QueueView, type Visible } from './queue-view.ts'

/** Figures of this age are made again. */
const FIGURES_AGE: Duration = SECOND
/** Up to this age, figures and stored parts are shown when new ones are late. */
const OLDEST_SHOWN: Duration = seconds(10)
/** A stored part of this age is read again. */
const STORED_AGE: Duration = seconds(5)

interface Stored extends StoredStatus, Pick<NowJson, 'oldest' | 'waited' | 'as_of'> {
  readonly attention: AttentionFacts
  /** Time at which the reading began, on the monotonic clock. */
  readonly at: Duration
}

/**
 * A message that is not scheduled and arrived in the second of the oldest arrival, as the tally has it. The first message by id is the
 * oldest, unless mail was requeued: then the queue is searched.
 */
async function oldestOf({ reader }: QueueView, { queues }: QueueTally): Promise<ListedMessage | undefined> {
  const oldest = oldestArrival(queues)
  if (oldest === null) return undefined
  const end = oldest + SECOND
  const [first] = await reader.list(ANY_MESSAGE, { after: 0, limit: 1 })
  if (first !== undefined && first.queue !== 'scheduled' && first.message.arrivedAt < end) return first
  const filter = { ...ANY_MESSAGE, arrivedBefore: end }
  const searched = queues.filter(({ queue, oldestArrival: at }) => queue !== 'scheduled' && at < end)
  const found = await Promise.all(searched.map(({ queue }) => reader.list({ ...filter, queue }, { after: 0, limit: 1 })))
  return found.flat().toSorted((a, b) => a.message.arrivedAt - b.message.arrivedAt)[0]
}

/** The first count of the last hour. The queue is counted once a minute. */
async function waitedEarlier({ reader, clock }: QueueView): Promise<NowJson['waited']> {
  const now = clock.now()
  const [first] = await reader.records.backlogs.of(now - HOUR - MINUTE, now)
  return first === undefined ? null : { time: wholeTime(countedAt(first), clock.wall), recipients: waitingOf(first), hold: first.hold }
}

async function read(view: QueueView): Promise<Stored> {
  const at = view.clock.monotonic()
  const as_of = asOf(view)
  const sources = { reader: view.reader, clock: view.clock, schedules: view.loaded().config.schedule }
  const tally = await view.tally(COUNTED)
  const stored = await readStored(sources, tally)
  const oldest = await oldestOf(view, tally)
  return {
    ...stored,
    at,
    as_of,
    attention: await view.attention(),
    waited: await waitedEarlier(view),
    oldest:
      oldest === undefined
        ? null
        : { queue_id: queueIdOf(oldest.message), arrival_time: wholeTime(oldest.message.arrivedAt, view.clock.wall) },
  }
}

/** The figures for all clients, and the status that they are made of. */
interface Figures {
  readonly now: NowJson
  readonly status: QueueStatus
}

/** State in memory, also of the destinations that were closed when they were read from the store. */
async function liveStatus(view: QueueView, stored: Stored): Promise<LiveStatus> {
  const live = await view.live.brief()
  const unconfirmed = unconfirmedClosed(stored, live)
  return unconfirmed.length === 0 ? live : { ...live, destinations: [...live.destinations, ...(await view.live.named(unconfirmed))] }
}

async function figures(view: QueueView, stored: Stored, counted: MessageAges): Promise<Figures> {
  const live = await liveStatus(view, stored)
  const { tally } = live
  const { config } = view.loaded()
  const { oldest, waited, as_of } = stored
  const attention = [...(await absentNodes(view)), ...attentionJson(attentionOf(stored.attention, live), view.clock.wall)]
  const ages = await counted.value(tally.queues.reduce((sum, { messages }) => sum + messages, 0))
  const status = statusOf({ tally, live, stored, now: view.clock.now() })
  return {
    status,
    now: {
      name: config.myhostname,
      ...statusJson(status, view.clock.wall),
      as_of,
      health: await view.health(),
      oldest,
      waited,
      attention,
      ages,
    },
  }
}

/** Leaves out the destinations that a client may not see. */
function seen({ now, status }: Figures, visible: Visible, { clock }: QueueView): NowJson {
  if (visible === null) return now
  const isShown = ({ destination }: { readonly destination: string }): boolean => maySee(visible, destination)
  return {
    ...now,
    oldest: null,
    subscriptions: [],
    oauth: [],
    schedules: [],
    limits: [],
    quotas: [],
    attention: [],
    ages: null,
    troubles: troublesJson(
      {
        at: status.at,
        closed: status.closed.filter(isShown),
        refusing: status.refusing.filter(isShown),
        throttled: status.throttled.filter(isShown),
      },
      clock.wall,
    ),
    refusing_destinations: now.refusing_destinations.filter(isShown),
    closed_destinations: now.closed_destinations.filter(isShown),
    largest_destinations: now.largest_destinations.filter(isShown),
  }
}

/** A value that is made again after an age, by one call of its maker at a time. */
class Kept<T> {
  readonly #view: QueueView
  readonly #age: Duration
  readonly #make: () => Promise<T>
  #last: { readonly at: Duration; readonly value: Promise<T>; isMade: boolean } | null = null

  constructor(view: QueueView, age: Duration, make: () => Promise<T>) {
    this.#view = view
    this.#age = age
    this.#make = make
  }

  value(): Promise<T> {
    const at = this.#view.clock.monotonic()
    if (this.#last !== null && (!this.#last.isMade || at - this.#last.at < this.#age)) return this.#last.value
    const value = this.#make()
    const last = { at, value, isMade: false }
    this.#last = last
    value.then(
      () => (last.isMade = true),
      // A failed value is made again at the next call.
      () => (this.#last = this.#last === last ? null : this.#last),
    )
    return value
  }
}

type Send = (event: string) => void

/** Serves the figures to all clients. */
export class Now {
  readonly #view: QueueView
  readonly #stored: Kept<Stored>
  readonly #figures: Kept<Figures>
  /** The last stored part that was read; null before the first. */
  #known: Stored | null = null
  /** The last figures; null before the first. */
  #lastFigures: Figures | null = null
  readonly #subscribers = new Map<Send, Visible>()
  /** Runs while there are subscribers. */
  #ticks: PeriodicTask | null = null

  constructor(view: QueueView) {
    this.#view = view
    this.#stored = new Kept(view, STORED_AGE, async () => (this.#known = await read(view)))
    const ages = new MessageAges(view)
    this.#figures = new Kept(view, FIGURES_AGE, async () => (this.#lastFigures = await figures(view, await this.#storedPart(), ages)))
  }

  async value(visible: Visible): Promise<NowJson> {
    return seen(await this.#figures.value(), visible, this.#view)
  }

  /**
   * The figures. When they are not ready within `wait`, such as after a deletion of much mail, the last ones up to OLDEST_SHOWN. Undefined
   * without any, such as after a start, while a large queue is counted for some seconds.
   */
  async within(wait: Duration, visible: Visible, signal: AbortSignal): Promise<NowJson | undefined> {
    const value = await withTimeout(this.value(visible), this.#view.clock, wait, signal)
    if (value !== undefined) return value
    const last = this.#lastFigures
    return last === null || asOf(this.#view) - last.now.time > OLDEST_SHOWN / SECOND ? undefined : seen(last, visible, this.#view)
  }

  /** Sends the figures once a second while there are subscribers. Returns the function that ends the subscription. */
  subscribe(visible: Visible, send: Send): () => void {
    this.#subscribers.set(send, visible)
    this.#ticks ??= every(this.#view.clock, SECOND, () => this.#tick(), { immediate: true })
    return () => {
      this.#subscribers.delete(send)
      if (this.#subscribers.size === 0) this.#endTicks()
    }
  }

  close(): void {
    this.#endTicks()
    this.#subscribers.clear()
  }

  /** The stored part as last read, while it is read again in the background; one that is older than OLDEST_SHOWN is waited for. */
  async #storedPart(): Promise<Stored> {
    const next = this.#stored.value()
    if (this.#known === null || this.#view.clock.monotonic() - this.#known.at > OLDEST_SHOWN) return next
    next.catch(() => undefined)
    return this.#known
  }

  #endTicks(): void {
    void this.#ticks?.stop()
    this.#ticks = null
  }

  /** Sends the same text to all clients that may see the same destinations. */
  async #tick(): Promise<void> {
    const all = await this.#figures.value().catch(() => null)
    if (all === null) return
    const texts = new Map<Visible, string>()
    for (const [send, visible] of this.#subscribers) {
      const text = texts.get(visible) ?? `event: now\ndata: ${jsonLine(seen(all, visible, this.#view))}\n`
      texts.set(visible, text)
      send(text)
    }
  }
}
