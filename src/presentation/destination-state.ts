/** State of a destination and the reason for it, as text. Pure. */
import type { DeliveryStatus } from '../mail/smtp-reply.ts'
import { isRefusing, recordedState, type DestinationState } from '../store/destination-status.ts'
import type { LiveDestination } from '../queue/scheduler/destination.ts'
import type { Suspension } from '../store/records/suspension.ts'
import type { DestinationRecord } from '../store/queue-store.ts'
import type { QueueTime, WallTime } from '../system/clock.ts'
import { grouped, instantOf, relative, span } from './text.ts'

/** A destination: `live` as the running scheduler holds it, and `record` as stored in the queue. */
export interface KnownDestination {
  readonly live: LiveDestination | undefined
  readonly record: DestinationRecord | undefined
}

/** State of a destination and its causes: as in the running scheduler, or as stored when the scheduler does not have the destination. */
export function healthOf({ live, record }: KnownDestination): Omit<DestinationRecord, 'name'> & { readonly state: DestinationState } {
  if (live !== undefined) return live
  const { deadUntil = null, probeInterval = null, suspension = null, siteStatus = null } = record ?? {}
  return { state: recordedState(record), deadUntil, probeInterval, suspension, siteStatus }
}

/** The provider of a destination in JSON. */
interface ShownProvider {
  readonly provider: string | null
  readonly provider_in_flight: number | null
  readonly provider_limit: number | null
}

/** The state of a destination in JSON. */
interface ShownState {
  readonly state: DestinationState
  /** In seconds, as all times here. */
  readonly probe_time: number | null
  readonly probed: boolean
  /** Recipients; absent where it is not known. */
  readonly waiting?: number
  readonly suspended_by: string | null
  readonly suspended_until: number | null
  readonly suspend_reason: string | null
  readonly suspended_with: string | null
  /** Absent in a status. */
  readonly provider?: string | null
  readonly provider_suspended_by?: string | null
  readonly refuses_all: boolean
  readonly undelivered_attempts: number
  readonly undelivered_since: number | null
}

interface ShownSuspension<Time> extends Omit<Suspension, 'until'> {
  readonly until: Time | null
}

/** `by root`, or `with provider google by root`. */
export const suspenderText = ({ by, provider }: Pick<Suspension, 'by' | 'provider'>): string =>
  provider === undefined ? `by ${by}` : `with provider ${provider} by ${by}`

export function suspensionText<Time extends QueueTime | WallTime>(suspension: ShownSuspension<Time>, now: Time): string {
  const { until, reason } = suspension
  // A suspension that ends while no daemon runs stays until the next start.
  const end = until === null ? '' : `, ${until > now ? 'ends' : 'ended'} ${relative(until, now)}`
  return `suspended ${suspenderText(suspension)}${end}${reason === null ? '' : `: ${reason}`}`
}

/** `probed in 5m`, or `probe due since 2m` while no mail is due or no slot is free. */
export const probeText = <Time extends QueueTime | WallTime>(at: Time, now: Time): string =>
  at > now ? `probed ${relative(at, now)}` : `probe due since ${span(now - at)}`

/** `no delivery in 8,000 attempts in 2h`: there may have been more before the daemon took the destination over. */
export const attemptsText = <Time extends QueueTime | WallTime>(count: number, since: Time, now: Time): string =>
  `no delivery in ${grouped(count)} attempts in ${span(now - since)}`

/** Attempts without a delivery, for a destination that refuses all mail; null for another one. */
export const undeliveredText = (
  { refuses_all: refuses, undelivered_attempts: count, undelivered_since: since }: ShownState,
  now: WallTime,
): string | null => (refuses && since !== null ? attemptsText(count, instantOf(since), now) : null)

/** The last attempt, or the failure for which a destination is dead when no attempt is known; null for none. */
export function lastStatusOf(known: KnownDestination): DeliveryStatus | null {
  const { state, siteStatus } = healthOf(known)
  return known.live?.lastAttempt?.status ?? (state === 'dead' ? siteStatus : null)
}

/** The failure for which mail waits: that of the site as a whole, or the last one of a destination that refuses all mail; null for none. */
export function reasonOf(known: KnownDestination): DeliveryStatus | null {
  const { live } = known
  return live?.undelivered !== undefined && isRefusing(live) ? live.undelivered.last : healthOf(known).siteStatus
}

/** `big, 3 of at most 3 in flight at all its destinations`; null without a provider. */
export function providerText({ provider, provider_in_flight: inFlight, provider_limit: limit }: ShownProvider): string | null {
  if (provider === null || inFlight === null) return provider
  return `${provider}, ${inFlight}${limit === null ? '' : ` of at most ${limit}`} in flight at all its destinations`
}

