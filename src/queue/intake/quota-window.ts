/**
 * Windows of quotas. A span is cut into 12 slices. What a key has used is the sum of the current slice and the 12 before it, which is never less than
 * what it used within the span, and at most a twelfth of the span older. Pure.
 */
import type { QuotaLimit } from '../../config/values/tables/quota-table.ts'
import type { Duration, QueueTime } from '../../system/clock.ts'

const SLICES = 12

/** Mail of a slice, or mail to charge. */
export interface Amounts {
  readonly messages: number
  readonly recipients: number
}

/** Mail by begin of the slice. Mail that is held is charged to slices ahead. */
export type Slices = ReadonlyMap<QueueTime, Amounts>

const sliceOf = (span: Duration): Duration => Math.ceil(span / SLICES)

/** Begin of the slice of a time. */
export function sliceAt(at: QueueTime, span: Duration): QueueTime {
  const slice = sliceOf(span)
  return Math.floor(at / slice) * slice
}

/** Time from which a slice is in no window. */
export const endOfUse = (begin: QueueTime, span: Duration): QueueTime => begin + (SLICES + 1) * sliceOf(span)

/** Mail that a limit counts as used at a time. */
export function usedAt(slices: Slices, { span, measure }: Pick<QuotaLimit, 'span' | 'measure'>, at: QueueTime): number {
  const slice = sliceOf(span)
  let begin = sliceAt(at, span)
  let used = 0
  for (let n = 0; n <= SLICES; n++, begin -= slice) used += slices.get(begin)?.[measure] ?? 0
  return Math.max(0, used)
}

/** Mail that is charged to slices ahead. */
export function plannedAfter(slices: Slices, { measure }: Pick<QuotaLimit, 'measure'>, at: QueueTime): number {
  let planned = 0
  for (const [begin, amounts] of slices) if (begin > at) planned += amounts[measure]
  return Math.max(0, planned)
}

/**
 * The first time, `from` or later, at which a limit has room, and after which no mail is charged, so that the order of mail stays. An empty window has
 * room for any mail.
 */
export function firstRoom(slices: Slices, limit: QuotaLimit, need: Amounts, from: QueueTime): QueueTime {
  const slice = sliceOf(limit.span)
  const first = sliceAt(from, limit.span)
  let begin = first
  for (const [charged, amounts] of slices) if (charged > begin && amounts[limit.measure] > 0) begin = charged
  for (; ; begin += slice) {
    const used = usedAt(slices, limit, begin)
    if (used === 0 || used + need[limit.measure] <= limit.most) return begin === first ? from : begin
  }
}

/**
 * The first time, `from` or later, at which a limit has room for mail that is planned anew: no window that has it exceeds the limit, also with mail
 * that is charged later, which it may pass. An empty window has room for any mail.
 */
export function firstRoomBetween(slices: Slices, limit: QuotaLimit, need: Amounts, from: QueueTime): QueueTime {
  const slice = sliceOf(limit.span)
  const first = sliceAt(from, limit.span)
  for (let begin = first; ; begin += slice) {
    let used = 0
    for (let n = 0; n <= SLICES; n++) used = Math.max(used, usedAt(slices, limit, begin + n * slice))
    if (used === 0 || used + need[limit.measure] <= limit.most) return begin === first ? from : begin
  }
}

/** A limit, with what its key has used. */
export interface LimitedUse {
  readonly slices: Slices
  readonly limit: QuotaLimit
}

/** The first time, `from` or later, at which all limits have room, as `roomOf` has it. */
export function firstCommonRoom(
  uses: readonly LimitedUse[],
  need: Amounts,
  from: QueueTime,
  roomOf: typeof firstRoom = firstRoom,
): QueueTime {
  for (let at = from; ;) {
    const next = uses.reduce((latest, { slices, limit }) => Math.max(latest, roomOf(slices, limit, need, at)), at)
    if (next === at) return at
    at = next
  }
}

/** Search for room. */
export interface Search {
  /** Its begin. */
  readonly from: QueueTime
  /** The way in which a limit has room. */
  readonly roomOf: typeof firstRoom
}

/**
 * The limit for which mail waits at `now`: the one that has room last. Several limits have it at the same time where mail that waits already keeps its
 * place in all of them. Of these, it is the one that has no room before: for this mail alone, or else for all that waits together. Undefined without limits.
 */
export function holdingUse<T extends LimitedUse>(
  uses: readonly T[],
  need: Amounts,
  { from, roomOf, now }: Search & { readonly now: QueueTime },
): T | undefined {
  const rooms = uses.map((use) => ({ use, at: roomOf(use.slices, use.limit, need, from) }))
  const at = Math.max(...rooms.map((one) => one.at))
  const [last, ...others] = rooms.filter((one) => one.at === at).map(({ use }) => use)
  if (last === undefined || others.length === 0) return last
  const before = at - 1
  const usedUp = [last, ...others].filter(({ slices, limit }) => firstRoomBetween(slices, limit, need, before) > before)
  const [first = last, ...further] = usedUp.length > 0 ? usedUp : [last, ...others]
  return further.reduce((best, one) => (roomForAll(one, need, now) > roomForAll(best, need, now) ? one : best), first)
}

/** The first time from which a limit would have room for mail and all that is charged to slices ahead. */
function roomForAll({ slices, limit }: LimitedUse, need: Amounts, now: QueueTime): QueueTime {
  const past = new Map([...slices].filter(([begin]) => begin <= now))
  return firstRoom(past, limit, { ...need, [limit.measure]: need[limit.measure] + plannedAfter(slices, limit, now) }, now)
}
