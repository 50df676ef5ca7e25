/** Offsets of time zones, from the rules that Node has (Intl). */
import { MINUTE, SECOND, type Duration, type WallTime } from '../clock.ts'

/** The formats of the zones in use; one takes a millisecond to create. */
const formats = new Map<string, Intl.DateTimeFormat>()

function formatOf(zone: string): Intl.DateTimeFormat {
  const format =
    formats.get(zone) ??
    new Intl.DateTimeFormat('en-US', {
      timeZone: zone,
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
    })
  formats.set(zone, format)
  return format
}

/** True for a name of the tz database, such as `Europe/Berlin`, and for `UTC`. */
export function isTimeZone(name: string): boolean {
  try {
    formatOf(name)
    return true
  } catch {
    return false
  }
}

/** Time of a zone east of UTC at an instant. */
export function zoneOffset(zone: string, at: WallTime): Duration {
  if (zone === 'UTC') return 0
  const figures = new Map(
    formatOf(zone)
      .formatToParts(new Date(at))
      .map(({ type, value }) => [type, Number(value)] as const),
  )
  const figure = (type: Intl.DateTimeFormatPartTypes): number => figures.get(type) ?? 0
  const wall = Date.UTC(figure('year'), figure('month') - 1, figure('day'), figure('hour'), figure('minute'))
  return Math.round((wall - Math.floor(at / MINUTE) * MINUTE) / SECOND) * SECOND
}