/** Time of the next probe of a dead destination, which is made with mail that is due; null for another destination. */
export function probeTime(known: KnownDestination): QueueTime | null {
  const { state, deadUntil } = healthOf(known)
  return state === 'dead' && deadUntil !== null ? Math.max(deadUntil, known.live?.nextDueAt ?? deadUntil) : null
}

/** Why no further delivery to a destination begins now, or no probe; null when one may begin. */
export function blockedBy({ state, provider, inFlight, window, awaited }: LiveDestination): string | null {
  if (state === 'suspended') return null
  if (awaited.length > 0) return `no greeting of ${awaited.join(' or ')} yet, to which a fifth of the delivery slots connect`
  if (provider !== null && provider.limit !== null && provider.inFlight >= provider.limit)
    return `${provider.inFlight} of at most ${provider.limit} deliveries to provider ${provider.name} are in flight`
  return state !== 'dead' && inFlight >= window ? `${inFlight} of at most ${window} deliveries are in flight` : null
}

/** The suspended provider of a destination that is suspended itself; null for another one. */
export const alsoSuspendedWith = ({
  suspended_with: suspendedWith,
  provider = null,
  provider_suspended_by: by = null,
}: Pick<ShownState, 'suspended_with' | 'provider' | 'provider_suspended_by'>): string | null =>
  suspendedWith === null && by !== null ? provider : null

interface Resumption {
  /** `the destination`, or `it`. */
  readonly itself: string
  /** The provider with which it is suspended, and not itself. */
  readonly with: string | null
  /** The suspended provider of a destination that is suspended itself. */
  readonly alsoWith: string | null
}

/** `the destination is resumed`: the end of a suspension. That of a provider ends with the provider only. */
export function resumedText({ itself, with: provider, alsoWith }: Resumption): string {
  if (provider !== null) return `the provider ${provider} is resumed`
  return alsoWith === null ? `${itself} is resumed` : `${itself} and the provider ${alsoWith} are both resumed`
}

/** The suspension of the provider of a destination that is suspended itself; empty without one. */
function alsoSuspendedText(shown: ShownState): string {
  const provider = alsoSuspendedWith(shown)
  return provider === null ? '' : `; also ${suspenderText({ by: shown.provider_suspended_by ?? 'an operator', provider })}`
}

/** `open`, `throttled`, `suspended by root, ends in 2h: maintenance`, `dead, probed in 5m`, or `dead, probe due since 9m` for one that has not begun. */
export function stateText(shown: ShownState, now: WallTime): string {
  const { state, probe_time: probeAt, probed, suspended_by: by, suspended_until: until, suspend_reason: reason } = shown
  if (by !== null) {
    const suspension = { by, until: until === null ? null : instantOf(until), reason, provider: shown.suspended_with ?? undefined }
    return `${suspensionText(suspension, now)}${alsoSuspendedText(shown)}`
  }
  if (probed) return 'dead, being probed'
  if (probeAt === null) {
    const undelivered = undeliveredText(shown, now)
    return undelivered === null ? state : `${state}, ${undelivered}`
  }
  // A probe is an attempt of a recipient that waits.
  if (shown.waiting === 0 && instantOf(probeAt) <= now) return 'dead, no mail waits'
  return `dead, ${probeText(instantOf(probeAt), now)}`
}

/** `at most 9.6 a minute`, of a message rate; null without a limit. */
export const rateFact = (messageRate: number | null): string | null =>
  messageRate === null ? null : `at most ${grouped(Number(messageRate.toFixed(1)))} a minute`

/** `, at most 50 a minute`, empty without a limit of the message rate. */
export const rateText = (messageRate: number | null): string => (messageRate === null ? '' : `, ${rateFact(messageRate)}`)

/** Why a destination is dead, by the stage of the failure that closed it: a look-up that fails says nothing about its servers. */
export const deathText = (stage: string | null): string =>
  stage === 'dns' ? 'the look-up of its servers fails' : 'its servers do not accept connections or mail'

/**
 * Reason for the state of a destination: the host's own reply or, without one, the reason of the failure. `does not answer`
 * precedes the reason of a failure to connect or to get a greeting.
 */
export function siteReason({ reply, reason, stage }: DeliveryStatus): string {
  if (reply !== undefined) return reply
  return stage === 'connect' || stage === 'greeting' ? `${SILENT}${reason}` : reason
}

const SILENT = 'does not answer: '

/** The reply, or the reason of the failure, in the text of `siteReason`. */
export const failureIn = (text: string): string => (text.startsWith(SILENT) ? text.slice(SILENT.length) : text)
