/** The answer of the screen of a destination in a sentence: for what does its mail wait? Pure. */
import { causeTitle, type CauseJson } from '../../resources/cause-json.ts'
import type { DestinationDetailsJson } from '../../resources/destination-json.ts'
import { causeOf, shownCause } from '../../mail/failure-cause.ts'
import { isClosed } from '../../store/destination-status.ts'
import { alsoSuspendedWith, deathText, failureIn, rateText, resumedText } from '../../presentation/destination-state.ts'
import { ended, grouped, plural, span } from '../../presentation/text.ts'
import { SECOND } from '../../system/clock.ts'
import { parseDuration } from '../../system/duration.ts'
import { clockText, waits, type ZonedNow } from '../markup/times.ts'
import { causeWords } from './cause-words.ts'
import { percentText } from './now-sentence.ts'

export type DestinationState = Pick<
  DestinationDetailsJson,
  | 'state'
  | 'site_stage'
  | 'site_reason'
  | 'waiting'
  | 'scheduled'
  | 'in_flight'
  | 'next_due_time'
  | 'message_rate'
  | 'resume_time'
  | 'suspended_with'
  | 'provider'
  | 'provider_suspended_by'
>
export type WaitingCause = Pick<CauseJson, 'kind' | 'on_hold' | 'cause' | 'recipients'>

/** Number of causes that are named, each of at least this share. */
const MOST_NAMED = 2
const NAMED_SHARE = 0.05

/** `until the destination is resumed` */
const untilResumed = (one: DestinationState): string =>
  `until ${resumedText({ itself: 'the destination', with: one.suspended_with, alsoWith: alsoSuspendedWith(one) })}`

/** `until the destination is resumed at 21:10` */
const untilResumedAt = (one: DestinationState, at: ZonedNow): string =>
  `${untilResumed(one)}${one.resume_time === null ? '' : ` at ${clockText(at, one.resume_time)}`}`

/** Recipients that wait, and of them those of scheduled mail, which were counted a moment later. */
const countedIn = ({ waiting, scheduled }: DestinationState) => ({ waiting, later: Math.min(scheduled, waiting) })

function idle(one: DestinationState): string {
  const { state, in_flight: flight } = one
  if (flight > 0) return `${plural(flight, 'delivery', 'deliveries')} ${flight === 1 ? 'runs' : 'run'}; no other mail waits.`
  if (state === 'suspended') return `No mail waits; new mail waits ${untilResumed(one)}.`
  if (state === 'dead') return `No mail waits; ${deathText(one.site_stage)}.`
  return 'No mail waits for it.'
}

interface Named {
  readonly words: string
  readonly recipients: number
}

/** The causes of failed attempts in words, the largest first. Causes that differ only in what the words leave out are one. */
function namedCauses(causes: readonly WaitingCause[]): readonly Named[] {
  const failed = causes.filter(({ kind, on_hold: isHeld }) => kind !== 'untried' && !isHeld)
  return [...Map.groupBy(failed, (one) => causeWords(causeTitle(one)))]
    .map(([words, same]) => ({ words, recipients: same.reduce((sum, { recipients }) => sum + recipients, 0) }))
    .toSorted((a, b) => b.recipients - a.recipients)
}

/** `87 % for 421 4.7.28 unusual rate, 11 % for 452 4.2.2 mailbox full`; empty without a cause. */
function causesText(causes: readonly WaitingCause[], waiting: number): string {
  const counted = causes.filter(({ on_hold: isHeld }) => !isHeld).reduce((sum, { recipients }) => sum + recipients, 0)
  // Causes are counted some seconds before the recipients, and without scheduled mail.
  const all = Math.max(counted, waiting)
  const named = namedCauses(causes).filter(({ recipients }, i) => i === 0 || (i < MOST_NAMED && recipients >= NAMED_SHARE * all))
  const [only] = named
  if (only !== undefined && only.recipients === all) return ` for ${only.words}`
  return named.map(({ words, recipients }, i) => `${i === 0 ? ': ' : ''}${percentText(recipients / all)} for ${words}`).join(', ')
}

