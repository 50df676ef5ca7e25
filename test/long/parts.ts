/**
 * The parts of the long tests. A suite `NAME.long.ts` is one subject, or several subjects `NAME/SUBJECT`, and a subject is one part, or is cut
 * into ranges of its runs. A part takes at most 15 minutes on two idle cores, so that any machine can run some of them.
 */
import { MUTANTS } from '../mutants/mutants.ts'
import { NODE_MUTANTS } from '../mutants/node-mutants.ts'
import { CLASS_MUTANTS } from '../mutants/class-mutants.ts'
import { SAFETY_MUTANTS } from '../mutants/safety-mutants.ts'
import { TLS_MUTANTS } from '../mutants/tls-mutants.ts'

/** Limit of the expected minutes of a part. */
export const MOST_MINUTES = 15

export interface Subject {
  /** Expected minutes of a part, on two idle cores. */
  readonly minutes: number
  /** Runs 1 to `count`, of which each part has `each`; null for a subject that is one part. */
  readonly runs: { readonly of: string; readonly count: number; readonly each: number } | null
}

const whole = (minutes: number): Subject => ({ minutes, runs: null })

/** `of` names the runs; each of them depends on its number alone. */
const ranges = (of: string, count: number, { each, minutes }: { readonly each: number; readonly minutes: number }): Subject => ({
  minutes,
  runs: { of, count, each },
})

export const SUBJECTS = {
  'admin-api': whole(6),
  bench: whole(6),
  calendar: whole(9),
  'cancellation/one-node': ranges('seeds, each of 50 races', 200, { each: 200, minutes: 2 }),
  'cancellation/nodes': ranges('seeds, each of 1,000 races', 10, { each: 5, minutes: 6 }),
  'cancellation/killed': ranges('seeds, each of 30 kills', 10, { each: 4, minutes: 10 }),
  checks: whole(3),
  'claimed-mail': whole(11),
  'clock-steps': whole(4),
  'cluster-page': whole(6),
  conformance: whole(2),
  'cut-statements/before': whole(8),
  'cut-statements/after': whole(8),
  'cut-statements/twice': whole(4),
  'damaged-copies': whole(5),
  'database-maintenance/snapshot': whole(14),
  'database-maintenance/vacuum': whole(3),
  dkim: whole(3),
  'full-disk': whole(4),
  'fuzz/segmentation': whole(8),
  'fuzz/sessions': whole(8),
  'fuzz/replies': whole(8),
  goodput: whole(6),
  'hostile-requests': whole(5),
  'io-faults': ranges('syncs', 300, { each: 150, minutes: 8 }),
  'killed-daemon/cycles': ranges('seeds, each of 250 kills', 8, { each: 1, minutes: 10 }),
  'killed-daemon/planted': whole(6),
  'killed-import': whole(5),
  killed: whole(5),
  'masked-sessions': whole(9),
  memory: whole(8),
  'moved-times': whole(3),
  'mutants/compiled': whole(5),
  'mutants/scheduler': ranges('mutants', MUTANTS.length, { each: 18, minutes: 10 }),
  'mutants/nodes': ranges('mutants', NODE_MUTANTS.length, { each: 6, minutes: 10 }),
  'mutants/shares': whole(8),
  'mutants/tests': ranges('mutants', SAFETY_MUTANTS.length + TLS_MUTANTS.length + CLASS_MUTANTS.length, { each: 32, minutes: 10 }),
  'node-owners/faults': whole(10),
  'node-owners/notices': whole(12),
  'node-upgrade': whole(3),
  nodes: ranges('seeds, each of 50 faults of nodes and 10 of the database', 10, { each: 1, minutes: 8 }),
  'mass-bounce': whole(10),
  'notice-burst': whole(6),
  'notice-crashes': whole(2),
  'on-call': whole(4),
  page: whole(8),
  'power-cut/states': ranges('seeds, each of 12,500 states', 8, { each: 2, minutes: 10 }),
  'power-cut/planted': whole(1),
  'queue-move/directories': whole(5),
  'queue-move/killed-with-databases': whole(8),
  'queue-move/calls-with-databases': whole(8),
  'random-schedules': ranges('schedules', 1_000_000, { each: 1_000_000, minutes: 5 }),
  'rate-limits': whole(6),
  rewriting: whole(3),
  'rotating-tokens/renewals': whole(4),
  'rotating-tokens/daemons': whole(10),
  'scale/delivery': whole(8),
  'scale/claims': whole(6),
  'scale/scrapes': whole(6),
  'scale/limits': whole(2),
  scenario: whole(8),
  schedule: whole(1),
  shutdown: whole(3),
  series: whole(6),
  'silent-host': whole(6),
  'classes/model': whole(15),
  'classes/keys': whole(6),
  'classes/daemon-one': whole(6),
  'classes/daemon-many': whole(6),
  'classes/daemon-killed': whole(6),
  'classes/daemon-outage': whole(6),
  'classes/daemon-slow': whole(6),
  'classes/daemon-postgres': whole(12),
  'silent-threads': whole(2),
  'simulated-nodes/sparse': ranges('seeds', 2_000, { each: 1_000, minutes: 9 }),
  'simulated-nodes/dense': ranges('seeds', 2_000, { each: 500, minutes: 7 }),
  'simulation/sparse': whole(8),
  'simulation/dense': ranges('seeds', 10_000, { each: 2_000, minutes: 10 }),
  'simulation/commits': whole(5),
  'simulation/shares': ranges('seeds', 2_000, { each: 500, minutes: 8 }),
  'simulation/notices': ranges('seeds', 660, { each: 330, minutes: 10 }),
  suppressions: whole(3),
  webhooks: whole(5),
} as const satisfies Readonly<Record<string, Subject>>

