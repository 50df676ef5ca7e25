/**
 * Limits of the queue and of the shares in it (queue_message_limit and those beside it). Mail above a limit is refused at MAIL and at the end of
 * its content, from counts in memory. A message on its way to the store counts as promised, so that clients do not pass a limit together. A limit
 * that has refused mail is open again at queue_limit_resume.
 */
import { Clients, queueLimitTerms, type Measure, type QueueLimitConfig, type QueueLimitTerms } from '../../config/values/limit-terms.ts'
import type { ContentId } from '../../mail/message.ts'
import type { SmtpReply } from '../../mail/smtp-reply.ts'
import { NO_SHARE, type ShareChanges, type ShareCount } from '../../store/share-counts.ts'
import type { QueueTime } from '../../system/clock.ts'
import { shareOf, type Origin } from './share-key.ts'

const MEASURES: readonly Measure[] = ['messages', 'bytes']

/** A limit of the queue, or of a share that uses much of it. */
export interface LimitState {
  /** Null for the limit of the whole queue. */
  readonly share: string | null
  readonly measure: Measure
  readonly used: number
  readonly limit: number
  /** Time since which the limit has refused mail; null for one that is open, and for one that has refused none yet. */
  readonly refusedSince: QueueTime | null
}

/** The beginning or the end of refusals. */
export interface LimitChange {
  readonly isReached: boolean
  readonly of: Omit<LimitState, 'refusedSince'>
}

interface Sum {
  messages: number
  bytes: number
}

const NOTHING: Readonly<Sum> = { messages: 0, bytes: 0 }

/** Sums of messages and bytes by share, with their total. */
class Sums {
  readonly total: Sum = { ...NOTHING }
  readonly #shares = new Map<string, Sum>()

  of(share: string | null): Readonly<Sum> {
    return share === null ? this.total : (this.#shares.get(share) ?? NOTHING)
  }

  get shares(): Iterable<string> {
    return this.#shares.keys()
  }

  add(share: string, messages: number, bytes: number): void {
    this.total.messages += messages
    this.total.bytes += bytes
    const sum = this.#shares.get(share) ?? { ...NOTHING }
    sum.messages += messages
    sum.bytes += bytes
    if (sum.messages === 0 && sum.bytes === 0) this.#shares.delete(share)
    else this.#shares.set(share, sum)
  }

  set({ share, messages, bytes }: ShareCount): void {
    const before = this.of(share)
    this.add(share, messages - before.messages, bytes - before.bytes)
  }

  clear(): void {
    this.#shares.clear()
    Object.assign(this.total, NOTHING)
  }
}

/** Number of shares in a listing: those that refuse mail, and the fullest others. */
const SHARES_SHOWN = 10

interface Promised {
  readonly share: string
  readonly bytes: number
}

interface QueueLimitsDeps {
  readonly now: () => QueueTime
  readonly changed: (change: LimitChange) => void
}

/** Answer to a message whose content is complete. */
export type Admitted = { readonly refusal: SmtpReply } | { readonly share: string | undefined }

/** Refuses mail for which there is no room now (RFC 5321 §4.2.3). */
export const noRoom = (limit: 'disk' | 'queue' | 'share', text: string): SmtpReply => ({ code: 452, status: '4.3.1', text, limit })

const QUEUE_FULL = noRoom('queue', 'Error: queue is full, try again later')
const shareFull = (share: string): SmtpReply => noRoom('share', `Error: too much mail of ${shownKey(share)} in the queue`)
/** Maximum octets of a key in a reply, whose line has at most 512 (RFC 5321 §4.5.3.1.5). */
const KEY_SHOWN = 300

/** A key as a reply has it. */
export const shownKey = (key: string): string => key.replace(/[^ -~]/gu, '?').slice(0, KEY_SHOWN)

export class QueueLimits {
  readonly #deps: QueueLimitsDeps
  #terms: QueueLimitTerms | null = null
  #key: QueueLimitConfig['share_key'] = []
  #isFair = false
  #exceptions = new Clients([], 'queue_limit_exceptions')
  /** True when all mail of the queue is counted: no mail is refused before. */
  #isCounted = false
  readonly #own = new Sums()
  readonly #elsewhere = new Sums()
  readonly #promised = new Sums()
  readonly #promises = new Map<ContentId, Promised>()
  /** Limits that refuse mail, with the begin. */
  readonly #refusing = new Map<string, { readonly share: string | null; readonly measure: Measure; readonly since: QueueTime }>()

  constructor(deps: QueueLimitsDeps) {
    this.#deps = deps
  }

  /** True while a limit is set. */
  get isActive(): boolean {
    return this.#terms !== null
  }

  /** True when the store counts mail. */
  get hasCounts(): boolean {
    return this.#own.total.messages > 0
  }

  configure(config: QueueLimitConfig): void {
    this.#terms = queueLimitTerms(config)
    this.#key = config.share_key
    this.#isFair = config.fair_share
    this.#exceptions = new Clients(config.queue_limit_exceptions, 'queue_limit_exceptions')
    this.#clear()
  }

  counted(isCounted: boolean): void {
    this.#isCounted = isCounted
  }

  /** Takes the counts of this owner. */
  readonly ownChanged = ({ all, counts }: ShareChanges): void => {
    if (all) this.#own.clear()
    for (const one of counts) this.#own.set(one)
    this.#clear()
  }

  /** Takes the counts of the other owners of the queue. */
  elsewhere(counts: readonly ShareCount[]): void {
    this.#elsewhere.clear()
    for (const one of counts) this.#elsewhere.set(one)
    this.#clear()
  }

