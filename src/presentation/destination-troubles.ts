/**
 * Destinations that need an operator's attention, with those that are closed for the same reason at the same host as one entry. Pure.
 */
import { causeOf, shownCause } from '../mail/failure-cause.ts'
import type { DestinationName } from '../mail/message.ts'
import { hostOf, type DeliveryStatus } from '../mail/smtp-reply.ts'
import { attemptsText, healthOf, probeText, probeTime, reasonOf, siteReason, suspensionText } from './destination-state.ts'
import { grouped, plural } from './text.ts'
import { hintOf } from '../mail/login-refusal.ts'
import { waitingNow } from '../store/destination-status.ts'
import type { Suspension } from '../store/records/suspension.ts'
import type { QueueTime } from '../system/clock.ts'
import type { QueueStatus, StatusDestination } from '../queue/queue-status.ts'

/** Destinations of one kind with the same reason. */
interface DestinationTrouble {
  readonly kind: 'dead' | 'suspended' | 'refusing' | 'throttled'
  /** Those with the most waiting recipients first; at least one. */
  readonly destinations: readonly DestinationName[]
  /** Recipients that wait for them, without those of scheduled mail. */
  readonly waiting: number
  /** Last failure at the first of them; null when none is known. */
  readonly status: DeliveryStatus | null
  /** Null unless the kind is `suspended`. */
  readonly suspension: Suspension | null
  /** Time of the earliest probe; null unless the kind is `dead`. */
  readonly probeAt: QueueTime | null
  /** True while one of them is probed. */
  readonly isProbed: boolean
  /** Attempts since the last delivery, and their begin; null unless the kind is `refusing`. */
  readonly attempts: { readonly count: number; readonly since: QueueTime } | null
  /** The most frequent cause of its last failed attempts; null unless the kind is `throttled`, and without failures. */
  readonly cause: string | null
}

/** False while only scheduled mail waits. */
const hasMailNow = (one: StatusDestination): boolean => one.waiting === 0 || waitingNow(one) > 0

export type Troubled = Pick<QueueStatus, 'closed' | 'refusing' | 'throttled'>

/** One entry for each reason, those with the most waiting recipients first. */
export function troublesOf({ closed, refusing, throttled }: Troubled): readonly DestinationTrouble[] {
  const all = [
    ...closed.map((one) => ({ one, kind: healthOf(one).state === 'suspended' ? ('suspended' as const) : ('dead' as const) })),
    ...refusing.filter(hasMailNow).map((one) => ({ one, kind: 'refusing' as const })),
    ...throttled.map((one) => ({ one, kind: 'throttled' as const })),
  ]
  const groups = Map.groupBy(
    all.toSorted((a, b) => waitingNow(b.one) - waitingNow(a.one)),
    ({ one, kind }) => `${kind} ${kind === 'throttled' ? one.destination : reasonKey(one)}`,
  )
  return [...groups.values()]
    .flatMap((those) => {
      const [first] = those
      return first === undefined
        ? []
        : [
            troubleOf(
              first.kind,
              first.one,
              those.map(({ one }) => one),
            ),
          ]
    })
    .toSorted((a, b) => b.waiting - a.waiting)
}

function troubleOf(kind: DestinationTrouble['kind'], first: StatusDestination, those: readonly StatusDestination[]): DestinationTrouble {
  const probes = those.flatMap((one) => probeTime(one) ?? [])
  const undelivered = those.flatMap(({ live }) => live?.undelivered ?? [])
  return {
    kind,
    destinations: those.map(({ destination }) => destination),
    waiting: those.reduce((sum, one) => sum + waitingNow(one), 0),
    status: kind === 'throttled' ? null : reasonOf(first),
    suspension: kind === 'suspended' ? healthOf(first).suspension : null,
    probeAt: kind === 'dead' && probes.length > 0 ? Math.min(...probes) : null,
    isProbed: those.some(({ live }) => live?.isProbed === true),
    attempts:
      kind !== 'refusing'
        ? null
        : {
            count: undelivered.reduce((sum, { count }) => sum + count, 0),
            since: Math.min(...undelivered.map(({ since }) => since)),
          },
    cause: kind === 'throttled' ? (first.recent?.causes[0]?.cause ?? null) : null,
  }
}

/** The same text for destinations with the same reason at the same host. */
function reasonKey(one: StatusDestination): string {
  const { state, suspension } = healthOf(one)
  if (state === 'suspended' && suspension !== null)
    return JSON.stringify([suspension.by, suspension.until, suspension.reason, suspension.provider])
  const status = reasonOf(one)
  if (status === null) return ''
  return JSON.stringify([status.reply === undefined ? status.stage : causeOf(status), hostOf(status) ?? causeOf(status)])
}

/** `98 destinations`, or the name of the only one. */
const troubledText = ({ destinations }: Pick<DestinationTrouble, 'destinations'>): string =>
  destinations.length === 1 ? (destinations[0] ?? '') : plural(destinations.length, 'destination')

/** `does not answer, mx.example[192.0.2.31]`, or the reply with its host. */
function failureText(status: DeliveryStatus | null, destinations: number): string {
  if (status === null) return 'dead'
  const host = hostOf(status)
  const { reply, stage } = status
  if (reply !== undefined) return host === null ? reply : `${reply}, ${host}`
  const isSilent = stage === 'connect' || stage === 'greeting'
  return isSilent && host !== null ? `${destinations === 1 ? 'does' : 'do'} not answer, ${host}` : siteReason(status)
}

/** `, probed in 5m`, or empty where no probe is planned. */
function nextProbe({ isProbed, probeAt }: DestinationTrouble, now: QueueTime): string {
  if (isProbed) return ', being probed'
  return probeAt === null ? '' : `, ${probeText(probeAt, now)}`
}

function whyText(trouble: DestinationTrouble, now: QueueTime): string {
  const { kind, destinations, status, suspension, attempts, cause } = trouble
  switch (kind) {
    case 'suspended':
      return suspension === null ? 'suspended' : suspensionText(suspension, now)
    case 'refusing':
      return `${attempts === null ? 'no delivery' : attemptsText(attempts.count, attempts.since, now)}: ${failureText(status, destinations.length)}`
    case 'throttled':
      return `throttled${cause === null ? '' : `: ${shownCause(cause)}`}`
    case 'dead':
      return `${failureText(status, destinations.length)}${destinations.length === 1 ? nextProbe(trouble, now) : ''}`
  }
}

/** The end of `troubleText`. */
export const waitingText = (waiting: number): string => ` — ${grouped(waiting)} waiting`

/** `98 destinations: do not answer, mx.example[192.0.2.31] — 2,842 waiting`. */
export const troubleText = (trouble: DestinationTrouble, now: QueueTime): string =>
  `${troubledText(trouble)}: ${whyText(trouble, now)}${waitingText(trouble.waiting)}`

/** Advice for operators about the failure; null where there is none. */
export const troubleHint = ({ kind, status }: DestinationTrouble): string | null =>
  kind === 'suspended' || kind === 'throttled' ? null : hintOf(status)
