/**
 * Queue ids in Postfix's long form: seconds and microseconds in base 52, `z`, and a number in base 51. The last part
 * is the row number of the message, which is never given out twice, so an id names one message for ever; ids sort
 * by time as text (postfix mail_queue.h, safe_ultostr.c).
 */
import type { Instant } from './clock.ts'

const ALPHABET = '0123456789BCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz'

/** All pairs of digits in base 52, so that a time is put together from few pieces: a listing writes millions of them. */
const PAIRS: readonly string[] = ALPHABET.split('').flatMap((high, _, digits) => digits.map((low) => high + low))

/** In base 52, with two digits for each of so many pairs at least. */
function encodeTime(value: number, pairs: number): string {
  let text = ''
  for (let rest = value, n = 0; n < pairs || rest > 0; n++) {
    text = `${PAIRS[rest % PAIRS.length]}${text}`
    rest = Math.floor(rest / PAIRS.length)
  }
  return text
}

function encodeRow(row: number): string {
  let text = ''
  for (let rest = row; rest > 0; rest = Math.floor(rest / 51)) text = ALPHABET.charAt(rest % 51) + text
  return text
}

function decode(text: string, base: number): number | undefined {
  let value = 0
  for (const letter of text) {
    const digit = ALPHABET.indexOf(letter)
    if (digit < 0 || digit >= base) return undefined
    value = value * base + digit
  }
  return value
}

/** The queue id of a message by the time its entry was made and its row number. */
export function formatQueueId(createdAt: Instant, row: number): string {
  const seconds = Math.floor(createdAt / 1000)
  const micros = (createdAt - seconds * 1000) * 1000
  return `${encodeTime(seconds, 3)}${encodeTime(micros, 2)}z${encodeRow(row)}`
}

/** What an id says about itself; undefined when it is not one of ours. */
export function parseQueueId(id: string): { readonly createdAt: Instant; readonly row: number } | undefined {
  const mark = id.lastIndexOf('z')
  if (mark < 10 || mark === id.length - 1) return undefined
  const seconds = decode(id.slice(0, mark - 4), 52)
  const micros = decode(id.slice(mark - 4, mark), 52)
  const row = decode(id.slice(mark + 1), 51)
  if (seconds === undefined || micros === undefined || row === undefined || row === 0 || micros % 1000 !== 0) return undefined
  const createdAt = seconds * 1000 + micros / 1000
  return formatQueueId(createdAt, row) === id ? { createdAt, row } : undefined
}
