/**
 * Keeps connections open for the next delivery to the same next hop (Postfix CONNECTION_CACHE_README, on demand). A connection
 * may be idle for smtp_connection_cache_time_limit, may be used until smtp_connection_reuse_time_limit after it was opened, and may
 * be used again smtp_connection_reuse_count_limit times.
 */
import type { Settings } from '../../config/destination-settings.ts'
import type { Clock, Duration, Timer } from '../../system/clock.ts'
import type { SmtpSession } from './smtp-session.ts'

interface Kept {
  readonly session: SmtpSession
  /** End of the idle time on the monotonic clock. */
  readonly idleUntil: Duration
}

type Limits = Pick<Settings, 'smtp_connection_cache_time_limit' | 'smtp_connection_reuse_time_limit' | 'smtp_connection_reuse_count_limit'>

export class ConnectionCache {
  readonly #clock: Clock
  readonly #kept = new Map<string, Kept[]>()
  #sweep: Timer | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /**
   * Takes the usable connection that was kept last, and ends those that are no longer usable; undefined when there is none. The
   * latest comes first, so that connections that are not needed stay idle until their limit.
   */
  take(key: string, limits: Limits): SmtpSession | undefined {
    const kept = this.#kept.get(key)
    for (let last = kept?.pop(); last !== undefined; last = kept?.pop()) {
      if (last.session.usable && !this.#isSpent(last.session, limits)) return last.session
      last.session.quit()
    }
    return undefined
  }

  /** Keeps a connection, or ends it when a limit of its reuse is reached. */
  put(key: string, session: SmtpSession, limits: Limits): void {
    if (this.#isSpent(session, limits)) return session.quit()
    const kept = this.#kept.get(key) ?? []
    kept.push({ session, idleUntil: this.#clock.monotonic() + limits.smtp_connection_cache_time_limit })
    this.#kept.set(key, kept)
    this.#sweep ??= this.#clock.after(limits.smtp_connection_cache_time_limit, () => this.#endIdle())
  }

  close(): void {
    this.#sweep?.cancel()
    for (const kept of this.#kept.values()) for (const { session } of kept) session.quit()
    this.#kept.clear()
  }

  #isSpent(session: SmtpSession, limits: Limits): boolean {
    const { smtp_connection_reuse_time_limit: time, smtp_connection_reuse_count_limit: count } = limits
    return this.#clock.monotonic() - session.openedAt > time || (count > 0 && session.uses > count)
  }

  /** Ends connections at their idle limit and sets the timer for the next one. */
  #endIdle(): void {
    this.#sweep = undefined
    const now = this.#clock.monotonic()
    let next = Infinity
    for (const [key, kept] of this.#kept) {
      const staying = kept.filter(({ session, idleUntil }) => {
        if (session.usable && idleUntil > now) return true
        session.quit()
        return false
      })
      next = Math.min(next, ...staying.map(({ idleUntil }) => idleUntil))
      if (staying.length === 0) this.#kept.delete(key)
      else this.#kept.set(key, staying)
    }
    if (next !== Infinity) this.#sweep = this.#clock.after(next - now, () => this.#endIdle())
  }
}