  /** The reply to MAIL when a limit refuses a message of this size; undefined when none does. `size` is 0 when it is not known. */
  refusal(size: number, origin: Origin): SmtpReply | undefined {
    if (this.#terms === null || this.#isExempt(origin)) return undefined
    return this.#refusal(this.#terms, this.#shareOf(this.#terms, origin), size)
  }

  /** Promises a place to a message whose content is complete. `ended` follows. */
  admit(content: ContentId, size: number, origin: Origin): Admitted {
    const share = this.#shareOf(this.#terms, origin)
    if (this.#terms === null) return { share }
    const refusal = this.#isExempt(origin) ? undefined : this.#refusal(this.#terms, share, size)
    if (refusal !== undefined) return { refusal }
    this.#promises.set(content, { share: share ?? NO_SHARE, bytes: size })
    this.#promised.add(share ?? NO_SHARE, 1, size)
    return { share }
  }

  /** Withdraws the promise to a message that the store has counted, or that was not queued. */
  ended(content: ContentId): void {
    const promise = this.#promises.get(content)
    if (promise === undefined) return
    this.#promises.delete(content)
    this.#promised.add(promise.share, -1, -promise.bytes)
  }

  /** The limits with their use: those of the queue, then those of the shares that refuse mail, and of the fullest others. */
  states(): readonly LimitState[] {
    const terms = this.#terms
    if (terms === null || !this.#isCounted) return []
    const shares = new Set([...this.#own.shares, ...this.#elsewhere.shares])
    shares.delete(NO_SHARE)
    const ofShares = [...shares].flatMap((share) => this.#statesOf(terms, share))
    const byUse = (a: LimitState, b: LimitState): number =>
      Number(refusesMail(b)) - Number(refusesMail(a)) || b.used / b.limit - a.used / a.limit
    return [...this.#statesOf(terms, null), ...ofShares.toSorted(byUse).slice(0, SHARES_SHOWN)]
  }

  #statesOf(terms: QueueLimitTerms, share: string | null): readonly LimitState[] {
    return MEASURES.flatMap((measure) => {
      const limit = limitOf(terms, share, measure)
      const refusedSince = this.#refusing.get(keyOf(share, measure))?.since ?? null
      return limit === 0 ? [] : [{ share, measure, used: this.#used(share, measure), limit, refusedSince }]
    })
  }

  #isExempt({ user, address }: Origin): boolean {
    return this.#exceptions.has({ user, address })
  }

  /** Without a limit of shares, and where deliveries are not shared fairly, mail has none. */
  #shareOf(terms: QueueLimitTerms | null, origin: Origin): string | undefined {
    const isLimited = terms !== null && (terms.share.messages > 0 || terms.share.bytes > 0)
    return isLimited || this.#isFair ? shareOf(this.#key, origin) : undefined
  }

  #used(share: string | null, measure: Measure): number {
    return this.#own.of(share)[measure] + this.#elsewhere.of(share)[measure]
  }

  #refusal(terms: QueueLimitTerms, share: string | undefined, size: number): SmtpReply | undefined {
    if (!this.#isCounted) return undefined
    if (this.#isOver(terms, null, size)) return QUEUE_FULL
    return share !== undefined && this.#isOver(terms, share, size) ? shareFull(share) : undefined
  }

  #isOver(terms: QueueLimitTerms, share: string | null, size: number): boolean {
    return MEASURES.some((measure) => {
      const limit = limitOf(terms, share, measure)
      if (limit === 0) return false
      const key = keyOf(share, measure)
      if (this.#refusing.has(key)) return true
      const used = this.#used(share, measure)
      if (used + this.#promised.of(share)[measure] + (measure === 'messages' ? 1 : size) <= limit) return false
      // A large message, or one beside many that are on their way, is refused without closing the limit for others.
      if (used > limit * terms.resume) this.#begin({ share, measure, used, limit })
      return true
    })
  }

  #begin({ share, measure, used, limit }: Omit<LimitState, 'refusedSince'>): void {
    this.#refusing.set(keyOf(share, measure), { share, measure, since: this.#deps.now() })
    this.#deps.changed({ isReached: true, of: { share, measure, used, limit } })
  }

  /** Opens the limits whose use has fallen. */
  #clear(): void {
    for (const [key, { share, measure }] of this.#refusing) {
      const limit = this.#terms === null ? 0 : limitOf(this.#terms, share, measure)
      const used = this.#used(share, measure)
      if (limit > 0 && used > limit * (this.#terms?.resume ?? 1)) continue
      this.#refusing.delete(key)
      this.#deps.changed({ isReached: false, of: { share, measure, used, limit } })
    }
  }
}

/** True for a limit above which no mail is accepted now. One that was lowered, or has just been reached, has not refused mail yet. */
export const refusesMail = ({ used, limit, refusedSince }: Pick<LimitState, 'used' | 'limit' | 'refusedSince'>): boolean =>
  refusedSince !== null || used >= limit

/** `9,600 of 10,000 messages in the queue: mail is refused`. */
export function limitText(one: LimitState): string {
  const { share, measure, used, limit } = one
  const whose = share === null ? 'in the queue' : `of the share ${share} in the queue`
  const state = refusesMail(one) ? ': mail is refused' : ''
  return `${used.toLocaleString('en')} of ${limit.toLocaleString('en')} ${measure} ${whose}${state}`
}

const limitOf = (terms: QueueLimitTerms, share: string | null, measure: Measure): number =>
  (share === null ? terms.queue : terms.share)[measure]

const keyOf = (share: string | null, measure: Measure): string => (share === null ? measure : `${measure} ${share}`)
