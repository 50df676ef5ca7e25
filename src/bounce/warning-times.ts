/**
 * Times of the delay warnings of a message: the ages of delay_warning_time, and its deliver-by time when BY asks for a report then
 * (mode N of RFC 2852). A deliver-by time before the arrival has none: an earlier relay has reported it. Pure.
 */
import { releasedAt, type Message } from '../mail/message.ts'
import { isReturned } from '../mail/message-times.ts'
import type { Duration, QueueTime } from '../system/clock.ts'

type WarnedMessage = Pick<Message, 'arrivedAt' | 'notBefore' | 'deliverBy' | 'byMode' | 'class'>

/** Ages at which the delay warnings of a message are sent, in ms, ascending. */
export type WarningAges = (message: Pick<Message, 'class'>) => readonly Duration[]

/** The deliver-by time at which a delay is reported; undefined without one. */
function reportedTime({ arrivedAt, deliverBy, byMode }: WarnedMessage): QueueTime | undefined {
  return deliverBy === undefined || byMode === undefined || isReturned(byMode) || deliverBy <= arrivedAt ? undefined : deliverBy
}

/** True from the deliver-by time on at which a delay is reported. */
export const isOverdue = (message: WarnedMessage, now: QueueTime): boolean => (reportedTime(message) ?? Infinity) <= now

/** The times, ascending. */
export function warningTimes(ages: WarningAges, message: WarnedMessage): readonly QueueTime[] {
  const start = releasedAt(message)
  const times = ages(message).map((age) => start + age)
  const reported = reportedTime(message)
  return reported === undefined ? times : [...new Set([...times, reported])].toSorted((a, b) => a - b)
}

/** Time of the next warning after the first `warnings` ones; null after the last one. */
export function nextWarning(ages: WarningAges, message: WarnedMessage, warnings: number): QueueTime | null {
  if (message.deliverBy !== undefined) return warningTimes(ages, message)[warnings] ?? null
  const age = ages(message)[warnings]
  return age === undefined ? null : releasedAt(message) + age
}

/** Number of times that a warning at `now` covers. Times that have passed without a warning get none later. */
export const warningsUsed = (
  ages: WarningAges,
  message: WarnedMessage,
  { now, before }: { readonly now: QueueTime; readonly before: number },
): number => Math.max(before, warningTimes(ages, message).filter((at) => at <= now).length)
