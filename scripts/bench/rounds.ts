/**
 * The rounds: in each, every contestant takes its turn in every case, and another one begins.
 */
import { messagesOf, type Case } from './cases.ts'
import type { Relay } from './contestants.ts'
import { measure, type Bench } from './load.ts'
import { rotated, type Turn } from './statistics.ts'

/** Messages over kept and over new connections before the first round: a Node process begins slowly. */
export const WARM_UP = 2_000

export interface Plan {
  readonly bench: Bench
  readonly relays: readonly Relay[]
  readonly cases: readonly Case[]
  readonly rounds: number
  readonly messages: number
  readonly say: (line: string) => void
}

export async function warmUp({ bench, relays, cases, say }: Plan): Promise<void> {
  const began = Date.now()
  for (const relay of relays) {
    for (const load of cases.filter((one) => canCarry(relay, one)))
      await measure(bench, relay, load, messagesOf(load, WARM_UP * relay.share))
  }
  say(`warm-up: ${secondsSince(began)} s`)
}

export async function playRounds(plan: Plan): Promise<Turn[]> {
  const turns: Turn[] = []
  for (let round = 1; round <= plan.rounds; round++) {
    const began = Date.now()
    for (const load of plan.cases) {
      const able = rotated(plan.relays, round - 1).filter((relay) => canCarry(relay, load))
      for (const relay of able) turns.push(await takeTurn(plan, round, load, relay))
    }
    plan.say(`round ${round} of ${plan.rounds}: ${secondsSince(began)} s`)
  }
  return turns
}

async function takeTurn({ bench, messages }: Plan, round: number, load: Case, relay: Relay): Promise<Turn> {
  const count = messagesOf(load, messages * relay.share)
  const measured = await measure(bench, relay, load, count)
  return { round, case: load.name, contestant: relay.name, messages: count, ...measured }
}

const canCarry = ({ mostBytes }: Relay, { bytes }: Case): boolean => bytes <= mostBytes

const secondsSince = (began: number): string => ((Date.now() - began) / 1000).toFixed(1)
