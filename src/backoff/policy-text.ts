/**
 * Policies as text and as data: `doubling`, `thain(T=300s,F=2,M=4h)`, `table(5m,10m,1h)`, `exim(F,2h,15m; G,16h,1h,1.5; F,4d,6h)`.
 * Arguments without names are in the order of the policy's parameters. In a queue, an absent base or cap is minimal_backoff_time or
 * maximal_backoff_time. Other absent parameters have the policy's defaults, as do all of them in the library and the planner.
 */
import type { Duration } from '../system/clock.ts'
import { EXIM_DEFAULT, type EximRule, formatRule, parseEximRules } from './exim.ts'
import { FORMULAS, type FormulaName, formulaOf, isFormulaName, SCHEDULES } from './policies.ts'
import { type Parameter, type Parameters, PolicyError } from './policy.ts'
import { formatDuration, parseExactDuration } from '../system/duration.ts'

/** A parsed policy: a formula with the parameters that its text sets, a list of waits in milliseconds, or Exim's rules. */
export type Policy =
  | { readonly kind: 'formula'; readonly name: FormulaName; readonly given: Parameters }
  | { readonly kind: 'table'; readonly waits: readonly Duration[] }
  | { readonly kind: 'exim'; readonly rules: readonly EximRule[] }

/** Maximum time in a policy: 100 years. Sums of longer times would exceed the range in which milliseconds are exact. */
const LONGEST_TIME: Duration = 100 * 365 * 86_400_000

/**
 * Parses a policy: a name (`doubling`), a name with parameters in order or by name (`thain(5m)`, `thain(M=4h)`), a list of waits
 * (`table(5m,10m,1h)`) or Exim's rules (`exim(F,2h,15m; F,4d,6h)`). Times are written with a unit, or as seconds. Throws
 * PolicyError with the reason.
 */
export function parsePolicy(text: string): Policy {
  const match = /^\s*([A-Za-z0-9-]+)\s*(?:\((.*)\)\s*)?$/s.exec(text)
  const name = match?.[1]?.toLowerCase()
  if (name === undefined) throw new PolicyError(`"${text}" is not a policy: write a name, or a name with parameters such as fixed(10m)`)
  const parameters = match?.[2]
  const schedule = Object.hasOwn(SCHEDULES, name) ? SCHEDULES[name] : undefined
  if (schedule !== undefined) {
    if (parameters === undefined) return parsePolicy(schedule)
    throw new PolicyError(`${name} takes no parameters: it is ${schedule}`)
  }
  if (name === 'table') return { kind: 'table', waits: parseTable(parameters ?? '') }
  if (name === 'exim') return { kind: 'exim', rules: parseEximRules(parameters ?? EXIM_DEFAULT) }
  if (!isFormulaName(name)) throw new PolicyError(`unknown policy "${name}"; the policies are ${POLICY_NAMES.join(', ')}`)
  return { kind: 'formula', name, given: parseParameters(name, parameters ?? '') }
}

/** Names that parsePolicy accepts. */
export const POLICY_NAMES: readonly string[] = [...Object.keys(FORMULAS), 'table', 'exim', ...Object.keys(SCHEDULES)]

/** True if the text begins with the name of a policy; its parameters may still be wrong. */
export const isPolicyName = (text: string): boolean => POLICY_NAMES.includes((/^[A-Za-z0-9-]+/.exec(text.trim())?.[0] ?? '').toLowerCase())

function parseTable(text: string): readonly Duration[] {
  const entries = text
    .split(/[,\s]+/)
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '')
  if (entries.length === 0) throw new PolicyError('table is empty: it needs at least one wait, such as table(5m,10m,1h)')
  return entries.map((entry) => {
    const wait = parseExactDuration(entry)
    if (wait === undefined) throw new PolicyError(`table has "${entry}", which is not a time such as 300s, 5m or 1h`)
    if (wait < 1) throw new PolicyError(`table has a wait of ${entry}, which would retry without end`)
    if (wait > LONGEST_TIME) throw new PolicyError(`table overflows: ${entry} is over a hundred years`)
    return wait
  })
}

function parseParameters(name: FormulaName, text: string): Parameters {
  const { parameters } = formulaOf(name)
  const names = Object.keys(parameters)
  const given: Record<string, number> = {}
  const settings = text
    .split(',')
    .map((setting) => setting.trim())
    .filter((setting) => setting !== '')
  for (const [i, setting] of settings.entries()) {
    const equals = setting.indexOf('=')
    const key = equals < 0 ? (names[i] ?? '') : setting.slice(0, equals).trim()
    const parameter = Object.hasOwn(parameters, key) ? parameters[key] : undefined
    if (parameter === undefined)
      throw new PolicyError(`${name} has no parameter ${equals < 0 ? `for "${setting}"` : `"${key}"`}; it has ${names.join(', ')}`)
    if (Object.hasOwn(given, key)) throw new PolicyError(`${name} has ${key} twice`)
    given[key] = parseValue(`${name}: ${key}`, setting.slice(equals + 1), parameter)
  }
  return given
}

function parseValue(what: string, text: string, { unit, least }: Parameter): number {
  const trimmed = text.trim()
  const value = unit === 'time' ? parseExactDuration(trimmed) : /^\d+(\.\d+)?$/.test(trimmed) ? Number(trimmed) : undefined
  if (value === undefined)
    throw new PolicyError(`${what} is "${trimmed}", which is not a ${unit === 'time' ? 'time such as 300s, 5m or 4h' : 'number'}`)
  if (unit === 'count' && !Number.isInteger(value)) throw new PolicyError(`${what} is ${trimmed}, which is not a whole number`)
  if (value < least) throw new PolicyError(`${what} is ${trimmed}, but must be at least ${unit === 'time' ? formatDuration(least) : least}`)
  if (!Number.isFinite(value) || (unit === 'time' ? value > LONGEST_TIME : value > 1e9))
    throw new PolicyError(`${what} overflows: ${trimmed} is ${unit === 'time' ? 'over a hundred years' : 'over a thousand million'}`)
  return value
}

/** Writes a policy so that parsePolicy reads it again. */
export function formatPolicy(policy: Policy): string {
  if (policy.kind === 'table') return `table(${policy.waits.map(formatDuration).join(',')})`
  if (policy.kind === 'exim') return `exim(${policy.rules.map(formatRule).join('; ')})`
  const { parameters } = formulaOf(policy.name)
  const settings = Object.entries(policy.given).map(
    ([key, value]) => `${key}=${parameters[key]?.unit === 'time' ? formatDuration(value) : value}`,
  )
  return settings.length === 0 ? policy.name : `${policy.name}(${settings.join(',')})`
}
