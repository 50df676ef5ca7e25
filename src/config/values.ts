/**
 * The kinds of value a parameter can have. Each takes what TOML, the environment and `-o` give (a string, a number, a
 * boolean, a list) and yields what the program uses, or says what it expected.
 */
import type { Duration } from '../mail/clock.ts'

/** What the program uses, or what is wrong, in words. */
export type Reading<T> = { readonly value: T } | { readonly wrong: string }

export type Kind<T> = (given: unknown) => Reading<T>

/** Reads with `parse`, which yields undefined for what is not as `expected`. */
export const kind =
  <T>(expected: string, parse: (given: unknown) => T | undefined): Kind<T> =>
  (given) => {
    const value = parse(given)
    return value === undefined ? { wrong: `expected ${expected}, got ${JSON.stringify(given)}` } : { value }
  }

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

/** The same for what stands alone: a text, a number or a boolean. */
const read = <T>(expected: string, parse: (value: string | number | boolean) => T | undefined): Kind<T> =>
  kind(expected, (given) =>
    typeof given === 'string' || typeof given === 'number' || typeof given === 'boolean' ? parse(given) : undefined,
  )

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

export const count = (min = 0, max = Number.MAX_SAFE_INTEGER): Kind<number> =>
  read(max < Number.MAX_SAFE_INTEGER ? `a whole number from ${min} to ${max}` : `a whole number of at least ${min}`, (v) =>
    typeof v !== 'boolean' && /^\d+$/.test(String(v)) && Number(v) >= min && Number(v) <= max ? Number(v) : undefined,
  )

export const oneOf = <const T extends string>(...words: readonly T[]): Kind<T> =>
  read<T>(`one of ${words.join(', ')}`, (v) => words.find((word) => word === String(v).toLowerCase()))

const areTexts = (given: unknown): given is readonly string[] => Array.isArray(given) && given.every((part) => typeof part === 'string')

/** The parts of a text between separators, without empty ones. */
const parts = (value: string, separator: RegExp): readonly string[] => value.split(separator).filter((part) => part !== '')

/** A list of texts as it is; a single text in its parts. */
const texts = (given: unknown, separator: RegExp): readonly string[] | undefined =>
  typeof given === 'string' ? parts(given.trim(), separator) : areTexts(given) ? given : undefined

/** A list of texts; a single text is split at commas and blanks. */
export const list = kind('a list of texts', (given) => texts(given, /[,\s]+/))

/** A list in which only these words may stand. */
export const words = <const T extends string>(...known: readonly T[]): Kind<readonly T[]> =>
  kind(`words out of ${known.join(', ')}`, (given) => {
    const meant = texts(given, /[,\s]+/)?.map((word) => known.find((candidate) => candidate === word.toLowerCase()))
    return meant?.every((word) => word !== undefined) ? meant : undefined
  })

/** A list of texts that contain blanks; a single text is split at commas. */
export const lines = kind('a list of texts', (given) => texts(given, /\s*,\s*/))

/** A list of times, or one. */
export const durations = kind<readonly Duration[]>('a time such as "4h" or a list of times', (given) => {
  const times: readonly unknown[] = typeof given === 'string' ? parts(given, /[,\s]+/) : Array.isArray(given) ? given : [given]
  const spans = times.map((time) => (typeof time === 'string' || typeof time === 'number' ? parseDuration(time) : undefined))
  return spans.every((time) => time !== undefined) ? spans : undefined
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

const LISTENER_TLS: readonly ListenerBlock['tls'][] = ['none', 'may', 'encrypt', 'wrapper']
const LISTENER_AUTH: readonly ListenerBlock['auth'][] = ['none', 'may', 'required']

function listener(given: unknown): ListenerBlock | undefined {
  if (typeof given !== 'object' || given === null) return undefined
  const { address, tls = 'none', auth = 'none', ...others } = given as Readonly<Record<string, unknown>>
  const [tlsMeant, authMeant] = [LISTENER_TLS.find((word) => word === tls), LISTENER_AUTH.find((word) => word === auth)]
  const isWhole = typeof address === 'string' && tlsMeant !== undefined && authMeant !== undefined
  return isWhole && Object.keys(others).length === 0 ? { address, tls: tlsMeant, auth: authMeant } : undefined
}

/** `[[smtpd]]` tables; nothing when empty. */
export const listeners = kind<readonly ListenerBlock[]>(
  '[[smtpd]] tables, each with address, tls (none, may, encrypt or wrapper) and auth (none, may or required)',
  (given) => {
    if (given === '') return []
    const blocks = Array.isArray(given) ? given.map(listener) : [undefined]
    return blocks.every((block) => block !== undefined) ? blocks : undefined
  },
)
