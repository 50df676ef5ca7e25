/** Times of access tokens: use, renewal, and the next request after a failure. Pure; times are on the monotonic clock. */
import { MINUTE, SECOND, type Duration } from '../system/clock.ts'

/** Time before its end at which a token is no longer used: a session that begins then has time to log in. */
const MARGIN: Duration = 30 * SECOND
/** A shorter lifetime is taken for this one, so that an authority is asked at most every 12 s. */
const LEAST_LIFETIME: Duration = 30 * SECOND
const EARLY: Duration = 5 * MINUTE

const counted = (lifetime: Duration): Duration => Math.max(lifetime, LEAST_LIFETIME)

/** Time for which a new token is used: until 30 s before its end, and at least half of its lifetime. */
export const usableTime = (lifetime: Duration): Duration => Math.max(counted(lifetime) / 2, counted(lifetime) - MARGIN)

/**
 * Time after which a new token is renewed: 80 % of its lifetime or 5 min before its end, the earlier; of a short lifetime, at least 40 %, which
 * is before the end of its use.
 */
export function renewalTime(lifetime: Duration): Duration {
  const time = counted(lifetime)
  return Math.min(0.8 * time, Math.max(time - EARLY, 0.4 * time))
}

const FIRST_PAUSE: Duration = 5 * SECOND
const LONGEST_PAUSE: Duration = 5 * MINUTE
/** Pause after a refusal, which a change of the table or of its files ends: a reload. */
const REFUSED_PAUSE: Duration = 15 * MINUTE

/** Time until the next request after `failures` ones in a row. */
export const pauseAfter = (kind: 'temporary' | 'refused', failures: number): Duration =>
  kind === 'refused' ? REFUSED_PAUSE : Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** Math.min(failures - 1, 10))

/** Time in which one token is fetched in place of one that a server refused. A second refusal in it is the verdict of the server. */
const REPLACEMENT: Duration = 5 * MINUTE

/** True when a refused token may be replaced; `last` is the time of the last replacement. */
export const mayReplace = (last: Duration | null, now: Duration): boolean => last === null || now - last >= REPLACEMENT

/** Time without a use after which a token is no longer renewed. */
const IDLE: Duration = 24 * 60 * MINUTE

export const isIdle = (usedAt: Duration, now: Duration): boolean => now - usedAt >= IDLE
