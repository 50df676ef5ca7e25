/** Decides which MTA-STS policy applies to a domain, and what is fetched (RFC 8461 §3.3, §5.1). Pure. */
import { DAY, HOUR, MINUTE, type Duration, type QueueTime } from '../../system/clock.ts'
import type { StsPolicy } from '../../store/records/sts-policy.ts'
import type { StsAnnouncement } from './sts-record.ts'

/** Time after a failed fetch before the next one (RFC 8461 §3.3). */
const FETCH_INTERVAL: Duration = 5 * MINUTE

export interface StsFacts {
  /** The kept policy; undefined without one. */
  readonly kept: StsPolicy | undefined
  readonly announced: StsAnnouncement
  readonly now: QueueTime
  /** Time of the last failed fetch; null without one. */
  readonly failedAt: QueueTime | null
  /** True at the last attempt before mail expires: a domain may have changed its hosts before its record. */
  readonly last: boolean
}

interface StsDecision {
  /** The kept policy that applies until a fetch has succeeded; undefined without one. */
  readonly applies: StsPolicy | undefined
  /** Id to fetch the policy for; undefined when nothing is fetched. */
  readonly fetch: string | undefined
}

export const isExpired = ({ expiresAt }: Pick<StsPolicy, 'expiresAt'>, now: QueueTime): boolean => expiresAt <= now

/**
 * A kept policy applies until it expires, whatever the look-up of the record says: an attacker could suppress the answer. Without
 * one, mail is sent without a policy when the look-up fails, because the first use is trusted.
 */
export function decideSts({ kept, announced, now, failedAt, last }: StsFacts): StsDecision {
  const applies = kept === undefined || isExpired(kept, now) ? undefined : kept
  const mayFetch = last || failedAt === null || now - failedAt >= FETCH_INTERVAL
  switch (announced.kind) {
    case 'id': {
      const isKnown = applies?.id === announced.id && !last
      return { applies, fetch: isKnown || !mayFetch ? undefined : announced.id }
    }
    case 'none':
    case 'invalid':
    case 'failed':
      return { applies, fetch: last ? applies?.id : undefined }
  }
}

/** Age at which a policy that is in use is fetched again; a random part keeps the time from being known. */
const REFRESH_AFTER: Duration = 18 * HOUR
const REFRESH_SPREAD: Duration = 12 * HOUR
/** Time without a use after which a policy is no longer fetched, and after which it is dropped. */
const IN_USE: Duration = 30 * DAY
const DROPPED_AFTER: Duration = 180 * DAY

/** Returns what is done with a kept policy in the background. `draw` is a number in [0, 1) that stays the same until the policy is fetched. */
export function refreshOf(policy: StsPolicy, now: QueueTime, draw: number): 'keep' | 'fetch' | 'drop' {
  const unused = now - policy.usedAt
  if (unused > DROPPED_AFTER) return 'drop'
  const lastTry = Math.max(policy.fetchedAt, policy.failedAt ?? 0)
  return unused <= IN_USE && now - lastTry >= REFRESH_AFTER + draw * REFRESH_SPREAD ? 'fetch' : 'keep'
}
