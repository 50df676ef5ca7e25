/** Times as people write them in policies: `300s`, `1.5h`, Exim's `1h30m`, a bare number of seconds. */
import { DAY, type Duration, HOUR, MINUTE, SECOND } from '../mail/clock.ts'

const UNITS: Readonly<Record<string, Duration>> = {
  us: 0.001,
  µs: 0.001,
  ms: 1,
  s: SECOND,
  m: MINUTE,
  h: HOUR,
  d: DAY,
  w: 7 * DAY,
}

/** Milliseconds, whole microseconds being the finest grain; undefined for what is no time. */
export function parseTime(text: string): Duration | undefined {
  const trimmed = text.trim()
  if (/^\d+(\.\d+)?$/.test(trimmed)) return Number(trimmed) * SECOND
  if (!/^(\d+(\.\d+)?(us|µs|ms|s|m|h|d|w))+$/.test(trimmed)) return undefined
  let total = 0
  for (const [, figure, unit] of trimmed.matchAll(/(\d+(?:\.\d+)?)(us|µs|ms|s|m|h|d|w)/g))
    total += Number(figure) * (UNITS[unit ?? ''] ?? 0)
  return Math.round(total * 1e6) / 1e6
}

/** The shortest exact writing with one unit: 300000 → `5m`, 4000000 → `4000s`, 90000 → `90s`. */
export function formatTime(duration: Duration): string {
  for (const unit of ['w', 'd', 'h', 'm', 's', 'ms']) {
    const figure = duration / (UNITS[unit] ?? 1)
    if (figure >= 1 && Number.isInteger(figure)) return `${figure}${unit}`
  }
  return duration === 0 ? '0s' : `${Math.round(duration * 1e6) / 1000}us`
}
