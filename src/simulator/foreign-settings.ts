/** The retry settings of other mailers: Postfix's main.cf and Exim's retry rules, read as they themselves would keep them. */
import { compileAlone, compileRetryPolicy, parseEximRules, PolicyError } from '../backoff/index.ts'
import { parseTime } from '../backoff/time-text.ts'
import { DAY, type Duration, HOUR, SECOND } from '../mail/clock.ts'
import type { Setup } from './plan.ts'

/** Postfix's defaults, and the unit of a number without one (postconf(5)). */
const POSTFIX: Readonly<Record<string, { readonly default: string; readonly unit: Duration }>> = {
  minimal_backoff_time: { default: '300s', unit: SECOND },
  maximal_backoff_time: { default: '4000s', unit: SECOND },
  queue_run_delay: { default: '300s', unit: SECOND },
  maximal_queue_lifetime: { default: '5d', unit: DAY },
  delay_warning_time: { default: '0h', unit: HOUR },
}

/** What `name` says in a main.cf; also what `postconf -n` prints. */
export function readMainCf(text: string, name: string): Setup {
  const values = mainCfValues(text)
  const time = (parameter: string): Duration => {
    const known = POSTFIX[parameter] ?? { default: '0s', unit: SECOND }
    const written = expand(values.get(parameter) ?? known.default, values)
    const parsed = /^\d+$/.test(written) ? Number(written) * known.unit : parseTime(written)
    if (parsed === undefined) throw new PolicyError(`${name}: ${parameter} = ${written} is no time`)
    return parsed
  }
  const minimal = time('minimal_backoff_time')
  // In Postfix the minimum wins; a maximum below it means nothing.
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

/** Logical lines: a line that begins with a blank continues the one before; the last setting of a name holds. */
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

/** Exim warns after a day unless told otherwise (delay_warning). */
const EXIM_WARNING = '24h'

/** The retry rules of an exim.conf, or of a file that holds nothing else: a plan for each line `pattern error rules`. */
export function readEximRetry(text: string, name: string): readonly Setup[] {
  const lines = logicalEximLines(text)
  const begins = lines.findIndex((line) => /^begin\s+retry$/i.test(line))
  const rest = begins < 0 ? lines : lines.slice(begins + 1)
  const end = rest.findIndex((line) => /^begin\s/i.test(line))
  const rules = end < 0 ? rest : rest.slice(0, end)
  const warning = lines.map((line) => /^delay_warning\s*=\s*([^:\s]+)/.exec(line)?.[1]).find((time) => time !== undefined)
  const warnings = [parseTime(warning ?? EXIM_WARNING) ?? DAY]
  const setups = rules.map((line) => eximSetup(line, warnings))
  if (setups.length === 0) throw new PolicyError(`${name}: no retry rules found`)
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
  if (match === null) throw new PolicyError(`"${line}" is no retry rule: it must read pattern, error, rules`)
  const [, pattern = '', error = '', , rules = ''] = match
  const name = error === '*' ? `exim ${pattern}` : `exim ${pattern} ${error}`
  // Without rules Exim gives up at the first failure.
  if (rules === '') return { name, schedule: { policy: compileAlone('fixed'), lifetime: 0 }, warnings }
  parseEximRules(rules)
  return { name, schedule: { policy: compileAlone(`exim(${rules})`), lifetime: Infinity }, warnings }
}
