/**
 * Quotas (`[quota.NAME]`): how much mail of a key is accepted in a span of time. Mail is charged when it is queued, in one transaction, so that mail that is
 * refused or fails costs nothing and the counts survive any crash. Mail above a limit is refused, or held until there is room. Nodes of a shared queue
 * know the charges of each other a second later at the latest.
 */
import { matchesPattern } from '../../patterns/filter-pattern.ts'
import type { Config } from '../../config/options.ts'
import type { QuotaLimit, QuotaMeasure, QuotaTable } from '../../config/values/tables/quota-table.ts'
import type { ContentId } from '../../mail/message.ts'
import { quotaRequestOf } from '../../mail/message-times.ts'
import type { SmtpReply } from '../../mail/smtp-reply.ts'
import type { QueueStore } from '../../store/queue-store.ts'
import type { QuotaCharge, QuotaUse } from '../../store/records/quota-count.ts'
import type { Clock, Duration, QueueTime } from '../../system/clock.ts'
import { QuotaCounts } from './quota-counts.ts'
import type { FullQuota, QuotaState } from './quota-reports.ts'
import {
  endOfUse,
  firstCommonRoom,
  firstRoom,
  firstRoomBetween,
  holdingUse,
  sliceAt,
  usedAt,
  type Amounts,
  type LimitedUse,
  type Search,
} from './quota-window.ts'
import { shownKey } from './queue-limits.ts'
import { countedKey, partOf, type Origin } from './share-key.ts'

export type QuotaConfig = Pick<Config, 'quota'>

/** A quota that counts a message, with the limits of its key. */
export interface CountedQuota extends QuotaUse {
  readonly table: QuotaTable
  readonly limits: readonly QuotaLimit[]
}

/** The time until which a message is held, and its request in the message. */
interface QuotaHold {
  readonly until: QueueTime
  readonly request: string
}

/** A message whose content is complete. */
export interface SubmittedMail {
  /** With the sender that the client gave. */
  readonly origin: Origin
  /** As the client gave them. */
  readonly recipients: number
  /** Time at which the client gives the message up; absent without one. */
  readonly expires?: QueueTime | undefined
}

/** Answer to a message whose content is complete. */
export type Charged = { readonly refusal: SmtpReply } | { readonly charges: readonly QuotaCharge[]; readonly hold: QuotaHold | null }

interface QuotasDeps {
  readonly store: Pick<QueueStore, 'records'>
  readonly clock: Pick<Clock, 'now' | 'monotonic'>
  readonly isShared: boolean
  /** Called with the use of each limit that a message was charged to, and of one that had no room for it. */
  readonly used: (states: readonly QuotaState[]) => void
}

/** A limit for which mail waits, and what becomes of mail that comes now. */
interface Holding extends Pick<FullQuota, 'action' | 'refuses'> {
  readonly limit: QuotaLimit
}

const ONE: Amounts = { messages: 1, recipients: 1 }

/** Time for which a quota holds mail at most; 0 for one that refuses it. */
export const longestHold = ({ action, holdLimit }: QuotaTable): Duration => (action === 'hold' ? holdLimit : 0)

/** When mail may leave, and the quota that determines it, with its limit; null for none. */
interface Plan {
  readonly at: QueueTime
  readonly by: { readonly quota: CountedQuota; readonly limit: QuotaLimit } | null
}

export class Quotas {
  readonly #deps: QuotasDeps
  readonly counts: QuotaCounts
  #tables: readonly QuotaTable[] = []
  readonly #charged = new Map<ContentId, { readonly quotas: readonly CountedQuota[]; readonly end: (mayBeStored: boolean) => void }>()

  constructor(deps: QuotasDeps) {
    this.#deps = deps
    const { store, clock, isShared } = deps
    this.counts = new QuotaCounts({ read: (use, now) => store.records.quotaCounts.of(use, now), clock, isShared })
  }

  /** True while there is a quota. */
  get isOn(): boolean {
    return this.#tables.length > 0
  }

  get tables(): readonly QuotaTable[] {
    return this.#tables
  }

  configure({ quota }: QuotaConfig): void {
    this.#tables = [...quota.values()]
    if (!this.isOn) this.counts.clear()
  }

  /** The reply to MAIL when a quota refuses a message; undefined when none does, at once without a quota. */
  refusal(origin: Origin): Promise<SmtpReply | undefined> | SmtpReply | undefined {
    return this.#asked(origin, (quotas) => this.#refusal(quotas, { messages: 1, recipients: 0 }, 'messages'))
  }

