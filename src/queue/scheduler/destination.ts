/**
 * One destination in memory: its health, the jobs that wait for it, and the earliest due time of its mail in the store. The
 * destination is passive: the scheduler calls the methods below and acts on their results.
 */
import type { Band } from '../../config/values/mail-classes.ts'
import type { DestinationPolicies } from '../../config/destination-policies.ts'
import type { Settings } from '../../config/destination-settings.ts'
import type { AttemptResult, RecipientOutcome } from '../../delivery/delivery-agent.ts'
import type { DestinationName, MessageId } from '../../mail/message.ts'
import type { DeliveryStatus } from '../../mail/smtp-reply.ts'
import type { DestinationState, UndeliveredAttempts, LastAttempt } from '../../store/destination-status.ts'
import type { LiveProvider } from '../../store/records/provider-state.ts'
import { besideProvider, type Suspension } from '../../store/records/suspension.ts'
import type { DestinationRecord } from '../../store/queue-store.ts'
import { MINUTE, SECOND, type Duration, type QueueTime } from '../../system/clock.ts'
import { AdaptiveRate, type LoweredRate, type RateFacts } from './rate/adaptive-rate.ts'
import {
  freshHealth,
  learned,
  recalled,
  recordOf,
  reopened,
  stateOf,
  suspended,
  unsettledLimit,
  windowSize,
  withFreshWindow,
  withProbe,
  type Access,
  type DestinationHealth,
} from './destination-health.ts'
import { DestinationHosts } from './hosts/destination-hosts.ts'
import type { Job } from './turns/job-queue.ts'
import type { Provider } from './provider.ts'
import { DestinationMail } from './turns/destination-mail.ts'
import type { Flow } from './turns/flow.ts'
import { countedAttempts } from './undelivered-attempts.ts'

/** A destination in the memory of the scheduler, as `status` of Destination returns it. */
export interface LiveDestination {
  readonly destination: DestinationName
  readonly state: DestinationState
  /** Null when the destination has no provider. */
  readonly provider: LiveProvider | null
  /** Maximum number of concurrent deliveries. */
  readonly window: number
  /** Deliveries per minute that may start: the lower of the configured and the adaptive rate; null without a limit. */
  readonly messageRate: number | null
  readonly inFlight: number
  /** Messages of the deliveries in flight. */
  readonly inTransfer: readonly MessageId[]
  /** Addresses (IP) for whose greeting it waits, because their share of the delivery slots is taken. */
  readonly awaited: readonly string[]
  /** True while the probe of a dead destination is made, by itself or by another destination of its host. */
  readonly isProbed: boolean
  /** Number of recipients in the active queue that wait for a delivery slot. */
  readonly waiting: number
  /** Number of the others there, which are in transfer: they have a slot, or their outcome is not durable. Absent in the answer of an earlier version. */
  readonly transferring?: number | undefined
  readonly nextDueAt: QueueTime | null
  readonly deadUntil: QueueTime | null
  readonly probeInterval: Duration | null
  /** Null when neither the destination nor its provider is suspended. That of the destination comes first. */
  readonly suspension: Suspension | null
  /** The failure of the site as a whole, until it answers again; null when there was none. */
  readonly siteStatus: DeliveryStatus | null
  /** Absent before the first attempt. */
  readonly lastAttempt?: LastAttempt | undefined
  /** Absent after a delivery, and before the first attempt. */
  readonly undelivered?: UndeliveredAttempts | undefined
}

export class Destination {
  readonly name: DestinationName
  /** Transport named in the destination; `smtp` when the name has none. */
  readonly transport: string
  readonly #policies: () => DestinationPolicies
  readonly #provider: () => Provider | null
  /** The hosts for which it waits. */
  readonly hosts = new DestinationHosts<Destination>(this)
  readonly mail: DestinationMail<Destination>
  readonly #rate = new AdaptiveRate()
  #health: DestinationHealth
  /** Number of deliveries started so far; the serial number of the last one. */
  #begun = 0
  /** Time when the last delivery ended, on the monotonic clock. */
  #lastEndedAt: Duration | null = null
  /** Time when it last accepted mail, on the monotonic clock. */
  #acceptedAt: Duration | null = null
  #undelivered: UndeliveredAttempts | undefined
  #lastAttempt: LastAttempt | undefined
  #claiming = false
  /** Number of rate delays in progress. */
  #delays = 0
  /** Number of commits in progress for the destination: new mail with a lease, mail given back, saved state. */
  #commits = 0
  /** Number of deliveries that have ended, and whose outcomes are not durable. */
  #settling = 0
  /** Number of recipients of deliveries that have begun, and whose outcomes are not durable. */
  #transferring = 0
  #released = false

