/**
 * Delays in the format of Postfix's log: seconds with two significant digits, at most two decimals and no trailing zeros
 * (delay_logging_resolution_limit).
 */
import type { Duration } from '../../system/clock.ts'

/** Formats a delay in ms: 4 → `0`, 5 → `0.01`, 123 → `0.12`, 999 → `1`, 1260 → `1.3`, 10400 → `10`, 150700 → `151`. */
export function formatDelay(delay: Duration): string {
  const millis = Math.max(0, delay)
  const scale = millis < 1_000 ? 100 : millis < 10_000 ? 10 : 1
  return String(Math.round((millis * scale) / 1_000) / scale)
}
