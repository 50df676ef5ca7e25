/**
 * Kinds of parameter values. Each kind parses a value from TOML, the environment or `-o` (a string, a number, a boolean or a
 * list), or reports what it expected.
 */
import { DAY, type Duration } from '../../system/clock.ts'
import { parseDuration } from '../../system/duration.ts'
import { shown } from '../../system/shown-value.ts'

export type Reading<T> = { readonly value: T } | { readonly wrong: string }

export interface Kind<T> {
  (given: unknown): Reading<T>
  /** Unit in which a time without a unit is read, as in Postfix (postconf(5) names the unit of each parameter). */
  readonly unit?: TimeUnit
}

export type TimeUnit = 's' | 'h' | 'd'

/** Makes a kind from `parse`, which returns undefined for a value that is not `expected`. */
export const kind =
  <T>(expected: string, parse: (given: unknown) => T | undefined): Kind<T> =>
  (given) => {
    const value = parse(given)
    return value === undefined ? { wrong: `expected ${expected}, got ${shown(given)}` } : { value }
  }

const SIZE_UNITS: Readonly<Record<string, number>> = { '': 1, k: 1024, m: 1024 ** 2, g: 1024 ** 3 }

function parseSize(text: string | number): number | undefined {
  const match = /^(\d+)\s*([kmg]?)b?$/i.exec(String(text).trim())
  const unit = SIZE_UNITS[match?.[2]?.toLowerCase() ?? '']
  return match === null || unit === undefined ? undefined : Number(match[1]) * unit
}

/** Makes a kind of a single value: a text, a number or a boolean. */
const read = <T>(expected: string, parse: (value: string | number | boolean) => T | undefined): Kind<T> =>
  kind(expected, (given) =>
    typeof given === 'string' || typeof given === 'number' || typeof given === 'boolean' ? parse(given) : undefined,
  )

const TRUE = new Set(['yes', 'true', 'on', '1'])
const FALSE = new Set(['no', 'false', 'off', '0'])

/** Appends `unit` to each number without a unit. All other text stays unchanged. */
export const withUnit = (text: string, unit: TimeUnit): string =>
  text.replaceAll(/(?<![\w.])\d+(?:\.\d+)?(?![\w.]|\s*[a-zµ])/g, (figure) => `${figure}${unit}`)

const durationIn = (unit: TimeUnit): Kind<Duration> =>
  Object.assign(
    read<Duration>('a time such as "300s", "5m" or "2d"', (v) =>
      typeof v === 'boolean' ? undefined : parseDuration(withUnit(String(v).trim(), unit)),
    ),
    { unit },
  )

/** A time. A number without a unit is in seconds. */
export const duration = durationIn('s')
/** A time of at most a year. A number without a unit is in seconds. */
export const durationWithinYear: Kind<Duration> = Object.assign(
  read<Duration>('a time of at most 365d, such as "7d"', (v) => {
    const span = typeof v === 'boolean' ? undefined : parseDuration(withUnit(String(v).trim(), 's'))
    return span === undefined || span > 365 * DAY ? undefined : span
  }),
  { unit: 's' as const },
)
/** A time. A number without a unit is in days. */
export const durationInDays = durationIn('d')
export const size = read<number>('a size in bytes', (v) => (typeof v === 'boolean' ? undefined : parseSize(v)))
export const flag = read<boolean>('yes or no', (v) => {
  const word = String(v).toLowerCase()
  return TRUE.has(word) ? true : FALSE.has(word) ? false : undefined
})
/** A text that may have several lines. */
export const textBlock = read<string>('a text', (v) => String(v))
/**
 * A text of one line. A line break would begin another line of the log or another reply in a greeting. The problem does not repeat the
 * text, which may have a password.
 */
export const text: Kind<string> = (given) => {
  const reading = textBlock(given)
  if ('wrong' in reading || !/(?!\t)\p{Cc}/u.test(reading.value)) return reading
  return { wrong: 'must not have control characters, such as line breaks' }
}
export const fraction = read<number>('a number of at least 0', (v) =>
  v !== '' && Number(v) >= 0 && Number.isFinite(Number(v)) ? Number(v) : undefined,
)

/** A part of a whole. */
export const factor = read<number>('a number above 0 and below 1, such as 0.5', (v) =>
  typeof v !== 'boolean' && v !== '' && Number(v) > 0 && Number(v) < 1 ? Number(v) : undefined,
)

export const count = (min = 0, max = Number.MAX_SAFE_INTEGER): Kind<number> =>
  read(max < Number.MAX_SAFE_INTEGER ? `a whole number from ${min} to ${max}` : `a whole number of at least ${min}`, (v) =>
    typeof v !== 'boolean' && /^\d+$/.test(String(v)) && Number(v) >= min && Number(v) <= max ? Number(v) : undefined,
  )

/** A limit: an amount, or a part of another limit in percent. */
export type Amount = number | { readonly percent: number }

const percentIn = (given: unknown): number | undefined => {
  const match = /^(\d+(?:\.\d+)?)\s*%$/.exec(String(given).trim())
  return match === null ? undefined : Number(match[1])
}

