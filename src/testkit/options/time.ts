/** Times and sizes in the test kit: sizes as in a configuration, and times: text as in a configuration (`'5m'`, `'2d'`), or a number of seconds. */
import * as is from '../../config/values/values.ts'
import { parseDuration } from '../../system/duration.ts'
import { shown } from '../../system/shown-value.ts'
import { DAY, SECOND, type Duration } from '../../system/clock.ts'

/** A span of time: `'300ms'`, `'5m'`, `'36h'`, `'2d'`, or a number of seconds. At most ten years, so that milliseconds are noticed. */
export type Time = string | number

/** Ten years. */
const LONGEST: Duration = 3_653 * DAY

/** Converts to milliseconds. Throws a TypeError for a text that is not a time. */
export function toDuration(time: Time): Duration {
  const duration = parseDuration(String(time))
  if (duration === undefined) throw new TypeError(`expected a time such as "5m" or "2d", or a number of seconds, got ${shown(time)}`)
  return atMost(duration, time)
}

function atMost(duration: Duration, given: Time): Duration {
  if (duration <= LONGEST) return duration
  throw new TypeError(`expected at most ten years, in seconds and not in milliseconds, got ${shown(given)}`)
}

/** Converts a time that may be negative, such as `'-5m'` or -300, to milliseconds. Throws a TypeError as `toDuration` does. */
export function toSignedDuration(time: Time): Duration {
  const [, sign = '', size = ''] = /^\s*(-?)(.*)$/s.exec(String(time)) ?? []
  const duration = parseDuration(size)
  if (duration !== undefined) return sign === '' ? atMost(duration, time) : -atMost(duration, time)
  throw new TypeError(`expected a time such as "5m" or "-5m", or a number of seconds, got ${shown(time)}`)
}

/** Converts a size such as `'20M'` to bytes. Throws a TypeError for any other text. */
export function toSize(size: string | number): number {
  const reading = is.size(size)
  if ('value' in reading) return reading.value
  throw new TypeError(`expected a size such as "20M", or a number of bytes, got ${shown(size)}`)
}

/** Formats milliseconds in the syntax of configurations and scripts. */
export const toText = (duration: Duration): string => `${duration}ms`

export const inSeconds = (duration: Duration): number => duration / SECOND

/** Formats a duration such as `+4h 5m`, without units that are zero. */
export function sinceText(duration: Duration): string {
  const units: [string, number][] = [
    ['d', 86_400_000],
    ['h', 3_600_000],
    ['m', 60_000],
    ['s', 1_000],
    ['ms', 1],
  ]
  let rest = duration
  const parts = units.flatMap(([unit, size]) => {
    const count = Math.floor(rest / size)
    rest -= count * size
    return count === 0 ? [] : [`${count}${unit}`]
  })
  return `+${parts.length === 0 ? '0s' : parts.join(' ')}`
}
