/**
 * The instants of times in a zone. A time that summer time leaves out is the first instant after the gap; a time that occurs twice is
 * the first of both. Pure.
 */
import { DAY, type Duration, type WallTime } from '../system/clock.ts'
import { zoneOffset } from '../system/calendar/time-zone.ts'

/** A date and time of a zone, as the instant at which UTC has it. */
export type ZoneTime = number

interface ZoneInstant {
  readonly at: WallTime
  /** False when the zone leaves the time out. */
  readonly exists: boolean
}

/** The date and time that a zone has at an instant. */
export const zoneTimeAt = (zone: string, at: WallTime): ZoneTime => at + zoneOffset(zone, at)

/** The offsets before and after a time. They differ only when the zone changes its offset within a day of it. */
export interface Offsets {
  readonly before: Duration
  readonly after: Duration
}

export const offsetsAround = (zone: string, from: ZoneTime, to: ZoneTime): Offsets => ({
  before: zoneOffset(zone, from - DAY),
  after: zoneOffset(zone, to + DAY),
})

/** The instant of a time, with offsets around it. */
export function instantOf(zone: string, time: ZoneTime, { before, after }: Offsets): ZoneInstant {
  if (before === after) return { at: time - before, exists: true }
  const [first, second] = [time - Math.max(before, after), time - Math.min(before, after)]
  for (const at of [first, second]) if (zoneTimeAt(zone, at) === time) return { at, exists: true }
  return { at: changeBetween(zone, first, second), exists: false }
}

/** The first instant with the offset of `end`, which is another one than that of `begin`. */
function changeBetween(zone: string, begin: WallTime, end: WallTime): WallTime {
  const offset = zoneOffset(zone, end)
  let [old, changed] = [begin, end]
  while (changed - old > 1) {
    const middle = Math.floor((old + changed) / 2)
    if (zoneOffset(zone, middle) === offset) changed = middle
    else old = middle
  }
  return changed
}
