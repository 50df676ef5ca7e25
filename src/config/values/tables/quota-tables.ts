/** Reads the `[quota.NAME]` tables, and the parameters that stand for quotas of an hour. */
import { DAY, HOUR, MINUTE, type Duration } from '../../../system/clock.ts'
import { parseDuration } from '../../../system/duration.ts'
import { fieldOfKey, isFieldKey } from '../limit-terms.ts'
import type { Problem } from '../problem.ts'
import {
  isQuotaMember,
  QUOTA_ACTIONS,
  QUOTA_KEYS,
  QUOTA_MEMBERS,
  type QuotaKey,
  type QuotaLimit,
  type QuotaMember,
  type QuotaTable,
} from './quota-table.ts'
import type { RawSettings, RawValue } from '../sources.ts'
import * as is from '../values.ts'

const NAME = /^[a-z0-9](?:[a-z0-9_.-]{0,62}[a-z0-9])?$/
const LIMIT = /^(\d+)(?:\s+(messages|recipients))?\s*\/\s*(\S+)$/

const SHORTEST: Duration = MINUTE
const LONGEST: Duration = 31 * DAY

/** Parameters that stand for quotas of an hour, with their keys. */
const HOURLY = { smtpd_user_hourly_message_limit: 'login', smtpd_sender_hourly_message_limit: 'sender' } as const satisfies Readonly<
  Record<string, QuotaKey>
>

/** A limit; undefined for other text. */
function parseQuotaLimit(text: string): QuotaLimit | undefined {
  const [, most, measure = 'messages', time = ''] = LIMIT.exec(text.trim()) ?? []
  const span = parseDuration(time)
  if (most === undefined || span === undefined || span < SHORTEST || span > LONGEST) return undefined
  if (Number(most) < 1 || Number(most) > Number.MAX_SAFE_INTEGER) return undefined
  return { text: text.trim(), measure: measure as QuotaLimit['measure'], most: Number(most), span }
}

/** Limits with different measures or spans. */
const someLimits = is.kind<readonly QuotaLimit[]>(
  'one or more limits such as "1000/1h" or "20000 recipients/1d", with a number of at least 1 and a time from 1m to 31d, each measure and time once',
  (given) => {
    const texts: readonly unknown[] = Array.isArray(given) ? given : typeof given === 'string' ? given.split(',') : []
    const limits = texts.map((one) => (typeof one === 'string' ? parseQuotaLimit(one) : undefined))
    const isWhole = limits.length > 0 && limits.every((one) => one !== undefined)
    return isWhole && new Set(limits.map(({ measure, span }) => `${measure} ${span}`)).size === limits.length ? limits : undefined
  },
)

const KINDS = {
  keys: is.kind<QuotaKey>(
    `one of ${QUOTA_KEYS.join(', ')}, or header:NAME`,
    (given) => QUOTA_KEYS.find((one) => one === given) ?? (isFieldKey(given) ? given : undefined),
  ),
  limits: someLimits,
  match: is.kind('one or more patterns such as "*@example.com"', (given) => {
    const reading = is.list(given)
    return 'value' in reading && reading.value.length > 0 ? reading.value : undefined
  }),
  classes: is.kind('one or more names of classes such as ["bulk"]', (given) => {
    const reading = is.list(given)
    return 'value' in reading && reading.value.length > 0 ? reading.value : undefined
  }),
  action: is.kind(`one of ${QUOTA_ACTIONS.join(', ')}`, (given) => QUOTA_ACTIONS.find((one) => one === given)),
  hold_limit: is.kind('a time from 1m to 31d, such as "1d"', (given) => {
    const reading = is.duration(given)
    return 'value' in reading && reading.value >= SHORTEST && reading.value <= LONGEST ? reading.value : undefined
  }),
} as const

type Kinds = typeof KINDS
type ValueOf<M extends keyof Kinds> = Kinds[M] extends is.Kind<infer T> ? T : never

interface TableSource {
  readonly raw: ReadonlyMap<string, RawValue>
  readonly where: string
  /** The classes of mail by name. */
  readonly classes: ReadonlyMap<string, unknown>
}

/** Reads one table and collects its problems. */
class TableReader {
  readonly #name: string
  readonly #source: TableSource
  readonly #problems: Problem[]

  constructor(name: string, source: TableSource, problems: Problem[]) {
    this.#name = name
    this.#source = source
    this.#problems = problems
  }