/** An amount of a kind, or a percentage. */
export const amount =
  (of: Kind<number>): Kind<Amount> =>
  (given) => {
    const percent = typeof given === 'string' ? percentIn(given) : undefined
    if (percent !== undefined) return { value: { percent } }
    const reading = of(given)
    return 'value' in reading ? reading : { wrong: reading.wrong.replace(', got', ', or a part such as "20%", got') }
  }

/** A part of a whole, in percent. */
export const percentage = read<number>('a percentage above 0% and below 100%, such as "95%"', (v) => {
  const percent = percentIn(v)
  return percent !== undefined && percent > 0 && percent < 100 ? percent : undefined
})

export const oneOf = <const T extends string>(...words: readonly T[]): Kind<T> =>
  read<T>(`one of ${words.join(', ')}`, (v) => words.find((word) => word === String(v).toLowerCase()))

const areTexts = (given: unknown): given is readonly string[] => Array.isArray(given) && given.every((part) => typeof part === 'string')

const parts = (value: string, separator: RegExp): readonly string[] => value.split(separator).filter((part) => part !== '')

const texts = (given: unknown, separator: RegExp): readonly string[] | undefined =>
  typeof given === 'string' ? parts(given.trim(), separator) : areTexts(given) ? given : undefined

/** A single text is split at commas and blanks. */
export const list = kind('a list of texts', (given) => texts(given, /[,\s]+/))

/** Only these words are allowed, in upper or lower case. */
export const words = <const T extends string>(...known: readonly T[]): Kind<readonly T[]> =>
  kind(`words out of ${known.join(', ')}`, (given) => {
    const meant = texts(given, /[,\s]+/)?.map((word) => known.find((candidate) => candidate === word.toLowerCase()))
    return meant?.every((word) => word !== undefined) ? meant : undefined
  })

/** Only these words are allowed, and at least one is required. */
export const someWords = <const T extends string>(...known: readonly T[]): Kind<readonly T[]> =>
  kind(`one or more of ${known.join(', ')}`, (given) => {
    const reading = words(...known)(given)
    return 'value' in reading && reading.value.length > 0 ? reading.value : undefined
  })

/** Address families, in the order of a listing. */
export const FAMILIES = ['ipv4', 'ipv6'] as const
export type Family = (typeof FAMILIES)[number]

/** The address families of inet_protocols; `all` is both. */
export const families: Kind<readonly Family[]> = kind('all, ipv4, ipv6, or "ipv4, ipv6"', (given) => {
  const reading = someWords('all', ...FAMILIES)(given)
  if (!('value' in reading)) return undefined
  return FAMILIES.filter((family) => reading.value.includes('all') || reading.value.includes(family))
})

/** Extensions of SMTP that smtpd_discard_ehlo_keywords and smtp_discard_ehlo_keywords may name (Postfix ehlo_mask.c). */
export const EHLO_KEYWORDS = [
  '8bitmime',
  'auth',
  'chunking',
  'deliverby',
  'dsn',
  'enhancedstatuscodes',
  'etrn',
  'futurerelease',
  'mt-priority',
  'pipelining',
  'silent-discard',
  'size',
  'smtputf8',
  'starttls',
  'vrfy',
  'xclient',
  'xforward',
] as const
export type EhloKeyword = (typeof EHLO_KEYWORDS)[number]

/** Elements may contain blanks. A single text is split at commas. */
export const lines = kind('a list of texts', (given) => texts(given, /\s*,\s*/))

/** One or more times. Numbers without a unit are hours. */
export const durationsInHours: Kind<readonly Duration[]> = Object.assign(
  kind<readonly Duration[]>('a time such as "4h" or a list of times', (given) => {
    const times: readonly unknown[] = typeof given === 'string' ? parts(given, /[,\s]+/) : Array.isArray(given) ? given : [given]
    const spans = times.map((time) =>
      typeof time === 'string' || typeof time === 'number' ? parseDuration(withUnit(String(time), 'h')) : undefined,
    )
    return spans.every((time) => time !== undefined) ? spans : undefined
  }),
  { unit: 'h' as const },
)

/** Change of a concurrency window on feedback: a constant, or a fraction of 1 / concurrency (Postfix SCHEDULER_README). */
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

/** Limit of a count: a number, or a multiple of the concurrency limit of the destination. */
export interface ConcurrencyMultiple {
  readonly count: number
  readonly perConcurrency: boolean
}

export const concurrencyMultiple = read<ConcurrencyMultiple>('a whole number from 1, or a multiple such as "5*concurrency"', (v) => {
  const match = /^([1-9]\d{0,6})(\*concurrency)?$/.exec(String(v).replaceAll(' ', ''))
  return match === null ? undefined : { count: Number(match[1]), perConcurrency: match[2] !== undefined }
})

/** Protocols of proxies in front of the SMTP server (Postfix smtpd_upstream_proxy_protocol). */
export type ProxyProtocol = '' | 'haproxy'

export const proxyProtocol = read<ProxyProtocol>('haproxy, or nothing', (v) => (v === '' || v === 'haproxy' ? v : undefined))

/** `[[smtpd]]` tables. An empty text means no tables. */
export const listeners = kind<readonly Readonly<Record<string, unknown>>[]>('[[smtpd]] tables, each with address', (given) => {
  if (given === '') return []
  return Array.isArray(given) && given.every((table) => typeof table === 'object' && table !== null) ? given : undefined
})
