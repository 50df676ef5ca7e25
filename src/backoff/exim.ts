/**
 * exim — Exim's retry rules as text: `F,2h,15m; G,16h,1h,1.5; F,4d,6h`. The first rule whose time has not yet passed decides.
 * F,t,p waits p. G,t,p,m waits m times the gap before, at least p. H,t,p,m waits p plus half to all of (m·gap − p).
 * Units are Exim's (s m h d w, combined at will); no wait exceeds 24 h (retry_interval_max). Only H takes chance.
 * Exim measures the gap that was planned or the one that was, whichever is less; here they are the same.
 * Source: Exim, retry.c, whose H is not quite what its manual says.
 */
import { DAY, type Duration } from '../mail/clock.ts'
import { PolicyError, type WaitFacts } from './policy.ts'
import { formatTime, parseTime } from './time-text.ts'

export interface EximRule {
  readonly letter: 'F' | 'G' | 'H'
  /** Age of the mail up to which the rule holds. */
  readonly until: Duration
  readonly interval: Duration
  /** Of G and H; 1 for F. */
  readonly factor: number
}

/** Exim's default for remote mail. */
export const EXIM_DEFAULT = 'F,2h,15m; G,16h,1h,1.5; F,4d,6h'

/** Exim's retry_interval_max. */
const LONGEST: Duration = DAY

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
      throw new PolicyError(`exim rule ${formatRule(rule)} never applies: ${formatRule(before)} holds until ${formatTime(before.until)}`)
  }
  return rules
}

function parseRule(text: string): EximRule {
  const [letter, until, interval, factor, ...rest] = text.split(',').map((part) => part.trim())
  if (letter !== 'F' && letter !== 'G' && letter !== 'H') throw new PolicyError(`exim rule "${text}" must begin with F, G or H`)
  const holds = until === undefined ? undefined : parseTime(until)
  const wait = interval === undefined ? undefined : parseTime(interval)
  if (holds === undefined || wait === undefined || rest.length > 0 || (factor === undefined) !== (letter === 'F'))
    throw new PolicyError(`exim rule "${text}" must read ${letter === 'F' ? 'F,until,wait' : `${letter},until,first wait,factor`}`)
  if (wait <= 0) throw new PolicyError(`exim rule "${text}" has a wait of 0, which would try without end`)
  const growth = factor === undefined ? 1 : Number(factor)
  if (!(growth >= 1 && growth <= 100)) throw new PolicyError(`exim rule "${text}" needs a factor from 1 to 100`)
  return { letter, until: holds, interval: wait, factor: growth }
}

export const formatRule = ({ letter, until, interval, factor }: EximRule): string =>
  `${letter},${formatTime(until)},${formatTime(interval)}${letter === 'F' ? '' : `,${factor}`}`

/** The wait after a failure; when no rule holds any more, the last wait again. */
export function eximWait(rules: readonly EximRule[], facts: WaitFacts): Duration {
  const rule = rules.find(({ until }) => until > facts.age)
  if (rule === undefined) return facts.previousWait ?? Math.min(LONGEST, rules.at(-1)?.interval ?? LONGEST)
  const gap = facts.previousWait ?? 0
  const grown = gap * rule.factor
  const wait =
    rule.letter === 'F'
      ? rule.interval
      : rule.letter === 'G'
        ? Math.max(rule.interval, gap < rule.interval ? 0 : grown)
        : rule.interval + Math.max(0, grown - rule.interval) * (0.5 + facts.draw() / 2)
  return Math.min(LONGEST, wait)
}

/** Exim gives up when the last rule's time has passed. */
export const eximEnds = (rules: readonly EximRule[], age: Duration): boolean => age >= (rules.at(-1)?.until ?? 0)