  refuse(text: string, member?: string): void {
    const where = (member === undefined ? undefined : this.#source.raw.get(member)?.where) ?? this.#source.where
    this.#problems.push({ where, text: `quota.${JSON.stringify(this.#name)}: ${text}` })
  }

  /** A member by its kind; undefined when it is absent or malformed. */
  member<M extends keyof Kinds>(member: M): ValueOf<M> | undefined {
    const given = this.#source.raw.get(member)
    if (given === undefined) return undefined
    const reading = (KINDS[member] as is.Kind<ValueOf<M>>)(given.value)
    if ('value' in reading) return reading.value
    this.refuse(`${member}: ${reading.wrong}`, member)
    return undefined
  }

  exceptions(): QuotaTable['exceptions'] {
    const given = this.#source.raw.get('exceptions')?.value ?? {}
    if (typeof given !== 'object' || Array.isArray(given)) {
      this.refuse(
        'exceptions: expected a table of keys and limits such as { "app@example.com" = ["5000/1h"], "root" = "none" }',
        'exceptions',
      )
      return new Map()
    }
    return new Map(Object.entries(given).map(([key, value]) => [key.toLowerCase(), this.#limitsOf(key, value)]))
  }

  #limitsOf(key: string, value: unknown): readonly QuotaLimit[] {
    if (value === 'none') return []
    const reading = someLimits(value)
    if ('value' in reading) return reading.value
    this.refuse(`exceptions: ${JSON.stringify(key)}: ${reading.wrong}, or "none"`, 'exceptions')
    return []
  }

  noteMembers(): void {
    const known = Object.keys(QUOTA_MEMBERS).join(', ')
    for (const key of this.#source.raw.keys()) if (!isQuotaMember(key)) this.refuse(`unknown member ${key}; a table has ${known}`, key)
    this.#require('keys', `write one of ${QUOTA_KEYS.join(', ')}`)
    this.#require('limits', 'write a list such as ["1000/1h", "20000 recipients/1d"]')
  }

  #require(member: QuotaMember, remedy: string): void {
    if (!this.#source.raw.has(member)) this.refuse(`${member} is missing; ${remedy}`)
  }
}

function readQuotaTable(name: string, source: TableSource, problems: Problem[]): QuotaTable | undefined {
  const table = new TableReader(name, source, problems)
  if (!NAME.test(name)) table.refuse('expected a name of lower-case letters, digits, dots, hyphens and underscores, such as [quota.app]')
  table.noteMembers()
  const [key, limits, match = [], action = 'refuse'] = [
    table.member('keys'),
    table.member('limits'),
    table.member('match'),
    table.member('action'),
  ]
  const holdLimit = table.member('hold_limit') ?? DAY
  const exceptions = table.exceptions()
  if (source.raw.has('hold_limit') && action !== 'hold')
    table.refuse('hold_limit has no meaning without action = "hold": remove it', 'hold_limit')
  if (key !== undefined && fieldOfKey(key) !== undefined && action === 'hold')
    table.refuse('keys: mail is not held by a header field, which the queue does not keep: use action = "refuse"', 'keys')
  const quotaClasses = table.member('classes') ?? []
  for (const one of quotaClasses)
    if (!source.classes.has(one)) table.refuse(`classes: there is no table [class.${one}]; add it, or name another class`, 'classes')
  const terms = { match, classes: quotaClasses, action, holdLimit, exceptions }
  return key === undefined || limits === undefined ? undefined : { name, key, limits, ...terms }
}

/** Reads all tables, and makes those of the parameters. Adds the problems to `problems`. */
export function readQuotaTables(
  raw: Pick<RawSettings, 'quotas' | 'whereOfQuota' | 'classes'>,
  parameters: Readonly<Record<keyof typeof HOURLY, number>>,
  problems: Problem[],
): ReadonlyMap<string, QuotaTable> {
  const tables = new Map<string, QuotaTable>()
  for (const [name, table] of raw.quotas) {
    const where = raw.whereOfQuota.get(name) ?? ''
    if (name in HOURLY)
      problems.push({ where, text: `quota.${name}: the parameter ${name} makes the quota of this name; give the table another name` })
    const read = readQuotaTable(name, { raw: table, where, classes: raw.classes }, problems)
    if (read !== undefined) tables.set(name, read)
  }
  for (const [name, key] of Object.entries(HOURLY)) {
    const most = parameters[name as keyof typeof HOURLY]
    const limits: readonly QuotaLimit[] = [{ text: `${most}/1h`, measure: 'messages', most, span: HOUR }]
    if (most > 0) tables.set(name, { name, key, match: [], classes: [], limits, action: 'refuse', holdLimit: DAY, exceptions: new Map() })
  }
  return tables
}
