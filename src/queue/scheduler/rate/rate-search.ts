/**
 * Search for the rate that a destination accepts, as pure functions: rates in deliveries per minute, times on the monotonic clock. A limiter
 * that refuses has nothing left. From one such moment to a later one it accepts what it grants in that time, whatever burst it allows at
 * first: accepted messages divided by the time between two refusals is its rate, and messages accepted before the first refusal tell nothing.
 *
 * Refusals that follow each other lower the pace to what was accepted since the first of them. A series of acceptances raises it, slowly near
 * the pace that was refused, then faster. When refusals confirm a rate, the pace stays below it for a while (`HOLD`), so that a backlog meets
 * few refusals, and grows beyond it afterwards, so that a higher limit is found.
 */
import { MINUTE, SECOND, type Duration } from '../../../system/clock.ts'

/** Lowest pace, per minute. */
const LOWEST = 1
/** Acceptances after a refusal that make the next refusal one of a new cluster, and before which the pace does not grow. */
const SERIES = 10
/** Growth of the pace: by this factor to the power of the square of the acceptances, which is continued as a line from `STRAIGHT` on. */
const GROWTH = 1.0625 ** (1 / 32)
const STRAIGHT = 8
/** Shortest time in which growth doubles the pace: a counter that begins anew each minute refuses nothing until the minute's number is used up. */
const DOUBLED: Duration = 30 * SECOND
/** Number of attempts, while everything is refused, in the time that this has lasted. */
const TRIES = 6
/** Acceptances from the first refusal of a cluster to the last at most, after which the pace returns to the former one at once. */
const FEW = 3
/** A refused pace at most this multiple of one that was held is a limit found. */
const CLOSE = 1.25
/** Two means at most this multiple of each other confirm each other. */
const ALIKE = 1.15
/** Part of the time from one cluster of refusals to the next, without acceptances, from which on the limiter counts by the clock. */
const SILENCE = 0.15
/** Part of a pace that was held to which a limiter that then refuses for a fixed time lowers it. */
const LOWERED = 0.8
/** Part of the pace above which a few refusals leave a rate that was found. */
const FIRM = 0.9
/** Part of the rate found that the pace leaves unused at first, and the time in which it takes that up, mostly at the end. */
const MARGIN = 0.09
const HOLD: Duration = 20 * MINUTE
/** Time after `HOLD` in which the pace exceeds the rate found by `MARGIN`; by eight times as much in twice the time. */
const PROBE: Duration = 5 * MINUTE
/** Attempts in flight at most that began before the pace that was refused. */
const LAG = 3
/** A pace above this multiple of the refused one limits nothing. */
const END = 2
/** Time without refusals after which such a search ends; any search ends after the longer time. */
const QUIET: Duration = 10 * MINUTE
const FORGOTTEN: Duration = 60 * MINUTE
/** Pause between deliveries after which the limiter may have filled up, apart from the pauses of the pace. */
const IDLE: Duration = 10 * SECOND

/** A delivery whose outcome is known. */
export interface RateSample {
  readonly now: Duration
  /** Time when MAIL was sent, or of the end when it was not. */
  readonly sentAt: Duration
  /** Number of other deliveries in flight. */
  readonly others: number
}

/** Replies since the first refusal of a cluster. */
interface Span {
  readonly since: Duration
  readonly accepted: number
  /** Refusals after the first acceptance. */
  readonly refused: number
  /** Time of the first acceptance; `since` before it. */
  readonly resumedAt: Duration
}

export interface RateSearch {
  /**
   * `noticed`: one refusal, which tells no rate. `searching`: the pace follows refusals and acceptances. `bounded`: refusals among many
   * acceptances told the rate, unless the next acceptances are as many. `found`: the rate is known.
   */
  readonly phase: 'noticed' | 'searching' | 'bounded' | 'found'
  /** Pace after the last refusal; the rate itself when it is found. */
  readonly rate: number
  /** Pace before the last cluster of refusals. */
  readonly goal: number
  /** Highest pace that was refused. */
  readonly highest: number
  readonly span: Span
  /** Acceptances in `span` at the last refusal. */
  readonly before: number
  /** Acceptances since the last refusal. */
  readonly series: number
  readonly refusedAt: Duration
  /** Mean of the last span; null before its end. */
  readonly mean: number | null
  /** The span before this one; null when nothing was measured in it. */
  readonly former: Busy | null
  /** Mean of the last period of a limiter that counts by the clock; null before its end. */
  readonly period: number | null
  /** Time of the last sample. */
  readonly seenAt: Duration
}

