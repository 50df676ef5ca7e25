/**
 * Parses a scenario: incoming mail, configuration of the relay, faults of the remote servers, and duration. All mistakes are
 * reported together, with file, line and the valid values.
 */
import { configFrom, type LoadedConfig } from '../../config/load.ts'
import { ConfigError, type Problem } from '../../config/values/problem.ts'
import * as is from '../../config/values/values.ts'
import type { Duration } from '../../system/clock.ts'
import { rate, type Rate } from '../../testkit/remote/rule-keys.ts'
import { readRule } from '../../testkit/remote/rule-reader.ts'
import type { Fault, Rule, Script } from '../../testkit/remote/rule.ts'
import { complaints, isTable, readTables, readToml, unknown, type Complain, type Table } from '../../testkit/remote/script.ts'

/** A stream of equal messages, sent to the domains in rotation. */
export interface Stream {
  readonly name: string
  readonly messages: number
  readonly to: readonly string[]
  /** Recipients of each message, all in one domain. */
  readonly recipients: number
  readonly size: number
  readonly sender: string
  /** Arrival of the first message, in milliseconds. */
  readonly starts: Duration
  /** Milliseconds from one message to the next; 0 if all arrive at once. */
  readonly gap: Duration
  /** Milliseconds after the arrival before which no delivery begins, and at which the message is given up; 0 for none. */
  readonly not_before: Duration
  readonly expires: Duration
  /** 0 for no limit of the messages' own. */
  readonly maximum_attempts: number
  /** Name of a [config.class.NAME] table; empty for the class that the configuration gives the sender. */
  readonly class: string
}

export interface Scenario {
  readonly streams: readonly Stream[]
  readonly loaded: LoadedConfig
  readonly script: Script
  /** Duration in milliseconds. Null to run until the queue is empty. */
  readonly duration: Duration | null
}

const RELAY_HOSTNAME = 'deferd.example'
/** Total size of the mail of a scenario, whose queue is in memory. */
const MOST_BYTES = 512 * 1024 ** 2
/** Maximum of one stream. */
const MOST_MESSAGES = 1_000_000

const TABLES = ['duration', 'latency', 'mail', 'config', 'rule', 'dns']

interface Key<T> {
  readonly kind: is.Kind<T>
  /** Default value. A key without a default is required. */
  readonly otherwise?: T
}

