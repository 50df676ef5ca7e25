/**
 * Queue ids in Postfix's long form: seconds and microseconds in base 52, `z`, and a number in base 51. The number is the row
 * number of the message, which is never reused, so an id is unique. Ids sorted as text are sorted by time (Postfix mail_queue.h,
 * safe_ultostr.c).
 */
import type { QueueTime } from '../system/clock.ts'

const ALPHABET = '0123456789BCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz'

/** All pairs of base-52 digits. Precomputed, because a listing formats millions of ids. */
const PAIRS: readonly string[] = ALPHABET.split('').flatMap((high, _, digits) => digits.map((low) => high + low))

/** Encodes a number in base 52, with at least `pairs` pairs of digits. */
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

/** Queue id of a message by creation time and row number. */
export function formatQueueId(createdAt: QueueTime, row: number): string {
  const seconds = Math.floor(createdAt / 1000)
  const micros = (createdAt - seconds * 1000) * 1000
  return `${encodeTime(seconds, 3)}${encodeTime(micros, 2)}z${encodeRow(row)}`
}

/** Creation time and row number in an id. Undefined for text that formatQueueId never returns. */
export function parseQueueId(id: string): { readonly createdAt: QueueTime; readonly row: number } | undefined {
  const mark = id.lastIndexOf('z')
  if (mark < 10 || mark === id.length - 1) return undefined
  const seconds = decode(id.slice(0, mark - 4), 52)
  const micros = decode(id.slice(mark - 4, mark), 52)
  const row = decode(id.slice(mark + 1), 51)
  if (seconds === undefined || micros === undefined || row === undefined || row === 0 || micros % 1000 !== 0) return undefined
  const createdAt = seconds * 1000 + micros / 1000
  return formatQueueId(createdAt, row) === id ? { createdAt, row } : undefined
}