/** The causes know no delivery that goes on: its recipients may be among those without an attempt. */
function untriedText(causes: readonly WaitingCause[], { in_flight: flight, waiting }: DestinationState): string {
  const counted = causes
    .filter(({ kind, on_hold: isHeld }) => kind === 'untried' && !isHeld)
    .reduce((sum, { recipients }) => sum + recipients, 0)
  const untried = Math.min(counted, waiting)
  if (untried === 0) return ''
  const isOne = untried === 1
  if (flight === 0) return ` ${grouped(untried)} ${isOne ? 'was' : 'were'} not tried yet.`
  return ` ${plural(untried, 'recipient')} ${isOne ? 'is in its first attempt, or was' : 'are in their first attempt, or were'} not tried yet.`
}

/**
 * `, then after 8m and at doubling intervals up to 15m`: the intervals after a further failed probe. `interval` is the present one in seconds, null
 * for none.
 */
export function laterProbes(interval: number | null, { values }: DestinationDetailsJson['settings']): string {
  const maximal = parseDuration(values['maximal_backoff_time'] ?? '')
  if (interval === null || maximal === undefined) return ''
  const next = 2 * interval * SECOND
  return next < maximal ? `, then after ${span(next)} and at doubling intervals up to ${span(maximal)}` : `, then every ${span(maximal)}`
}

/** When it goes on, unless the sentence about the state says so. */
function nextText({ state, next_due_time: next, message_rate: rate }: DestinationState, at: ZonedNow): string {
  if (next === null || isClosed({ state })) return ''
  return next * 1_000 <= at.now ? ` The next attempt is due now${rateText(rate)}.` : ` The next attempt is at ${clockText(at, next)}.`
}

const FOR_LATER = 'for a later time, as scheduled mail does'

/** Mail of a suspended destination: scheduled mail has its own time, but none is tried before the resumption. */
function suspendedText(one: DestinationState, at: ZonedNow): string {
  const { waiting, later } = countedIn(one)
  const end = untilResumedAt(one, at)
  if (later === 0) return `${waits(waiting)} ${end}.`
  if (later === waiting) return `${waits(waiting)} ${FOR_LATER}; nothing is tried ${end}.`
  return `${waits(waiting)}: ${grouped(waiting - later)} ${end}, ${grouped(later)} ${FOR_LATER}.`
}

/** ` 31 are scheduled for a later time.` */
function scheduledText(one: DestinationState): string {
  const { later } = countedIn(one)
  return later === 0 ? '' : ` ${grouped(later)} ${later === 1 ? 'is' : 'are'} scheduled for a later time.`
}

/** The failure for which all mail of a dead destination waits, whatever the last reply of each recipient; null when it is not known. */
function deadFor({ state, site_reason: site }: DestinationState): string | null {
  if (state !== 'dead' || site === null) return null
  const reason = failureIn(site)
  return causeWords(shownCause(causeOf({ reply: reason, reason })))
}

/** `10 recipients wait for a connection to mx.example (Connection refused)`, or how many of them wait for each cause. */
function waitingText(one: DestinationState, causes: readonly WaitingCause[]): string {
  const { waiting, later } = countedIn(one)
  const dead = deadFor(one)
  if (dead === null) return `${waits(waiting)}${causesText(causes, waiting)}`
  return later === 0 ? `${waits(waiting)} for ${dead}` : `${waits(waiting)}: ${grouped(waiting - later)} for ${dead}`
}

/** A difference of so many recipients, or of this part of them, is that of mail that came and left since the causes were counted. */
const LEAST_DIFFERENCE = 10
const DIFFERENT_PART = 0.2

/** The causes, unless their recipients are others than those that wait now: an operation has changed the mail since they were counted. */
function presentCauses(causes: readonly WaitingCause[], one: DestinationState): readonly WaitingCause[] {
  const counted = causes.filter(({ on_hold: isHeld }) => !isHeld).reduce((sum, { recipients }) => sum + recipients, 0)
  const { waiting, later } = countedIn(one)
  const difference = Math.abs(counted - (waiting - later))
  return difference > Math.max(LEAST_DIFFERENCE, DIFFERENT_PART * Math.max(counted, waiting - later)) ? [] : causes
}

/** `counted` is null while the causes are counted. */
export function destinationSentence(one: DestinationState, counted: readonly WaitingCause[] | null, at: ZonedNow): string {
  const all = one.waiting
  if (all === 0) return idle(one)
  if (one.state === 'suspended') return suspendedText(one, at)
  if (countedIn(one).later === all) return `${waits(all)} ${FOR_LATER}.${nextText(one, at)}`
  const causes = presentCauses(counted ?? [], one)
  return `${ended(waitingText(one, causes))}${untriedText(causes, one)}${scheduledText(one)}${nextText(one, at)}`
}
