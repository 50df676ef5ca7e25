/** State of a running relay for commands, the page and the API: counts of the queue, rates, destinations, and what needs attention. */
import type { MailerDaemon } from '../bounce/mailer-daemon.ts'
import { HOUR, type Clock, type Duration, type QueueTime } from '../system/clock.ts'
import type { DestinationName } from '../mail/message.ts'
import type { AccessTokens } from '../oauth/access-tokens.ts'
import type { AttentionFacts } from '../queue/attention.ts'
import { COUNTED, LARGEST, type LiveStatus } from '../queue/queue-status.ts'
import { scheduleStates, type Schedules } from '../queue/schedule-state.ts'
import type { FullQuota } from '../queue/intake/quota-reports.ts'
import type { QueueLimits } from '../queue/intake/queue-limits.ts'
import type { LiveDestinations } from '../queue/scheduler/live-destinations.ts'
import type { Suppressions } from '../suppression/suppressions.ts'
import type { QueueReader } from '../store/queue-reader.ts'
import type { QueueStore } from '../store/queue-store.ts'
import { completeTally } from '../store/counts/queue-tally.ts'
import { VERSION } from '../system/version.ts'
import { onEvents, type Events } from '../telemetry/events.ts'
import { LastOutcomes, type RecentAttempts } from '../telemetry/last-outcomes.ts'
import { Meter } from '../telemetry/meter.ts'
import { RecentLog } from '../telemetry/recent-log.ts'

/** Limits of the items that need attention. */
const EXPIRING_WITHIN: Duration = HOUR
const EXPIRING_COUNTED = 1_000
const NOTICES_COUNTED = 20

interface RelayStatusDeps {
  readonly store: QueueStore
  readonly clock: Clock
  readonly events: Events
  readonly destinations: LiveDestinations
  readonly tokens: Pick<AccessTokens, 'states'>
  readonly schedules: () => Schedules
  readonly limits: Pick<QueueLimits, 'states'>
  readonly listings: Pick<Suppressions, 'braked' | 'stopped'>
  readonly notices: Pick<MailerDaemon, 'isPending'>
  /** Limits of quotas that are used up. */
  readonly quotas: () => readonly FullQuota[]
  /** The last warnings and errors of the process; those of this relay when absent. */
  readonly log: RecentLog | undefined
}

export class RelayStatus {
  readonly log: RecentLog
  readonly #deps: RelayStatusDeps
  readonly #meter: Meter
  readonly #lastOutcomes = new LastOutcomes()
  /** Reason and begin of a failure of the store to commit; null while the store can commit. */
  #storeUnavailable: { readonly why: string; readonly since: QueueTime } | null = null

  constructor(deps: RelayStatusDeps) {
    const { clock, events } = deps
    this.#deps = deps
    this.log = deps.log ?? ownLog(deps)
    this.#meter = new Meter(clock)
    events.listen(this.#meter.listen)
    events.listen(this.#lastOutcomes.listen)
    events.listen(
      onEvents({
        'store-unavailable': ({ why }) => {
          this.#storeUnavailable ??= { why, since: clock.now() }
        },
        'store-recovered': () => {
          this.#storeUnavailable = null
        },
      }),
    )
  }

  async all(): Promise<LiveStatus> {
    const tally = await this.#tally()
    const recent = largestOf(tally).map((destination) => ({ destination, ...this.#lastOutcomes.of(destination) }))
    return { ...this.#own(), tally, destinations: this.#deps.destinations.all(), recent }
  }

  /** As `all`, with only the destinations with the most waiting mail in the store and in memory, and those that are closed or refuse all mail. */
  async brief(): Promise<LiveStatus> {
    const tally = await this.#tally()
    const names = [...new Set([...largestOf(tally), ...this.#deps.destinations.busiest(LARGEST)])]
    const troubled = this.#deps.destinations.troubled()
    const known = new Set(troubled.map(({ destination }) => destination))
    const others = names.filter((name) => !known.has(name)).flatMap((name) => this.#deps.destinations.status(name) ?? [])
    const destinations = [...others, ...troubled]
    const recent = names.map((destination) => ({ destination, ...this.#lastOutcomes.of(destination) }))
    return { ...this.#own(), tally, destinations, recent }
  }

  #own(): Omit<LiveStatus, 'tally' | 'destinations' | 'recent'> {
    const { destinations, tokens, limits, quotas, listings } = this.#deps
    return {
      version: VERSION,
      rates: this.#meter.rates(),
      deliveries: destinations.slots,
      tokens: tokens.states(),
      limits: limits.states(),
      quotas: quotas(),
      braked: listings.braked,
    }
  }

  recentAttempts(destination: DestinationName): RecentAttempts {
    return this.#lastOutcomes.of(destination)
  }

  /** Drops the last outcomes at the destinations that are `wanted`, whose attempts are counted anew. */
  forgetAttempts(wanted: (destination: DestinationName) => boolean): void {
    this.#lastOutcomes.forget(wanted)
  }

  /** Facts that may need an operator's attention: those of the store and of this process. LiveStatus has those of all nodes. */
  async attention(reader: Pick<QueueReader, 'expiring' | 'records'>): Promise<AttentionFacts> {
    const { clock, store, listings, notices } = this.#deps
    const now = clock.now()
    const notes = this.log.notes(clock.wall.of(now))
    const [tally, expiring, due, schedules, stopped] = await Promise.all([
      this.#tally(),
      reader.expiring(now + EXPIRING_WITHIN, EXPIRING_COUNTED),
      store.messagesWithNoticesDue(0, NOTICES_COUNTED),
      scheduleStates(reader, this.#deps.schedules(), clock),
      listings.stopped(),
    ])
    return {
      storeUnavailable: this.#storeUnavailable,
      schedules,
      stopped,
      now,
      tally,
      expiring: { count: expiring, isAtLeast: expiring === EXPIRING_COUNTED, within: EXPIRING_WITHIN },
      noticesDue: { count: due.filter(({ message }) => !notices.isPending(message.id)).length, isAtLeast: due.length === NOTICES_COUNTED },
      warnings: notes === null ? null : { ...notes, since: clock.wall.queueTime(notes.since) },
    }
  }

  #tally(): Promise<LiveStatus['tally']> {
    return completeTally(() => this.#deps.store.tally(COUNTED))
  }
}

const largestOf = ({ waiting }: LiveStatus['tally']): readonly DestinationName[] =>
  waiting.slice(0, LARGEST).map(({ destination }) => destination)

function ownLog({ events, clock }: Pick<RelayStatusDeps, 'events' | 'clock'>): RecentLog {
  const log = new RecentLog(clock.wall.now())
  events.listen(log.listen)
  return log
}
