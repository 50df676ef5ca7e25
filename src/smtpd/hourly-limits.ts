/**
 * Limits of messages per hour (smtpd_user_hourly_message_limit, smtpd_sender_hourly_message_limit). An hour begins with the first
 * message after the previous one. Counts are those of this process and do not survive a restart.
 */
import type { Config } from '../config/options.ts'
import { HOUR, type Clock, type Duration } from '../system/clock.ts'
import type { SmtpReply } from '../mail/smtp-reply.ts'
import { tooMuchMail } from './replies.ts'

export type HourlyLimitSettings = Pick<Config, 'smtpd_user_hourly_message_limit' | 'smtpd_sender_hourly_message_limit'>

interface Count {
  /** Beginning of the hour, on the monotonic clock. */
  readonly since: Duration
  messages: number
}

/** Number of names in memory, above which those whose hour began first are forgotten. */
const MOST_NAMES = 100_000

export class HourlyLimits {
  readonly #clock: Clock
  readonly #users = new Counts()
  readonly #senders = new Counts()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Counts a message. Returns the reply with which to refuse it, and undefined within the limits. The null sender has no limit. */
  count(sender: string, user: string | undefined, settings: HourlyLimitSettings): SmtpReply | undefined {
    const { smtpd_user_hourly_message_limit: ofUser, smtpd_sender_hourly_message_limit: ofSender } = settings
    if (ofUser === 0 && ofSender === 0) return undefined
    const now = this.#clock.monotonic()
    if (user !== undefined && !this.#users.admits(user, ofUser, now)) return tooMuchMail(user)
    return sender === '' || this.#senders.admits(sender.toLowerCase(), ofSender, now) ? undefined : tooMuchMail(sender)
  }
}

class Counts {
  /** Ordered by the beginning of the hour. */
  readonly #counts = new Map<string, Count>()

  /** Counts a message of `name`. Refused messages are not counted. */
  admits(name: string, limit: number, now: Duration): boolean {
    if (limit === 0) return true
    const known = this.#counts.get(name)
    if (known === undefined || now - known.since >= HOUR) this.#begin(name, now)
    else if (known.messages >= limit) return false
    else known.messages++
    return true
  }

  #begin(name: string, now: Duration): void {
    this.#counts.delete(name)
    for (const [other, { since }] of this.#counts) {
      if (now - since < HOUR && this.#counts.size < MOST_NAMES) break
      this.#counts.delete(other)
    }
    this.#counts.set(name, { since: now, messages: 1 })
  }
}
