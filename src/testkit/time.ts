/** Times as users of the test kit write them: `'5m'`, `'2d'`, or a number of seconds, as in a configuration. */
import { parseDuration } from '../config/values.ts'
import { SECOND, type Duration } from '../mail/clock.ts'

export type Time = string | number

export function toDuration(time: Time): Duration {
  const duration = parseDuration(time)
  if (duration === undefined)
    throw new TypeError(`expected a time such as "5m" or "2d", or a number of seconds, got ${JSON.stringify(time)}`)
  return duration
}

/** As a configuration or a script would have it. */
export const toText = (duration: Duration): string => `${duration}ms`

export const inSeconds = (duration: Duration): number => duration / SECOND

/** `+4h 5m`, as a story has it: the units that are not zero. */
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
