/**
 * exim — Exim's retry rules as text: `F,2h,15m; G,16h,1h,1.5; F,4d,6h`. The first rule whose time has not yet passed decides.
 * F,t,p waits p. G,t,p,m waits m times the previous gap, at least p. H,t,p,m waits p plus half to all of (m·gap − p).
 * Units are Exim's (s m h d w, in any combination); no wait exceeds 24 h (retry_interval_max). Only H is random.
 * Exim takes the smaller of the planned and the actual gap; here both are the same.
 * Source: Exim, retry.c; its H differs slightly from Exim's manual.
 */
import { DAY, type Duration } from '../system/clock.ts'
import { PolicyError, type WaitFacts } from './policy.ts'
import { formatDuration, parseExactDuration } from '../system/duration.ts'

/** One rule of Exim's retry configuration. */
export interface EximRule {
  readonly letter: 'F' | 'G' | 'H'
  /** Age of the mail, in milliseconds, up to which the rule applies. */
  readonly until: Duration
  /** Wait (F) or shortest wait (G, H), in milliseconds. */
  readonly interval: Duration
  /** Growth from gap to gap, 1 to 100; 1 for F. */
  readonly factor: number
}

/** Exim's default rules for remote mail. */
export const EXIM_DEFAULT = 'F,2h,15m; G,16h,1h,1.5; F,4d,6h'

/** Exim's retry_interval_max. */
const LONGEST_WAIT: Duration = DAY

/** Parses rules separated by semicolons. Throws PolicyError for bad rules and for a rule that an earlier one hides. */
export function parseEximRules(text: string): readonly EximRule[] {
  const rules = text
    .split(';')
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .map(parseRule)
  if (rules.length === 0) throw new PolicyError('exim needs at least one rule, such as F,4d,6h')
  for (const [i, rule] of rules.entries()) {
    const before = rules[i - 1]
    if (before !== undefined && rule.until <= before.until)
      throw new PolicyError(
        `exim rule ${formatRule(rule)} never applies: ${formatRule(before)} applies until ${formatDuration(before.until)}`,
      )
  }
  return rules
}

function parseRule(text: string): EximRule {
  const [letter, until, interval, factor, ...rest] = text.split(',').map((part) => part.trim())
  if (letter !== 'F' && letter !== 'G' && letter !== 'H') throw new PolicyError(`exim rule "${text}" must begin with F, G or H`)
  const holds = until === undefined ? undefined : parseExactDuration(until)
  const wait = interval === undefined ? undefined : parseExactDuration(interval)
  if (holds === undefined || wait === undefined || rest.length > 0 || (factor === undefined) !== (letter === 'F'))
    throw new PolicyError(`exim rule "${text}" must read ${letter === 'F' ? 'F,until,wait' : `${letter},until,first wait,factor`}`)
  if (wait <= 0) throw new PolicyError(`exim rule "${text}" has a wait of 0, which would retry without end`)
  const growth = factor === undefined ? 1 : Number(factor)
  if (!(growth >= 1 && growth <= 100)) throw new PolicyError(`exim rule "${text}" needs a factor from 1 to 100`)
  return { letter, until: holds, interval: wait, factor: growth }
}

/** Writes a rule so that parseEximRules reads it again. */
export const formatRule = ({ letter, until, interval, factor }: EximRule): string =>
  `${letter},${formatDuration(until)},${formatDuration(interval)}${letter === 'F' ? '' : `,${factor}`}`

/** Returns the wait after a failure, in milliseconds. After the cutoff of the last retry rule, returns the previous wait. */
export function eximWait(rules: readonly EximRule[], facts: WaitFacts): Duration {
  const rule = rules.find(({ until }) => until > facts.age)
  if (rule === undefined) return facts.previousWait ?? Math.min(LONGEST_WAIT, rules.at(-1)?.interval ?? LONGEST_WAIT)
  const gap = facts.previousWait ?? 0
  const grown = gap * rule.factor
  const wait =
    rule.letter === 'F'
      ? rule.interval
      : rule.letter === 'G'
        ? Math.max(rule.interval, gap < rule.interval ? 0 : grown)
        : rule.interval + Math.max(0, grown - rule.interval) * (0.5 + facts.draw() / 2)
  return Math.min(LONGEST_WAIT, wait)
}

/** True once the time of the last rule has passed: Exim bounces the mail then. */
export const eximEnds = (rules: readonly EximRule[], age: Duration): boolean => age >= (rules.at(-1)?.until ?? 0)
