/**
 * The time for which a node may begin deliveries after a beat. Another node takes this one over when it has seen no beat for
 * `lease`, which it measures from a later moment than the sending of the beat. So no delivery begins after a takeover, unless both
 * clocks of this machine stood still or were set back meanwhile; such deliveries begin before the next beat only. The lease is checked at
 * the begin of a delivery, and again immediately before each connection and each mail transaction, because a process may be stopped
 * between these.
 */
import type { Clock, Duration, WallTime } from '../../system/clock.ts'

/** A moment on both clocks of a machine. A virtual machine that is paused may stop either. */
export interface Moment {
  readonly monotonic: Duration
  readonly wall: WallTime
}

export interface LeaseTimes {
  /** Time without a beat after which a node is taken over. */
  readonly lease: Duration
  /** Time between two beats. */
  readonly beat: Duration
  /** Time before the end of the lease from which no delivery begins. */
  readonly margin: Duration
  /** Maximum time between two requests for arrivals. */
  readonly poll: Duration
}

/** Times for `node_lease`. The default of 5 s gives 1 s between beats, 1 s of margin, and a request for arrivals every 250 ms. */
export const leaseTimes = (lease: Duration): LeaseTimes => ({ lease, beat: lease / 5, margin: lease / 5, poll: lease / 20 })

export const momentOf = (clock: Clock): Moment => ({ monotonic: clock.monotonic(), wall: clock.wall.now() })

/** True at `now` if deliveries may begin after a beat that was sent at `sent`. Both clocks must agree. */
export function holdsAt(now: Moment, sent: Moment | null, { lease, margin }: LeaseTimes): boolean {
  if (sent === null) return false
  const time = lease - margin
  return now.monotonic - sent.monotonic < time && now.wall - sent.wall < time
}
