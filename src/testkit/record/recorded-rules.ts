/**
 * The rules that repeat what a recording has observed. Each stage is explained on its own: by the recipient or the sender, and by times or
 * counts of occasions, whichever needs the fewest rules. Pure.
 */
import { SECOND, type Duration } from '../../system/clock.ts'
import { formatDuration } from '../../system/duration.ts'
import type { RuleText } from '../remote/rule-keys.ts'
import { STAGES, type FaultStage } from '../remote/rule.ts'
import type { Observation } from './observation.ts'

/** A rule of a recording, with the occasions that it was made of. */
export interface RecordedRule {
  readonly name: string
  readonly rule: RuleText
  readonly occasions: readonly Observation[]
}

/** Outcomes that are less apart in time are told apart by counts: a client would not repeat them to the millisecond. */
const SHORTEST_SPAN: Duration = 2 * SECOND

interface Explained {
  readonly where: RuleText
  readonly when: RuleText
  readonly occasions: readonly Observation[]
}

type Condition = 'recipient' | 'sender'

const CONDITIONS: Readonly<Partial<Record<FaultStage, readonly Condition[]>>> = {
  mail: ['sender'],
  rcpt: ['recipient'],
  data: ['recipient', 'sender'],
  body: ['recipient', 'sender'],
  'end-of-data': ['recipient', 'sender'],
}

/** The rules in the order of the stages. `maxGap` is the longest time for which a fault lasts after its last occasion, when it ends. */
export function recordedRules(observations: readonly Observation[], maxGap: Duration): readonly RecordedRule[] {
  const sorted = observations.toSorted((a, b) => a.at - b.at)
  const start = sorted[0]?.at ?? 0
  return STAGES.flatMap((stage) => {
    const here = sorted.filter((one) => one.stage === stage).map((one) => ({ ...one, at: one.at - start }))
    return explain(here, CONDITIONS[stage] ?? [], maxGap).map(({ where, when, occasions }, index) => ({
      name: `${stage}-${index + 1}`,
      rule: { at: stage, ...where, ...actionOf(occasions), ...when },
      occasions,
    }))
  })
}

function explain(observations: readonly Observation[], conditions: readonly Condition[], maxGap: Duration): readonly Explained[] {
  if (observations.every(({ fault }) => fault === null)) return []
  const ways = [...conditions, null].map((condition) => explainBy(observations, condition, maxGap))
  const cost = (rules: readonly Explained[]): number => rules.length + rules.filter(({ when }) => 'nth' in when || 'first' in when).length
  return ways.reduce((best, way) => (cost(way) < cost(best) ? way : best))
}

/** The rules with the values of `condition`; null for rules without it. */
function explainBy(observations: readonly Observation[], condition: Condition | null, maxGap: Duration): readonly Explained[] {
  const groups = Map.groupBy(observations, (one) => (condition === null ? null : one[condition]))
  return [...groups].flatMap(([value, group]) => {
    const where = condition === null || value === null ? {} : { [condition]: value }
    return overTime(group, maxGap).map((one) => ({ ...one, where }))
  })
}

type Timed = Omit<Explained, 'where'>

function overTime(observations: readonly Observation[], maxGap: Duration): readonly Timed[] {
  const spans = spansOf(observations)
  const isClear = spans.every((span, index) => index === 0 || (span[0]?.at ?? 0) - (spans[index - 1]?.at(-1)?.at ?? 0) >= SHORTEST_SPAN)
  return isClear ? bySpan(spans, maxGap) : byCount(observations)
}

/** Runs of observations with one outcome. */
function spansOf(observations: readonly Observation[]): readonly (readonly Observation[])[] {
  const spans: Observation[][] = []
  for (const one of observations) {
    const span = spans.at(-1)
    const [first] = span ?? []
    if (span !== undefined && first !== undefined && kindOf(first) === kindOf(one)) span.push(one)
    else spans.push([one])
  }
  return spans
}

const wholeSeconds = (time: Duration): Duration => Math.floor(time / SECOND) * SECOND

function bySpan(spans: readonly (readonly Observation[])[], maxGap: Duration): readonly Timed[] {
  return spans.flatMap((occasions, index) => {
    const [first] = occasions
    const last = occasions.at(-1)
    if (first === undefined || last === undefined || first.fault === null) return []
    const next = spans[index + 1]?.[0]
    const end = next === undefined ? null : Math.min(wholeSeconds(next.at), Math.ceil((last.at + maxGap) / SECOND) * SECOND)
    const when = {
      ...(index === 0 ? {} : { from: formatDuration(wholeSeconds(first.at)) }),
      ...(end === null ? {} : { until: formatDuration(end) }),
    }
    return [{ when, occasions }]
  })
}

/** Each rule counts the occasions that the rules before it have left. */
function byCount(observations: readonly Observation[]): readonly Timed[] {
  let left = observations
  const rules: Timed[] = []
  for (const [kind, occasions] of Map.groupBy(observations, kindOf)) {
    if (occasions[0]?.fault === null) continue
    const nth = left.flatMap((one, index) => (kindOf(one) === kind ? [index + 1] : []))
    const isAll = nth.length === left.length
    const isFirst = nth.at(-1) === nth.length
    rules.push({ when: isAll ? {} : isFirst ? { first: nth.length } : { nth: nth.length === 1 ? (nth[0] ?? 1) : nth }, occasions })
    left = left.filter((one) => kindOf(one) !== kind)
  }
  return rules
}

/** Observations with one kind have one rule. Times, and words with digits after the status, differ between occasions of one fault. */
function kindOf({ fault }: Observation): string {
  if (fault === null) return ''
  const isSlow = fault.delay !== undefined
  const reply = fault.reply?.replaceAll(/(?<=^\d{3}[ -](?:\d\.\d+\.\d+ )?.*)\S*\d\S*/gm, '#')
  return JSON.stringify({ ...fault, delay: isSlow, after: undefined, reply })
}

/** The keys of the action: those of the first occasion, with the median of the delays. */
function actionOf(occasions: readonly Observation[]): RuleText {
  const { connect, reply, raw, drop, stall, drip, split, gap, repeat, extensions, after } = occasions[0]?.fault ?? {}
  const delays = occasions.flatMap(({ fault }) => (fault?.delay === undefined ? [] : [fault.delay])).toSorted((a, b) => a - b)
  const delay = delays[Math.floor(delays.length / 2)]
  const times = Object.entries({ delay, drip, gap, after }).flatMap(([key, time]) =>
    time === undefined ? [] : [[key, formatDuration(time)] as const],
  )
  const keys = { connect, reply, raw, drop, stall, split, repeat, extensions }
  return Object.fromEntries([...Object.entries(keys).filter(([, value]) => value !== undefined), ...times])
}
