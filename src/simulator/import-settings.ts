/** Retry settings of other mail servers: Postfix's main.cf and Exim's retry rules, parsed as those servers parse them. */
import { parseEximRules } from '../backoff/exim.ts'
import { PolicyError } from '../backoff/policy.ts'
import { compileAlone, compileRetryPolicy } from '../backoff/retry-policy.ts'
import { parseExactDuration } from '../system/duration.ts'
import { DAY, type Duration, HOUR, SECOND } from '../system/clock.ts'
import type { Setup } from '../planner/plan.ts'

/** Postfix's defaults, and the unit of a bare number (postconf(5)). */
const POSTFIX: Readonly<Record<string, { readonly default: string; readonly unit: Duration }>> = {
  minimal_backoff_time: { default: '300s', unit: SECOND },
  maximal_backoff_time: { default: '4000s', unit: SECOND },
  queue_run_delay: { default: '300s', unit: SECOND },
  maximal_queue_lifetime: { default: '5d', unit: DAY },
  delay_warning_time: { default: '0h', unit: HOUR },
}

/** Reads a main.cf or the output of `postconf -n`; `name` labels the plan. Throws PolicyError for a value that is not a time. */
export function readMainCf(text: string, name: string): Setup {
  const values = mainCfValues(text)
  const time = (parameter: string): Duration => {
    const known = POSTFIX[parameter] ?? { default: '0s', unit: SECOND }
    const written = expand(values.get(parameter) ?? known.default, values)
    const parsed = /^\d+$/.test(written) ? Number(written) * known.unit : parseExactDuration(written)
    if (parsed === undefined) throw new PolicyError(`${name}: ${parameter} = ${written} is not a time`)
    return parsed
  }
  const minimal = time('minimal_backoff_time')
  // Postfix ignores a maximum below the minimum.
  const maximal = Math.max(minimal, time('maximal_backoff_time'))
  return {
    name,
    schedule: {
      policy: compileRetryPolicy({ retry_backoff: 'age', minimal, maximal }),
      lifetime: time('maximal_queue_lifetime'),
      grid: time('queue_run_delay'),
    },
    warnings: [time('delay_warning_time')],
  }
}

/** Values by name. A line that begins with a blank continues the previous line, and the last setting of a name is used. */
function mainCfValues(text: string): Map<string, string> {
  const logical: string[] = []
  for (const line of text.split(/\r?\n/)) {
    if (/^\s*(#|$)/.test(line)) continue
    if (/^\s/.test(line) && logical.length > 0) logical[logical.length - 1] += ` ${line.trim()}`
    else logical.push(line)
  }
  const values = new Map<string, string>()
  for (const line of logical) {
    const equals = line.indexOf('=')
    if (equals > 0) values.set(line.slice(0, equals).trim(), line.slice(equals + 1).trim())
  }
  return values
}

function expand(value: string, values: ReadonlyMap<string, string>, depth = 0): string {
  if (depth > 20) throw new PolicyError(`${value} refers to itself`)
  return value
    .replace(/\$(?:\{(\w+)\}|\((\w+)\)|(\w+))/g, (_, braced?: string, round?: string, plain?: string) => {
      const name = braced ?? round ?? plain ?? ''
      return expand(values.get(name) ?? POSTFIX[name]?.default ?? '', values, depth + 1)
    })
    .trim()
}

/** Exim's default. */
const EXIM_DELAY_WARNING = '24h'

/**
 * Reads the retry section of an exim.conf, or a file of retry rules. Returns one plan for each line `pattern error rules`. Throws
 * PolicyError.
 */
export function readEximRetry(text: string, name: string): readonly Setup[] {
  const lines = logicalEximLines(text)
  const begins = lines.findIndex((line) => /^begin\s+retry$/i.test(line))
  const rest = begins < 0 ? lines : lines.slice(begins + 1)
  const end = rest.findIndex((line) => /^begin\s/i.test(line))
  const rules = end < 0 ? rest : rest.slice(0, end)
  const warning = lines.map((line) => /^delay_warning\s*=\s*([^:\s]+)/.exec(line)?.[1]).find((time) => time !== undefined)
  const warnings = [parseExactDuration(warning ?? EXIM_DELAY_WARNING) ?? DAY]
  const setups = rules.map((line) => eximSetup(line, warnings))
  if (setups.length === 0) throw new PolicyError(`${name}: no retry rules found: expected lines after "begin retry", or a file of rules`)
  return setups
}

function logicalEximLines(text: string): string[] {
  return text
    .replace(/\\\r?\n\s*/g, '')
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
}

function eximSetup(line: string, warnings: readonly Duration[]): Setup {
  const match = /^("[^"]*"|\S+)\s+(\S+)\s*(?:senders\s*=\s*("[^"]*"|\S+)\s*)?(.*)$/.exec(line)
  if (match === null) throw new PolicyError(`"${line}" is not a retry rule: it must read pattern, error, rules`)
  const [, pattern = '', error = '', , rules = ''] = match
  const name = error === '*' ? `exim ${pattern}` : `exim ${pattern} ${error}`
  // Without rules, Exim returns the mail at the first failure.
  if (rules === '') return { name, schedule: { policy: compileAlone('fixed'), lifetime: 0 }, warnings }
  parseEximRules(rules)
  return { name, schedule: { policy: compileAlone(`exim(${rules})`), lifetime: Infinity }, warnings }
}
