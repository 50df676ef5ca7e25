/** Results of the bench, reduced to medians with their spread, from which docs/performance.md is made. */
import { describeCase, type Counts } from '../bench/cases.ts'
import type { Figure } from '../bench/figures/figure.ts'
import type { Machine } from '../bench/machine.ts'
import type { Result } from '../bench/relays.ts'
import { rateName, type Summary } from '../bench/report.ts'
import { spreadOf, type Spread } from '../bench/statistics.ts'
import { goalsOf } from './goals.ts'

/** The circumstances of a measurement. */
export interface Circumstances {
  readonly began: string
  readonly machine: Pick<Machine, 'node' | 'processor' | 'cores' | 'inMemory'>
  /** Part of the CPU time that other programs took, 0 to 1. */
  readonly others: number
}

export interface PublishedCase {
  readonly name: string
  readonly about: string
  /** The name of its messages per second. */
  readonly rate: string
}

/** A run of relays in turns. */
export interface PublishedRelays extends Circumstances, Counts {
  readonly rounds: number
  readonly contestants: Result['contestants']
  readonly omitted: Result['omitted']
  readonly cases: readonly PublishedCase[]
  readonly goals: readonly Figure[]
  readonly summaries: readonly Summary[]
}

/** A part of a subject with targets. */
export interface PublishedPart extends Circumstances {
  readonly subject: string
  readonly part: string
  /** deferd's commit; null where the result does not have it. */
  readonly commit: string | null
  /** Rounds, and the part of the full size; null for a soak, which has none. */
  readonly rounds: number | null
  readonly size: number | null
  readonly figures: readonly Figure[]
}

export interface Published {
  readonly relays: readonly PublishedRelays[]
  readonly parts: readonly PublishedPart[]
}

/** The file of a subject (`figures.json`). */
interface SubjectResult extends Omit<Circumstances, 'others'> {
  readonly subject: string
  readonly commit?: string
  readonly rounds: number
  readonly size: number
  readonly parts: readonly { readonly part: string; readonly others: number; readonly figures: readonly Figure[] }[]
}

/** The file of a soak (`soak.json`). */
interface SoakResult extends Circumstances {
  readonly commit?: string
  readonly options: { readonly minutes: number }
  readonly figures: readonly Figure[]
}

/**
 * Adds the results of files. A part takes the place of the same part; runs of relays take the place of all runs before. Throws when a file
 * is none of the bench.
 */
export function publish(before: Published, files: readonly { readonly name: string; readonly content: unknown }[]): Published {
  const relays: PublishedRelays[] = []
  const parts = new Map(before.parts.map((part) => [keyOf(part), part]))
  for (const { name, content } of files) {
    const found = partsOf(content)
    if (isRelays(content)) relays.push(reducedRelays(content))
    else if (found === null) throw new Error(`${name} is no result of npm run bench or npm run soak`)
    for (const part of found ?? []) parts.set(keyOf(part), part)
  }
  const sorted = [...parts.values()].toSorted((a, b) => keyOf(a).localeCompare(keyOf(b), 'en'))
  return { relays: relays.length === 0 ? before.relays : relays, parts: sorted }
}

const keyOf = ({ subject, part }: PublishedPart): string => `${subject} ${part}`

const has = (content: unknown, ...members: readonly string[]): content is object =>
  typeof content === 'object' && content !== null && members.every((member) => member in content)

const isRelays = (content: unknown): content is Result => has(content, 'turns', 'summaries', 'contestants', 'cases')

function partsOf(content: unknown): readonly PublishedPart[] | null {
  if (has(content, 'subject', 'parts')) {
    const { subject, parts, rounds, size, began, machine, commit = null } = content as SubjectResult
    return parts.map(({ part, others, figures }) => ({
      ...reducedCircumstances({ began, machine, others }),
      subject,
      part,
      commit,
      rounds,
      size,
      figures: figures.map(reducedFigure),
    }))
  }
  if (!has(content, 'options', 'minutes', 'figures')) return null
  const { options, figures, commit = null, ...circumstances } = content as SoakResult
  const part = `${options.minutes} minutes`
  return [
    {
      subject: 'soak',
      part,
      commit,
      rounds: null,
      size: null,
      ...reducedCircumstances(circumstances),
      figures: figures.map(reducedFigure),
    },
  ]
}

function reducedRelays(result: Result): PublishedRelays {
  const { rounds, messages, drained, contestants, omitted, cases, summaries, turns } = result
  return {
    ...reducedCircumstances(result),
    rounds,
    messages,
    drained,
    contestants,
    omitted,
    cases: cases.map((load) => ({ name: load.name, about: describeCase(load), rate: rateName(load) })),
    goals: goalsOf(turns).map(reducedFigure),
    summaries: summaries.map(reducedSummary),
  }
}

function reducedCircumstances({ began, machine, others }: Circumstances): Circumstances {
  const { node, processor, cores, inMemory } = machine
  return { began, machine: { node, processor, cores, inMemory }, others: rounded(others) }
}

/** Keeps the smallest value, the median and the largest, which have the same median and spread. */
function reducedFigure({ name, unit, target, values }: Figure): Figure {
  const spread = spreadOf(values)
  const [first] = values
  const kept = spread === null || first === undefined ? [] : values.length === 1 ? [first] : [spread.min, spread.median, spread.max]
  return { name, unit, target, values: kept.map(rounded) }
}

function reducedSummary(summary: Summary): Summary {
  return Object.fromEntries(
    Object.entries(summary).map(([name, value]: [string, Spread | string | number | null]) => [
      name,
      typeof value === 'object' && value !== null
        ? { median: rounded(value.median), min: rounded(value.min), max: rounded(value.max) }
        : value,
    ]),
  ) as unknown as Summary
}

const rounded = (value: number): number => Number(value.toPrecision(5))
