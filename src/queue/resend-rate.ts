/** Rates such as `100/min`: messages in a time. */
import { formatDuration, parseDuration } from '../system/duration.ts'
import type { Duration } from '../system/clock.ts'

/** Messages that are sent again in a time. */
export interface ResendRate {
  readonly messages: number
  readonly per: Duration
}

export const RATE = 'messages in a time: 100/min, 5/s, 1000/2h'

const UNITS: Readonly<Record<string, string>> = { s: '1s', min: '1m', m: '1m', h: '1h', d: '1d' }

/** Undefined for another text. */
export function parseRate(text: string): ResendRate | undefined {
  const [, count = '', span = ''] = /^([1-9]\d{0,8})\/(\w+)$/.exec(text) ?? []
  const per = parseDuration(UNITS[span] ?? span)
  return count === '' || per === undefined || per <= 0 ? undefined : { messages: Number(count), per }
}

export const rateText = ({ messages, per }: ResendRate): string => `${messages}/${formatDuration(per)}`