  /** The reply to RCPT when a quota refuses so many recipients; undefined when none does, at once without a quota. */
  recipientRefusal(origin: Origin, recipients: number): Promise<SmtpReply | undefined> | SmtpReply | undefined {
    return this.#asked(origin, (quotas) => this.#refusal(quotas, { messages: 1, recipients }, 'recipients'))
  }

  /**
   * Charges a message whose content is complete, or returns the reply that refuses it. Undefined without a quota that counts it. `ended` follows a
   * charge.
   */
  admit(content: ContentId, mail: SubmittedMail): Promise<Charged | undefined> | Charged | undefined {
    return this.#asked(mail.origin, (quotas) => this.#charge(content, quotas, mail))
  }

  /** Ends the charge of a message that may be stored, or is not going to be. */
  ended(content: ContentId, mayBeStored: boolean): void {
    const charged = this.#charged.get(content)
    if (charged === undefined) return
    this.#charged.delete(content)
    charged.end(mayBeStored)
    if (mayBeStored) this.#deps.used(charged.quotas.flatMap((quota) => this.statesOf(quota)))
  }

  /** The quotas that count mail of an origin. None counts mail from the null sender. */
  of(origin: Origin): readonly CountedQuota[] {
    if (origin.sender === '') return []
    return this.#tables.flatMap((table) => {
      const key = partOf(table.key, origin)
      const counted = key === '' || !isOfClass(table, origin) ? undefined : countedBy(table, key)
      return counted === undefined ? [] : [counted]
    })
  }

  /** The use of each limit of a key; empty for a quota that does not count it. */
  statesOfKey(use: QuotaUse): readonly QuotaState[] {
    const counted = this.#countedOf(use)
    return counted === undefined ? [] : this.statesOf(counted)
  }

  /**
   * The one of some limits of a key for which a message with one recipient waits. Undefined without limits, and for a quota that does not count the
   * key.
   */
  holding(use: QuotaUse, limits: readonly QuotaLimit[]): Holding | undefined {
    const counted = this.#countedOf(use)
    if (counted === undefined) return undefined
    const now = this.#deps.clock.now()
    const { table } = counted
    const last = holdingUse(this.#usesOf([{ ...counted, limits }]), ONE, { from: now, roomOf: firstRoom, now })
    const refuses = this.#room([counted], ONE, now) - now > longestHold(table)
    return last === undefined ? undefined : { limit: last.limit, action: table.action, refuses }
  }

  /** The charges of mail to all quotas: to those that hold at the time when it may leave, to the others now. */
  chargesOf(quotas: readonly CountedQuota[], need: Amounts, at: QueueTime): readonly QuotaCharge[] {
    const now = this.#deps.clock.now()
    return quotas.flatMap(({ quota, key, limits, table: { action } }) =>
      [...new Set(limits.map(({ span }) => span))].map((span) => {
        const begin = sliceAt(action === 'hold' ? at : now, span)
        return { quota, key, span, begin, ...need, until: endOfUse(begin, span) }
      }),
    )
  }

  /** The time at which new mail may leave by the quotas that hold: after all mail that they hold. The mail is not charged yet. */
  planOf(quotas: readonly CountedQuota[], need: Amounts): Plan {
    return this.#planOf(quotas, need, { from: this.#deps.clock.now(), roomOf: firstRoom })
  }

  /** The time at which mail that is planned anew may leave, `from` or later: also before mail that came meanwhile, and the place of mail that is gone. */
  planAgain(quotas: readonly CountedQuota[], need: Amounts, from: QueueTime): Plan {
    return this.#planOf(quotas, need, { from, roomOf: firstRoomBetween })
  }

  #planOf(quotas: readonly CountedQuota[], need: Amounts, search: Search): Plan {
    const holding = quotas.filter(({ table }) => table.action === 'hold')
    const at = this.#roomBy(holding, need, search)
    const now = this.#deps.clock.now()
    const by = at === now ? undefined : holdingUse(this.#usesOf(holding), need, { ...search, now })
    return { at, by: by ?? null }
  }

  /** The use of each limit of a key. A limit is full without room for a message with one recipient: also where the room is that of held mail. */
  statesOf(counted: CountedQuota): readonly QuotaState[] {
    const now = this.#deps.clock.now()
    const { quota, key, limits } = counted
    return limits.map((limit) => {
      const used = usedAt(this.counts.of(counted, limit.span), limit, now)
      const isFull = used >= limit.most || this.#roomOf(counted, limit, ONE, now) > now
      return { quota, key, limit, used, slice: sliceAt(now, limit.span), isFull }
    })
  }

  /** The largest used part of a limit of each quota, among the keys in memory. */
  ratios(): ReadonlyMap<string, number> {
    const ratios = new Map(this.#tables.map(({ name }) => [name, 0]))
    const now = this.#deps.clock.now()
    for (const use of this.counts.uses)
      for (const limit of this.#countedOf(use)?.limits ?? []) {
        const used = usedAt(this.counts.of(use, limit.span), limit, now)
        ratios.set(use.quota, Math.max(ratios.get(use.quota) ?? 0, used / limit.most))
      }
    return ratios
  }

  #countedOf({ quota, key }: QuotaUse): CountedQuota | undefined {
    const table = this.#tables.find(({ name }) => name === quota)
    return table === undefined ? undefined : countedBy(table, key)
  }

  #room(quotas: readonly CountedQuota[], need: Amounts, from: QueueTime): QueueTime {
    return this.#roomBy(quotas, need, { from, roomOf: firstRoom })
  }

  #roomBy(quotas: readonly CountedQuota[], need: Amounts, { from, roomOf }: Search): QueueTime {
    return firstCommonRoom(this.#usesOf(quotas), need, from, roomOf)
  }

  #usesOf(quotas: readonly CountedQuota[]): readonly (LimitedUse & { readonly quota: CountedQuota })[] {
    return quotas.flatMap((quota) => quota.limits.map((limit) => ({ quota, limit, slices: this.counts.of(quota, limit.span) })))
  }

  #asked<T>(origin: Origin, decide: (quotas: readonly CountedQuota[]) => T): Promise<T | undefined> | T | undefined {
    if (this.#tables.length === 0) return undefined
    const quotas = this.of(origin)
    if (quotas.length === 0) return undefined
    const loading = this.counts.load(quotas)
    return loading === undefined ? decide(quotas) : loading.then(() => decide(quotas))
  }

  #refusal(quotas: readonly CountedQuota[], need: Amounts, measure: QuotaMeasure): SmtpReply | undefined {
    const now = this.#deps.clock.now()
    for (const one of quotas) {
      const isTooLarge = one.limits.some((limit) => need[limit.measure] > limit.most)
      const wait = this.#room([one], need, now) - now
      if (!isTooLarge && wait <= longestHold(one.table)) continue
      if (!isTooLarge) this.#deps.used(this.statesOf(one))
      return refusalOf(measure === 'messages' ? 'too much mail' : 'too many recipients', one, isTooLarge ? undefined : wait)
    }
    return undefined
  }

  #charge(
    content: ContentId,
    quotas: readonly CountedQuota[],
    { origin: { sender }, recipients, expires = Infinity }: SubmittedMail,
  ): Charged {
    const need = { messages: 1, recipients }
    const refusal = this.#refusal(quotas, { messages: 1, recipients: 0 }, 'messages') ?? this.#refusal(quotas, need, 'recipients')
    if (refusal !== undefined) return { refusal }
    const { at, by } = this.planOf(quotas, need)
    if (by !== null) this.#deps.used(this.statesOf(by.quota))
    if (by !== null && expires <= at) return { refusal: refusalOf('too much mail', by.quota, at - this.#deps.clock.now()) }
    const charges = this.chargesOf(quotas, need, at)
    const hold = by === null ? null : { until: at, request: requestOf(by, need, sender) }
    this.#charged.set(content, { quotas, end: this.counts.add(charges) })
    return { charges, hold }
  }

  #roomOf(by: CountedQuota, limit: QuotaLimit, need: Amounts, from: QueueTime): QueueTime {
    return this.#room([{ ...by, limits: [limit] }], need, from)
  }
}

