/**
 * The kinds of value a parameter can have, each as a zod schema that takes what TOML, the environment and `-o` give
 * (a string, a number, a boolean, a list) and yields what the program uses.
 */
import { z } from 'zod'
import type { Duration } from '../mail/clock.ts'

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 }

/** `"300s"`, `"1.5h"`, `"2d"`, `"250ms"`, or a number of seconds; undefined when it is none of these. */
export function parseDuration(text: string | number): Duration | undefined {
  const match = /^(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|w)?$/.exec(String(text).trim())
  const unit = UNITS[match?.[2] ?? 's']
  return match === null || unit === undefined ? undefined : Math.round(Number(match[1]) * unit)
}

const SIZE_UNITS: Readonly<Record<string, number>> = { '': 1, k: 1024, m: 1024 ** 2, g: 1024 ** 3 }

function parseSize(text: string | number): number | undefined {
  const match = /^(\d+)\s*([kmg]?)b?$/i.exec(String(text).trim())
  const unit = SIZE_UNITS[match?.[2]?.toLowerCase() ?? '']
  return match === null || unit === undefined ? undefined : Number(match[1]) * unit
}

/** A schema that reads a value with `parse` and complains with `expected` when that yields undefined. */
function read<T>(expected: string, parse: (value: string | number | boolean) => T | undefined): z.ZodType<T> {
  return z.any().transform((value: unknown, context) => {
    const scalar = typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
    const parsed = scalar ? parse(value) : undefined
    if (parsed !== undefined) return parsed
    context.addIssue({ code: 'custom', message: `expected ${expected}, got ${JSON.stringify(value)}` })
    return z.NEVER
  })
}

const TRUE = new Set(['yes', 'true', 'on', '1'])
const FALSE = new Set(['no', 'false', 'off', '0'])

export const duration = read<Duration>('a time such as "300s", "5m" or "2d"', (v) =>
  typeof v === 'boolean' ? undefined : parseDuration(v),
)
export const size = read<number>('a size in bytes', (v) => (typeof v === 'boolean' ? undefined : parseSize(v)))
export const flag = read<boolean>('yes or no', (v) => {
  const word = String(v).toLowerCase()
  return TRUE.has(word) ? true : FALSE.has(word) ? false : undefined
})
export const text = read<string>('a text', (v) => String(v))
export const fraction = read<number>('a number of at least 0', (v) =>
  v !== '' && Number(v) >= 0 && Number.isFinite(Number(v)) ? Number(v) : undefined,
)

export const count = (min = 0, max = Number.MAX_SAFE_INTEGER): z.ZodType<number> =>
  read(max < Number.MAX_SAFE_INTEGER ? `a whole number from ${min} to ${max}` : `a whole number of at least ${min}`, (v) =>
    typeof v !== 'boolean' && /^\d+$/.test(String(v)) && Number(v) >= min && Number(v) <= max ? Number(v) : undefined,
  )

export const oneOf = <const T extends string>(...words: readonly T[]): z.ZodType<T> =>
  read<T>(`one of ${words.join(', ')}`, (v) => words.find((word) => word === String(v).toLowerCase()))

/** A list of texts; a single text is split at commas and blanks. */
export const list: z.ZodType<readonly string[]> = z.union(
  [z.array(z.string()), z.string().transform((value) => value.split(/[,\s]+/).filter((part) => part !== ''))],
  { error: 'expected a list of texts' },
)

/** A list in which only these words may stand. */
export const words = <const T extends string>(...known: readonly T[]): z.ZodType<readonly T[]> =>
  list.transform((given, context) => {
    const meant = given.map((word) => known.find((candidate) => candidate === word.toLowerCase()))
    if (meant.every((word) => word !== undefined)) return meant
    context.addIssue({ code: 'custom', message: `expected words out of ${known.join(', ')}, got ${JSON.stringify(given.join(', '))}` })
    return z.NEVER
  })

/** A list of texts that contain blanks; a single text is split at commas. */
export const lines: z.ZodType<readonly string[]> = z.union(
  [
    z.array(z.string()),
    z.string().transform((value) =>
      value
        .split(',')
        .map((part) => part.trim())
        .filter((part) => part !== ''),
    ),
  ],
  { error: 'expected a list of texts' },
)

/** A list of times, or one. */
export const durations: z.ZodType<readonly Duration[]> = z.any().transform((value: unknown, context) => {
  const parts: readonly unknown[] =
    typeof value === 'string' ? value.split(/[,\s]+/).filter((part) => part !== '') : Array.isArray(value) ? value : [value]
  const parsed = parts.map((part) => (typeof part === 'string' || typeof part === 'number' ? parseDuration(part) : undefined))
  if (parsed.every((time) => time !== undefined)) return parsed
  context.addIssue({ code: 'custom', message: `expected a time such as "4h" or a list of times, got ${JSON.stringify(value)}` })
  return z.NEVER
})

/** How much a window moves on feedback: a constant or a fraction divided by the window itself (postfix §4.2). */
export interface FeedbackRate {
  readonly rate: number
  readonly perConcurrency: boolean
}

export const feedback = read<FeedbackRate>('a feedback such as "1", "1/5" or "1/concurrency", from 0 to 1', (v) => {
  const match = /^(\d+(?:\.\d+)?)(?:\/(\d+(?:\.\d+)?|concurrency))?$/.exec(String(v).replaceAll(' ', ''))
  if (match === null) return undefined
  const perConcurrency = match[2] === 'concurrency'
  const rate = Number(match[1]) / (match[2] === undefined || perConcurrency ? 1 : Number(match[2]))
  return rate >= 0 && rate <= 1 ? { rate, perConcurrency } : undefined
})

/** A listener of the SMTP server with rules of its own. */
export interface ListenerBlock {
  readonly address: string
  readonly tls: 'none' | 'may' | 'encrypt' | 'wrapper'
  readonly auth: 'none' | 'may' | 'required'
}

const listener: z.ZodType<ListenerBlock> = z.strictObject(
  {
    address: z.string(),
    tls: z.enum(['none', 'may', 'encrypt', 'wrapper']).default('none'),
    auth: z.enum(['none', 'may', 'required']).default('none'),
  },
  { error: 'expected a table of address, tls (none, may, encrypt or wrapper) and auth (none, may or required)' },
)

/** `[[smtpd]]` tables; nothing when empty. */
export const listeners: z.ZodType<readonly ListenerBlock[]> = z.union([z.array(listener), z.literal('').transform(() => [])], {
  error: 'expected [[smtpd]] tables, each with address, tls (none, may, encrypt or wrapper) and auth (none, may or required)',
})