  constructor(name: DestinationName, policies: () => DestinationPolicies, provider: () => Provider | null = () => null) {
    this.name = name
    this.transport = /^(?:smtp|lmtp|discard|error)(?=:)/.exec(name)?.[0] ?? 'smtp'
    this.#policies = policies
    this.#provider = provider
    this.mail = new DestinationMail<Destination>(this, policies)
    this.#health = freshHealth(this.settings)
  }

  /** Parameters as of the last reload. */
  get settings(): Settings {
    return this.#policies().for(this.name).settings
  }

  /** The provider whose limits it shares; null for none. */
  get provider(): Provider | null {
    return this.#provider()
  }

  /** Whether mail is attempted, without regard to the provider. */
  get ownAccess(): Access {
    return this.#health.access
  }

  /** Whether mail is attempted. A suspension of the provider comes before the state of the destination itself. */
  get access(): Access {
    const { access } = this.#health
    const suspension = access.kind === 'suspended' ? null : (this.provider?.suspension ?? null)
    return suspension === null ? access : { kind: 'suspended', suspension }
  }

  /** Why no mail is attempted; null when some may be. Its own suspension comes first, with that of its provider beside it. */
  get suspension(): Suspension | null {
    const { access, ownAccess, provider } = this
    if (access.kind !== 'suspended') return null
    return ownAccess.kind === 'suspended' && provider !== null
      ? besideProvider(access.suspension, provider.name, provider.suspension)
      : access.suspension
  }