const domains = is.kind('domains such as "provider.example"', (given) => {
  const reading = is.list(given)
  const names = 'value' in reading ? reading.value : []
  return names.length > 0 && names.every((name) => /^[^\s@"*]+$/.test(name)) ? names : undefined
})

const rateOrNone: is.Kind<Rate | null> = rate

const STREAM = {
  messages: { kind: is.count(1, MOST_MESSAGES) },
  to: { kind: domains },
  recipients: { kind: is.count(1, 10_000), otherwise: 1 },
  size: { kind: is.size, otherwise: 2048 },
  sender: { kind: is.text, otherwise: 'app@sender.example' },
  starts: { kind: is.duration, otherwise: 0 },
  over: { kind: is.duration, otherwise: 0 },
  rate: { kind: rateOrNone, otherwise: null },
  not_before: { kind: is.duration, otherwise: 0 },
  expires: { kind: is.duration, otherwise: 0 },
  maximum_attempts: { kind: is.count(), otherwise: 0 },
  class: { kind: is.text, otherwise: '' },
} as const satisfies Record<string, Key<unknown>>

type StreamKey = keyof typeof STREAM
type Read<K> = K extends is.Kind<infer T> ? T : never
type ReadStream = { -readonly [K in StreamKey]: Read<(typeof STREAM)[K]['kind']> }

const STREAM_KEYS = Object.keys(STREAM) as StreamKey[]

/**
 * Reads the scenario in `text`; `file` is its name in error messages, `overrides` are `name=value` for its configuration. Throws a
 * ConfigError with all mistakes.
 */
export function readScenario(text: string, file: string, overrides: readonly string[] = []): Scenario {
  const tables = readToml(text, file)
  const { complain, problems, where } = complaints(text, file)
  for (const name of Object.keys(tables)) {
    if (!TABLES.includes(name)) complain([name], unknown(name, TABLES, `a scenario has ${TABLES.join(', ')}`))
  }
  const duration = readTime(tables, 'duration', complain)
  const latency = readTime(tables, 'latency', complain) ?? DEFAULT_LATENCY
  const streams = readStreams(tables, complain)
  const script = readTables(tables, complain)
  const { loaded, mistakes } = readConfig(tables, where, overrides, complain)
  if (loaded !== null) tooMuch(streams, loaded, complain)
  if (loaded !== null) unknownClasses(streams, loaded, complain)
  if (loaded === null || problems.length + mistakes.length > 0) throw new ConfigError([...problems, ...mistakes])
  return { streams, loaded, duration, script: { ...script, rules: slowed(script.rules, latency) } }
}

/** In milliseconds, per round trip. Without latency, a backlog of any size would be delivered at once. */
const DEFAULT_LATENCY: Duration = 100

/** Stages that end a round trip. MAIL, RCPT and DATA are pipelined (RFC 2920), so they share one. */
const ROUND_TRIPS = ['connect', 'greeting', 'ehlo', 'mail', 'end-of-data'] as const

/** Adds the latency to the replies of rules without a delay of their own, and rules after all others that delay the default replies. */
function slowed(rules: readonly Rule[], latency: Duration): readonly Rule[] {
  if (latency === 0) return rules
  const usual = ROUND_TRIPS.flatMap((at) => {
    const read = readRule('latency', { at, delay: `${latency}ms` })
    return 'rule' in read ? [read.rule] : []
  })
  return [...rules.map((rule) => ({ ...rule, fault: slowedFault(rule.fault, latency) })), ...usual]
}

function slowedFault(fault: Fault, latency: Duration): Fault {
  if (!ROUND_TRIPS.some((stage) => stage === fault.at)) return fault
  if (!('action' in fault)) return fault.delay === 0 ? { ...fault, delay: latency } : fault
  return fault.action.delay === 0 ? { ...fault, action: { ...fault.action, delay: latency } } : fault
}

function readTime(tables: Table, name: string, complain: Complain): Duration | null {
  if (tables[name] === undefined) return null
  const reading = is.duration(tables[name])
  if ('value' in reading) return reading.value
  complain([name], `${name}: ${reading.wrong}`)
  return null
}

/** Reads one stream from `[mail]`, or several from `[mail.NAME]` tables. */
function readStreams({ mail }: Table, complain: Complain): readonly Stream[] {
  if (!isTable(mail)) {
    complain(['mail'], 'the scenario has no mail: add a table such as [mail] with messages = 1000 and to = "provider.example"')
    return []
  }
  const entries = Object.entries(mail)
  const several = entries.length > 0 && entries.every(([, value]) => isTable(value))
  if (!several) return readStream('mail', mail, ['mail'], complain)
  return entries.flatMap(([name, table]) => (isTable(table) ? readStream(name, table, ['mail', name], complain) : []))
}

function readStream(name: string, table: Table, path: readonly string[], complain: Complain): readonly Stream[] {
  let wrong = false
  const mistake = (key: string | null, text: string): void => {
    wrong = true
    complain(key === null ? path : [...path, key], text)
  }
  for (const key of Object.keys(table)) {
    if (!STREAM_KEYS.some((known) => known === key)) mistake(key, unknown(key, STREAM_KEYS, `mail has ${STREAM_KEYS.join(', ')}`))
  }
  const keys: Partial<Record<StreamKey, unknown>> = {}
  for (const key of STREAM_KEYS) {
    const { kind, otherwise }: Key<unknown> = STREAM[key]
    const value = table[key] ?? otherwise
    if (value === undefined) {
      mistake(null, `${key} is missing, such as ${key === 'to' ? 'to = "provider.example"' : 'messages = 1000'}`)
      continue
    }
    const reading = table[key] === undefined ? { value } : kind(value)
    if ('value' in reading) keys[key] = reading.value
    else mistake(key, `${key}: ${reading.wrong}`)
  }
  if (table['over'] !== undefined && table['rate'] !== undefined) mistake('rate', 'rate cannot be combined with over')
  return wrong ? [] : [streamOf(name, keys as ReadStream)]
}

const streamOf = (name: string, { over, rate: pace, ...stream }: ReadStream): Stream => ({
  ...stream,
  name,
  gap: pace === null ? over / stream.messages : pace.per / pace.count,
})

/** Reads `[config]`: parameters and tables as in deferd.toml. */
function readConfig(
  tables: Table,
  where: (path: readonly string[]) => string,
  overrides: readonly string[],
  complain: Complain,
): { readonly loaded: LoadedConfig | null; readonly mistakes: readonly Problem[] } {
  const values = tables['config'] ?? {}
  if (!isTable(values)) {
    complain(['config'], 'config must be a table: [config]')
    return { loaded: null, mistakes: [] }
  }
  try {
    return { loaded: configFrom(values, RELAY_HOSTNAME, { where: (...key) => where(['config', ...key]), overrides }), mistakes: [] }
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return { loaded: null, mistakes: error.problems }
  }
}

/** Reports classes that the configuration does not have. */
function unknownClasses(streams: readonly Stream[], { config }: LoadedConfig, complain: Complain): void {
  const known = [...config.class.keys()]
  for (const { name, class: named } of streams) {
    if (named === '' || known.includes(named)) continue
    complain(
      pathOf(streams, name, 'class'),
      `class: there is no table [config.class.${named}]${known.length === 0 ? '' : `; classes are ${known.join(', ')}`}`,
    )
  }
}

/** The place of a key of a stream: one stream may be in [mail] itself. */
const pathOf = (streams: readonly Stream[], name: string, key: string): readonly string[] =>
  streams.length === 1 && name === 'mail' ? ['mail', key] : ['mail', name, key]

/** Reports mail that the relay would refuse, or that exceeds the memory limit. */
function tooMuch(streams: readonly Stream[], { config }: LoadedConfig, complain: Complain): void {
  const limit = config.message_size_limit
  for (const { name, size } of streams) {
    if (limit > 0 && size > limit)
      complain(pathOf(streams, name, 'size'), `size: ${size} bytes are more than message_size_limit allows (${limit})`)
  }
  const bytes = streams.reduce((sum, { messages, size }) => sum + messages * size, 0)
  if (bytes > MOST_BYTES)
    complain(['mail'], `${bytes} bytes of mail are above the limit of a simulation (${MOST_BYTES}): use a smaller size`)
}