const perMinute = (count: number, time: Duration): number => (count * MINUTE) / Math.max(1, time)

const spanFrom = (since: Duration): Span => ({ since, accepted: 0, refused: 0, resumedAt: since })

/** Acceptances before the first refusal, without a pause. */
export type Busy = Pick<Span, 'accepted' | 'resumedAt'>

/** Age from which such acceptances are counted anew. */
const BUSY: Duration = 5 * MINUTE

/** Counts one more acceptance, at `sentAt`; `seenAt` is the time of the last one. */
export const busier = (busy: Busy | null, sentAt: Duration, seenAt: Duration): Busy =>
  busy === null || sentAt - seenAt > IDLE || sentAt - busy.resumedAt > BUSY
    ? { accepted: 1, resumedAt: sentAt }
    : { accepted: busy.accepted + 1, resumedAt: busy.resumedAt }

/** The search that begins with a refusal. */
export function noticed({ now, sentAt, others }: RateSample, former: Busy): RateSearch {
  const rate = perMinute(others + 1, now - sentAt)
  const counts = { span: spanFrom(sentAt), before: 0, series: 0, refusedAt: sentAt, mean: null, former, period: null, seenAt: now }
  return { phase: 'noticed', rate, goal: rate, highest: rate, ...counts }
}

/** Deliveries per minute that may begin; null when nothing limits them. */
export function paceOf(search: RateSearch, now: Duration): number | null {
  if (search.phase === 'noticed') return null
  const pace = rateAt(search, now)
  return pace > END * search.highest ? null : pace
}

/** True when the search has no meaning any more. */
export function isOver(search: RateSearch, now: Duration): boolean {
  const quiet = now - search.refusedAt
  return quiet > FORGOTTEN || (quiet > QUIET && (search.phase === 'noticed' || rateAt(search, now) > END * search.highest))
}

const rateAt = (search: RateSearch, now: Duration): number =>
  search.phase === 'found' ? heldRate(search, now - search.refusedAt) : searchedRate(search, search.series, now - search.refusedAt)

function heldRate({ rate }: RateSearch, quiet: Duration): number {
  // The power keeps the pace low for most of the time: mail that is refused late returns long after the rest of a backlog.
  const excess = quiet < HOLD ? (quiet / HOLD) ** 6 - 1 : ((quiet - HOLD) / PROBE) ** 3
  return rate * (1 + MARGIN * excess)
}

/** The pace after a series of acceptances. After few acceptances between refusals it is doubled until it is what it was before them. */
function searchedRate({ rate, goal, before }: RateSearch, series: number, quiet: Duration): number {
  const doublings = before <= FEW ? Math.max(0, Math.log2(goal / rate)) : 0
  const counted = before <= FEW ? series - before - 1 : series
  if (counted < doublings) return rate * 2 ** Math.max(0, counted)
  const grown = Math.max(0, counted - doublings - SERIES)
  const exponent = grown < STRAIGHT ? grown ** 2 : STRAIGHT * (2 * grown - STRAIGHT)
  return rate * 2 ** doublings * Math.min(GROWTH ** exponent, 2 ** (quiet / DOUBLED))
}

/** A pause in the mail ends the measurement: the limiter fills up meanwhile. */
function afterPause(search: RateSearch, { now, sentAt }: RateSample): RateSearch {
  const pause = IDLE + (4 * MINUTE) / rateAt(search, search.seenAt)
  if (now - search.seenAt <= pause) return search
  return { ...search, span: spanFrom(sentAt), before: 0, mean: null, former: null, period: null }
}

export function afterAccepted(former: RateSearch, sample: RateSample): RateSearch {
  const search = { ...afterPause(former, sample), seenAt: sample.now }
  const { sentAt } = sample
  const { since, accepted, refused, resumedAt } = search.span
  const span = sentAt <= since ? search.span : { since, accepted: accepted + 1, refused, resumedAt: accepted === 0 ? sentAt : resumedAt }
  const series = sentAt <= search.refusedAt ? search.series : search.series + 1
  if (accepted === 0 && span.accepted === 1) return resumed({ ...search, span, series })
  if (search.phase !== 'bounded' || series < SERIES) return { ...search, span, series }
  return found(search, Math.min(search.rate, perMinute(span.accepted, sentAt - since)), sentAt)
}