  /** Maximum number of concurrent deliveries. */
  get window(): number {
    return windowSize(this.#health, this.settings)
  }

  /** Number of deliveries in progress. */
  get inFlight(): number {
    return this.mail.inFlight
  }

  /** True when no job waits or is in delivery. */
  get isIdle(): boolean {
    return this.inFlight === 0 && this.mail.waitingJobs === 0
  }

  /** True when deliveries follow each other closely enough at `now` to share a connection (Postfix smtp_connection_cache_on_demand). */
  keepsConnection(now: Duration): boolean {
    if (this.inFlight > 1 || this.mail.waitingJobs > 0) return true
    return this.#lastEndedAt !== null && now - this.#lastEndedAt <= SECOND
  }

  /** True while a claim waits for the answer of the store. */
  get claiming(): boolean {
    return this.#claiming
  }

  /** True while a commit for the destination is in progress. */
  get isCommitting(): boolean {
    return this.#commits > 0
  }

  /** True when nothing of the destination is in progress. */
  get isSettled(): boolean {
    return this.isIdle && !this.#claiming && !this.isCommitting && this.#settling === 0
  }

  /** True when the destination was given to another node. */
  get isReleased(): boolean {
    return this.#released
  }

  /** True when the next job of the flow may be delivered now. */
  isReadyFor({ jobs, band }: Flow<Destination>): boolean {
    if (jobs.size === 0 || this.#released || this.#delays > 0 || this.access.kind === 'suspended') return false
    if (this.hosts.waitsFor.length > 0 || this.#settling >= unsettledLimit(this.settings, this.window)) return false
    return this.access.kind === 'dead' ? this.access.probing && this.inFlight === 0 : this.mail.fits(band, this.window)
  }

  /** Time of the next claim. Null while no mail waits in the store or none may be attempted. */
  get wakesAt(): QueueTime | null {
    const { nextClaimAt } = this.mail
    if (nextClaimAt === null || this.#claiming || this.access.kind === 'suspended' || this.hosts.waitsFor.length > 0) return null
    if (this.access.kind === 'dead')
      return this.access.probing || this.hosts.isProbedByOther ? null : Math.max(this.access.until, nextClaimAt)
    return nextClaimAt
  }

  /** True while the destination is open or its probe is due. Mail at the end of its lifetime then waits for a last attempt. */
  mayBeTriedSoon(now: QueueTime): boolean {
    if (this.access.kind === 'open') return true
    return this.access.kind === 'dead' && (this.access.probing || this.access.until <= now)
  }

  // --- claims and commits

  beginCommit(): void {
    this.#commits++
  }

  endCommit(): void {
    this.#commits--
  }

  /** Marks the start of a claim. Due times that are reported meanwhile are kept, and the answer sets those of the claimed bands. */
  beginClaim(bands: readonly Band[]): void {
    this.mail.claiming(bands)
    this.#claiming = true
    this.probing(true)
  }

  endClaim(): void {
    this.#claiming = false
  }

  // --- deliveries

  /** Starts a delivery at `now` on the monotonic clock and returns its serial number. */
  begin(job: Job, now: Duration): number {
    this.refresh(now)
    this.mail.begin(job)
    this.#transferring += job.request.recipients.length
    return ++this.#begun
  }

  /** Ends a delivery whose outcome is written. */
  end(job: Job, now: Duration): void {
    this.mail.end(job)
    this.#lastEndedAt = now
  }

  /** Called when the outcome of a delivery is durable. */
  finished({ request }: Job): void {
    this.#transferring -= request.recipients.length
  }

  /** Called for a delivery that ends before its outcome is durable. */
  beginSettling(): void {
    this.#settling++
  }

  endSettling(): void {
    this.#settling--
  }

  /** Updates the health after the delivery `begunAs`, which `inFlight` still counts. Returns the change of access, if any. */
  learn(
    result: Pick<AttemptResult, 'feedback' | 'congestion' | 'siteStatus'>,
    begunAs: number,
    now: QueueTime,
  ): 'died' | 'revived' | 'same' {
    const before = this.#health.access
    const { settings, isAlone: alone } = this
    this.#become(learned(this.#health, result, { settings, now, alone, inFlight: this.inFlight, begunAs, latestBegun: this.#begun }))
    if (this.#health.access === before) return 'same'
    return this.#health.access.kind === 'dead' ? 'died' : 'revived'
  }

  /** True when the delivery in flight is all its mail that is known. */
  get isAlone(): boolean {
    const isOnly = this.inFlight === 1 && this.mail.waitingJobs === 0 && this.#settling === 0
    return isOnly && this.mail.nextDueAt === null && !this.#claiming
  }

  #become(health: DestinationHealth): void {
    this.#health = health
    if (health.access.kind !== 'dead') this.hosts.unshare()
  }

  /** Changes its health, because of a delivery to another destination. Returns false when that changes nothing. */
  change(next: (health: DestinationHealth, settings: Settings) => DestinationHealth): boolean {
    const before = this.#health
    this.#become(next(before, this.settings))
    return this.#health !== before
  }

  /** Counts the outcomes of an attempt at `now`. */
  attempted(outcomes: readonly RecipientOutcome[], now: QueueTime): void {
    this.#undelivered = countedAttempts(this.#undelivered, outcomes, now)
    const last = outcomes.at(-1)
    if (last !== undefined) this.#lastAttempt = { at: now, status: last.status }
  }

  /** True when an attempt was made since the last delivery. */
  get hasUndelivered(): boolean {
    return this.#undelivered !== undefined
  }

  /** Records that it accepted mail at `now`, on the monotonic clock. */
  accepted(now: Duration): void {
    this.#acceptedAt = now
  }

  /** True when it accepted mail in the last minute, or in the time of four deliveries at a lower rate. */
  acceptsMail(now: Duration): boolean {
    const pause = Math.max(this.delayAfterBegin(now), this.provider?.delayAfterBegin(now) ?? 0)
    return this.#acceptedAt !== null && now - this.#acceptedAt <= Math.max(MINUTE, 4 * pause)
  }

  /** Updates its own adaptive rate after a delivery. Returns the lower rate, undefined when it is not lowered. */
  learnRate(facts: Omit<RateFacts, 'others'>): LoweredRate | undefined {
    if (this.settings.destination_adaptive_rate) return this.#rate.learn({ ...facts, others: this.inFlight - 1 })
    this.#rate.forget()
    return undefined
  }

  forgetRate(): void {
    this.#rate.forget()
  }

  /** Resets the window when no delivery is in progress and none has ended for `minimal_backoff_time`. */
  refresh(now: Duration): void {
    if (this.#health.access.kind === 'dead' || this.inFlight > 0 || this.#lastEndedAt === null) return
    if (now - this.#lastEndedAt < this.settings.minimal_backoff_time) return
    this.#become(withFreshWindow(this.#health, this.settings))
    this.#lastEndedAt = null
  }

  /** Records whether a probe is claimed or in delivery. */
  probing(underWay: boolean): void {
    this.#become(withProbe(this.#health, underWay))
    this.hosts.probing(underWay)
  }

  // --- rate delays

  #adaptiveRate(now: Duration): number | null {
    return this.settings.destination_adaptive_rate ? this.#rate.at(now) : null
  }

  /** Deliveries per minute that may start at `now`: the lower of `destination_message_rate_limit` and the adaptive rate; null without either. */
  messageRate(now: Duration): number | null {
    const { destination_message_rate_limit: limit } = this.settings
    const adaptive = this.#adaptiveRate(now)
    if (limit === 0) return adaptive
    return adaptive === null ? limit : Math.min(limit, adaptive)
  }

  /** Delay in ms between a start of a delivery at `now` and the next delivery. */
  delayAfterBegin(now: Duration): Duration {
    const rate = this.messageRate(now)
    return rate === null ? 0 : MINUTE / rate
  }

  /** Delay in ms between the end of a delivery at `now` and the next delivery: `destination_rate_delay`, and what the adaptive rate demands. */
  delayAfterEnd(now: Duration): Duration {
    const { destination_rate_delay: delay, destination_adaptive_rate: learns } = this.settings
    return learns ? Math.max(delay, this.#rate.pauseAfterMail(now)) : delay
  }

  beginDelay(): void {
    this.#delays++
  }

  endDelay(): void {
    this.#delays--
  }

  // --- operators, and what survives a restart

  /** Ends all claims and deliveries here, because another node is to schedule the destination. */
  release(): void {
    this.#released = true
    this.hosts.leave()
  }

  suspend(suspension: Suspension): void {
    this.#become(suspended(this.#health, suspension))
  }

  /** Opens the destination by order of an operator, without an adaptive rate. */
  reopen(): void {
    this.#rate.forget()
    this.#become(reopened(this.#health, this.settings))
  }

  recall(record: DestinationRecord): void {
    this.#become(recalled(this.#health, record, this.settings))
  }

  /** Goes on from the state of `former`, which has left memory. */
  continue(former: Destination): void {
    this.recall(former.record())
    this.#undelivered = former.#undelivered
    this.#lastAttempt = former.#lastAttempt
  }

  record(): DestinationRecord {
    return recordOf(this.name, this.#health)
  }

  /** True when the destination has no state that must be kept. */
  get forgettable(): boolean {
    return this.#health.access.kind === 'open' && this.isSettled && this.mail.nextDueAt === null && this.#lastEndedAt === null
  }

  /** State at `now` on the monotonic clock. */
  status(now: Duration): LiveDestination {
    const { siteStatus } = this.#health
    const { access, provider } = this
    const isDelayed = this.#delays > 0 || this.#adaptiveRate(now) !== null || provider?.isThrottled(now) === true
    const rates = [this.messageRate(now), provider?.messageRate(now) ?? null].filter((rate) => rate !== null)
    return {
      destination: this.name,
      state: stateOf({ ...this.#health, access }, this.settings, isDelayed),
      provider: provider?.status(now) ?? null,
      window: this.window,
      messageRate: rates.length === 0 ? null : Math.min(...rates),
      inFlight: this.inFlight,
      inTransfer: [...this.mail.inTransfer],
      awaited: this.hosts.waitsFor,
      isProbed: access.kind === 'dead' && (access.probing || this.hosts.isProbedByOther),
      waiting: this.mail.waitingRecipients,
      transferring: this.#transferring,
      nextDueAt: this.mail.nextDueAt,
      deadUntil: access.kind === 'dead' ? access.until : null,
      probeInterval: access.kind === 'dead' ? access.interval : null,
      suspension: this.suspension,
      siteStatus,
      lastAttempt: this.#lastAttempt,
      undelivered: this.#undelivered,
    }
  }
}