export type SubjectName = keyof typeof SUBJECTS

/** A subject, or a range of its runs. */
export interface Part {
  readonly subject: SubjectName
  readonly range: { readonly from: number; readonly to: number } | null
  readonly minutes: number
}

/** `simulation/dense:1-2000` */
export const nameOf = ({ subject, range }: Part): string => (range === null ? subject : `${subject}:${range.from}-${range.to}`)

/** File name of the suite. */
export const suiteOf = (subject: string): string => `${subject.split('/')[0] ?? subject}.long.ts`

export function partsOf(subject: SubjectName, { minutes, runs }: Subject = SUBJECTS[subject]): readonly Part[] {
  if (runs === null) return [{ subject, range: null, minutes }]
  const { count, each } = runs
  return Array.from({ length: Math.ceil(count / each) }, (_, n) => {
    const range = { from: n * each + 1, to: Math.min(count, (n + 1) * each) }
    return { subject, range, minutes: expected({ minutes, runs }, range) }
  })
}

/** Minutes of a range. */
function expected({ minutes, runs }: Subject, { from, to }: { readonly from: number; readonly to: number }): number {
  return runs === null ? minutes : (minutes * (to - from + 1)) / runs.each
}

const isSubject = (name: string): name is SubjectName => Object.hasOwn(SUBJECTS, name)

/** Reads the name of a part; the range may be any, so that a run can be shorter, or have other seeds. Null when it is no such name. */
export function partNamed(name: string): Part | null {
  const [, subject = '', from, to] = /^(.+):(\d+)-(\d+)$/.exec(name) ?? []
  if (!isSubject(subject)) return null
  const range = { from: Number(from), to: Number(to) }
  const { runs } = SUBJECTS[subject]
  if (runs === null || range.from < 1 || range.to < range.from) return null
  return { subject, range, minutes: expected(SUBJECTS[subject], range) }
}

export const PARTS: readonly Part[] = Object.keys(SUBJECTS)
  .filter(isSubject)
  .flatMap((subject) => partsOf(subject))

/**
 * The parts of some filters, in the order of the table; all without a filter. A filter is a text in a part's name, or a range of a
 * subject. Throws when a filter selects none.
 */
export function selectedParts(filters: readonly string[]): readonly Part[] {
  if (filters.length === 0) return PARTS
  const chosen = filters.map((filter) => {
    const named = partNamed(filter)
    const found = named === null ? PARTS.filter((part) => nameOf(part).includes(filter)) : [named]
    if (found.length === 0) throw new Error(`no part has the name ${JSON.stringify(filter)}: see npm run test:long -- --list`)
    return found
  })
  return [...new Map(chosen.flat().map((part) => [nameOf(part), part])).values()]
}

/** The parts of shard `n` of `of`, counted from 1: the longest part first goes to the shard that has least to do. */
export function shardOf(parts: readonly Part[], { n, of }: { readonly n: number; readonly of: number }): readonly Part[] {
  const shards = Array.from({ length: of }, () => ({ minutes: 0, parts: new Set<Part>() }))
  for (const part of parts.toSorted((a, b) => b.minutes - a.minutes)) {
    const least = shards.reduce((one, other) => (other.minutes < one.minutes ? other : one))
    least.minutes += part.minutes
    least.parts.add(part)
  }
  return parts.filter((part) => shards[n - 1]?.parts.has(part))
}