const found = (search: RateSearch, rate: number, at: Duration): RateSearch => ({
  ...search,
  phase: 'found',
  rate,
  goal: rate,
  highest: rate,
  span: spanFrom(at),
  before: 0,
  series: 0,
  refusedAt: at,
})

export function afterRefused(former: RateSearch, sample: RateSample): RateSearch {
  const search = { ...afterPause(former, sample), seenAt: sample.now }
  if (sample.sentAt < search.refusedAt) return search
  return search.series >= SERIES && search.span.accepted > 0 ? firstOfCluster(search, sample) : nextOfCluster(search, sample)
}

/** A refusal after a series of acceptances: the pace has reached the limit. */
function firstOfCluster(search: RateSearch, { now, sentAt, others }: RateSample): RateSearch {
  const { span, series, phase } = search
  const pace = rateAt(search, now)
  const heldBefore = (acceptances: number): number => searchedRate(search, series - acceptances, now - search.refusedAt)
  const mean = perMinute(span.accepted, sentAt - span.since)
  // A refusal below the rate that was found comes from mail that arrived at uneven intervals, unless less than the pace was accepted.
  const kept = Math.max(pace, search.rate * Math.min(1, mean / pace))
  const [held, reached] = phase === 'found' ? [pace, kept] : [heldBefore(STRAIGHT), heldBefore(LAG + Math.min(others, LAG))]
  const isClose = pace <= CLOSE * held
  const isAlike = areAlike(mean, search.mean)
  const rate = phase === 'noticed' ? Math.min(reached, mean) : isClose || !isAlike ? reached : (reached + mean) / 2
  const next = { ...found(search, Math.max(LOWEST, rate), sentAt), highest: pace, mean, former: span }
  return isClose || isAlike ? next : { ...next, phase: 'searching' }
}

const areAlike = (one: number, other: number | null): boolean => other !== null && one <= ALIKE * other && other <= ALIKE * one

/**
 * The first acceptance after a cluster of refusals. After a silence that is long beside the time of acceptances before it, the limiter counts
 * by the clock, and has begun a new period: it accepts in each period what it accepted since the begin of the last one. Or it refuses
 * everything for a fixed time, and then nearly the pace before that is right: the periods are not alike.
 */
function resumed(search: RateSearch): RateSearch {
  const { former, span, period, phase, goal } = search
  if (phase === 'noticed' || former === null || span.resumedAt - span.since <= SILENCE * (span.since - former.resumedAt))
    return { ...search, period: null }
  const mean = Math.max(LOWEST, perMinute(former.accepted, span.resumedAt - former.resumedAt))
  if (areAlike(mean, period)) return { ...found(search, Math.min(goal, mean), span.resumedAt), period: mean }
  const next = Math.min(goal, period === null || phase !== 'found' ? mean : Math.max(mean, LOWERED * goal))
  return { ...search, phase: 'searching', rate: Math.min(search.rate, next), goal: next, period: mean }
}

/** A refusal soon after another one: the rate is at most what was accepted since the first one, and what is in flight. */
function nextOfCluster(search: RateSearch, { now, sentAt, others }: RateSample): RateSearch {
  const { phase } = search
  const { accepted, refused } = search.span
  const pace = rateAt(search, now)
  const time = sentAt - search.span.since
  const most = perMinute(accepted === 0 ? TRIES : accepted + 1 + others, time)
  const next = { ...search, series: 0, refusedAt: sentAt, before: accepted }
  const span = accepted === 0 ? search.span : { ...search.span, refused: refused + 1 }
  if (phase === 'found' && most >= FIRM * pace) return { ...next, span }
  const rate = Math.max(LOWEST, Math.min(pace, most))
  const isBounded = most <= pace && accepted >= SERIES && span.refused <= accepted / 2
  const grewBefore = phase !== 'found' && pace > search.rate
  const goal = isBounded ? rate : phase === 'found' ? pace : grewBefore ? Math.min(search.goal, pace) : search.goal
  return { ...next, span, rate, goal, phase: isBounded ? 'bounded' : 'searching' }
}
