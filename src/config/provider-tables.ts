/** Reads the `[provider.NAME]` tables. Their destinations share the limits of the table, and have its per-destination parameters. */
import { errorMessage } from '../system/caught-error.ts'
import type { Duration } from '../system/clock.ts'
import { parseDuration } from '../system/duration.ts'
import { Pattern } from '../patterns/pattern.ts'
import type { Expansion } from './expansion.ts'
import type { Config, DestinationSettings } from './options.ts'
import { readParameter, readSettings } from './setting-tables.ts'
import type { Problem } from './values/problem.ts'
import type { ProviderTable, ReplyRule, RuleAction } from './values/tables/provider-table.ts'
import type { RawValue } from './values/sources.ts'
import * as is from './values/values.ts'

/** Names are also part of the keys of saved states. */
const NAME = /^[a-z0-9](?:[a-z0-9_.-]{0,62}[a-z0-9])?$/
const HOST = /^\.?[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*$/

const OWN_KEYS: ReadonlySet<string> = new Set(['mx', 'provider_concurrency_limit', 'provider_message_rate_limit', 'rule'])
const RULE_KEYS: ReadonlySet<string> = new Set(['reply', 'after', 'action', 'for', 'name'])

const hosts = is.kind('a list of host names or suffixes such as ".google.com"', (given) => {
  const reading = is.list(given)
  if (!('value' in reading) || reading.value.length === 0) return undefined
  const names = reading.value.map((name) => name.toLowerCase().replace(/\.$/, ''))
  return names.every((name) => HOST.test(name)) ? names : undefined
})

const action = is.kind('"suspend", "rate 10/min" or "concurrency 1"', (given): RuleAction | undefined => {
  if (typeof given !== 'string') return undefined
  const [, kind, number] = /^(?:suspend|(rate|concurrency) ([1-9]\d{0,5})(\/min)?)$/.exec(given.trim()) ?? []
  if (given.trim() === 'suspend') return { kind: 'suspend' }
  if (kind === 'rate' && given.trim().endsWith('/min')) return { kind, perMinute: Number(number) }
  return kind === 'concurrency' && !given.includes('/') ? { kind, limit: Number(number) } : undefined
})

const after = is.kind('a number and a time such as "2 in 1h"', (given): Pick<ReplyRule, 'count' | 'within'> | undefined => {
  const [, count, time] = typeof given === 'string' ? (/^([1-9]\d{0,3}) in (\S+)$/.exec(given.trim()) ?? []) : []
  const within = time === undefined ? undefined : parseDuration(time)
  return within === undefined || within <= 0 ? undefined : { count: Number(count), within }
})

const time = is.kind('a time longer than 0 such as "2h"', (given): Duration | undefined => {
  const reading = is.duration(given)
  return 'value' in reading && reading.value > 0 ? reading.value : undefined
})

interface ProviderSource {
  readonly raw: ReadonlyMap<string, RawValue>
  /** Position of a key of the n-th rule, counted from 0. */
  readonly whereOfRule: (n: number, key: string) => string
  readonly expansion: Expansion
  /** Defaults of the provider's own limits. */
  readonly limits: Pick<Config, 'provider_concurrency_limit' | 'provider_message_rate_limit'>
  /** `default_destination_adaptive_rate` */
  readonly adaptiveRate: boolean
}

/** Reads the table of a provider. Adds the problems to `problems`. */
export function readProviderTable(name: string, source: ProviderSource, problems: Problem[]): ProviderTable<DestinationSettings> {
  const { raw, expansion, limits } = source
  const shown = `provider.${JSON.stringify(name)}`
  const first = [...raw.values()][0]?.where ?? ''
  const refuse = (where: string, text: string): void => void problems.push({ where, text: `${shown}: ${text}` })
  if (!NAME.test(name))
    refuse(first, 'expected a name of lower-case letters, digits, dots, hyphens and underscores, such as [provider.google]')
  const given = raw.get('mx')
  const mx = hosts(given?.value ?? '')
  if ('wrong' in mx) refuse(given?.where ?? first, given === undefined ? 'mx is missing' : `mx: ${mx.wrong}`)
  const limit = (key: keyof typeof limits): number => {
    const own = raw.get(key)
    if (own === undefined) return limits[key]
    return (readParameter(key, `${shown}: ${key}`, { ...own, value: expansion.expand(own) }, problems) as number | undefined) ?? 0
  }
  const settings = readSettings(raw, { shown, ownKeys: OWN_KEYS, expansion }, problems)
  return {
    mx: 'value' in mx ? mx.value : [],
    concurrencyLimit: limit('provider_concurrency_limit'),
    messageRateLimit: limit('provider_message_rate_limit'),
    adaptiveRate: settings.destination_adaptive_rate ?? source.adaptiveRate,
    rules: readRules(source, refuse),
    settings,
  }
}

type Refuse = (where: string, text: string) => void

function readRules({ raw, whereOfRule }: ProviderSource, refuse: Refuse): readonly ReplyRule[] {
  const given = raw.get('rule')
  if (given === undefined) return []
  if (!Array.isArray(given.value) || !given.value.every((one) => typeof one === 'object' && one !== null && !Array.isArray(one))) {
    refuse(given.where, 'rule: expected tables such as [[provider.NAME.rule]]')
    return []
  }
  const names = new Set<string>()
  return given.value.flatMap((table: Readonly<Record<string, unknown>>, n) => {
    const wrong: Refuse = (key, text) => refuse(whereOfRule(n, key), `rule ${n + 1}: ${text}`)
    const rule = readRule(table, String(n + 1), wrong)
    if (rule === undefined) return []
    if (names.has(rule.name)) wrong('name', `another rule has the name ${rule.name}`)
    names.add(rule.name)
    return [rule]
  })
}

function readRule(table: Readonly<Record<string, unknown>>, number: string, refuse: Refuse): ReplyRule | undefined {
  for (const key of Object.keys(table)) if (!RULE_KEYS.has(key)) refuse(key, `unknown key ${key}; a rule has ${[...RULE_KEYS].join(', ')}`)
  const valueOf = <T>(key: string, kind: is.Kind<T>, byDefault?: unknown): T | undefined => {
    const value = table[key] ?? byDefault
    const reading = value === undefined ? { wrong: 'is missing' } : kind(value)
    if ('value' in reading) return reading.value
    refuse(key, value === undefined ? `${key} is missing` : `${key}: ${reading.wrong}`)
    return undefined
  }
  const name = valueOf('name', ruleName, number)
  const pattern = patternOf(valueOf('reply', is.text), refuse)
  const counts = valueOf('after', after, '1 in 1h')
  const [effect, duration] = [valueOf('action', action), valueOf('for', time)]
  if (name === undefined || pattern === undefined || counts === undefined || effect === undefined || duration === undefined)
    return undefined
  return { name, pattern, ...counts, action: effect, duration }
}

const ruleName = is.kind('a name of lower-case letters, digits, dots, hyphens and underscores', (given) =>
  typeof given === 'string' && NAME.test(given) ? given : undefined,
)

function patternOf(source: string | undefined, refuse: Refuse): Pattern | undefined {
  if (source === undefined) return undefined
  try {
    if (source !== '') return Pattern.parse('pcre', source, '')
    refuse('reply', 'reply: expected a pattern, got ""')
  } catch (error) {
    refuse('reply', `reply: ${errorMessage(error)}`)
  }
  return undefined
}
