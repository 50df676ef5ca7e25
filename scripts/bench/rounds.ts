/**
 * The rounds: in each, every contestant takes its turn in every case, and another one begins.
 */
import { messagesOf, type Case, type Counts } from './cases.ts'
import type { Contestant } from './contestants.ts'
import { measureDrain } from './drain.ts'
import type { Field } from './field.ts'
import { measure, type Bench } from './load.ts'
import { rotated, type Measure, type Turn } from './statistics.ts'
import { measureStore } from './store-turn.ts'

/** The most messages of a running instance before the first round, for a case with share 1: a Node process is slow at first. */
export const WARM_UP = 2_000

export interface Plan {
  /** The bench with the sink of a case. */
  readonly benchOf: (load: Case) => Bench
  readonly field: Field
  readonly contestants: readonly Contestant[]
  readonly cases: readonly Case[]
  readonly rounds: number
  readonly counts: Counts
  readonly say: (line: string) => void
}

export async function warmUp({ benchOf, field, contestants, cases, counts, say }: Plan): Promise<void> {
  const began = Date.now()
  for (const contestant of contestants) {
    for (const load of cases.filter((one) => one.kind === 'mail' && contestant.reasonAgainst(one) === null)) {
      const relay = await field.running(contestant, load.setUp)
      const messages = messagesOf(load, { ...counts, messages: Math.min(WARM_UP, counts.messages) }, contestant.isSlow)
      await measure(benchOf(load), relay, { ...load, rate: null }, messages)
    }
  }
  say(`warm-up: ${secondsSince(began)} s`)
}

export async function playRounds(plan: Plan): Promise<Turn[]> {
  const turns: Turn[] = []
  for (let round = 1; round <= plan.rounds; round++) {
    const began = Date.now()
    for (const load of plan.cases.filter(({ rounds }) => round <= rounds)) {
      const able = rotated(plan.contestants, round - 1).filter((contestant) => contestant.reasonAgainst(load) === null)
      for (const contestant of able) turns.push(await takeTurn(plan, round, load, contestant))
    }
    plan.say(`round ${round} of ${plan.rounds}: ${secondsSince(began)} s`)
  }
  return turns
}

async function takeTurn(plan: Plan, round: number, load: Case, contestant: Contestant): Promise<Turn> {
  const messages = messagesOf(load, plan.counts, contestant.isSlow)
  const measured = await measureCase(plan, load, contestant, messages)
  return { round, case: load.name, contestant: contestant.name, messages, ...measured }
}

async function measureCase({ benchOf, field }: Plan, load: Case, contestant: Contestant, messages: number): Promise<Measure> {
  const bench = benchOf(load)
  switch (load.kind) {
    case 'mail':
      return measure(bench, await field.running(contestant, load.setUp), load, messages)
    case 'cold start': {
      await using relay = await field.fresh(contestant, load.setUp)
      return await measure(bench, relay, load, messages)
    }
    case 'drain':
      return measureDrain({ bench, field, contestant, load, messages })
    case 'store':
      return measureStore(bench.folder, load.sessions, messages)
  }
}

const secondsSince = (began: number): string => ((Date.now() - began) / 1000).toFixed(1)