/** The request of a message that a quota holds. */
export const requestOf = ({ quota: { quota }, limit }: NonNullable<Plan['by']>, { recipients }: Amounts, sender: string): string =>
  quotaRequestOf({ quota, limit: limit.text, recipients, sender })

/** `retryAfter` is absent for mail that a limit never has room for. */
const refusalOf = (what: 'too much mail' | 'too many recipients', { key }: QuotaUse, retryAfter: Duration | undefined): SmtpReply => ({
  code: 450,
  status: '4.7.1',
  text: `Error: ${what} from ${shownKey(key)}`,
  limit: 'quota',
  retryAfter,
})

/** False for mail of a class that the quota does not count, and before the class is known. */
const isOfClass = ({ classes }: QuotaTable, { class: name }: Origin): boolean =>
  classes.length === 0 || (name !== undefined && classes.includes(name))

/** The limits of a key; undefined for a quota that does not count it. */
export function countedBy(table: QuotaTable, written: string): CountedQuota | undefined {
  const { name: quota, match, exceptions } = table
  const key = countedKey(table.key, written)
  const limits = exceptions.get(key.toLowerCase()) ?? table.limits
  const isCounted = limits.length > 0 && (match.length === 0 || match.some((pattern) => matchesPattern(pattern, key)))
  return isCounted ? { quota, key, table, limits } : undefined
}
