/** Reduces a failing scenario: removes each part without which it still fails in the same way. */
import type { Scenario } from './scenario.ts'

type Fails = (scenario: Scenario) => Promise<boolean>

/** Lists whose elements can be removed. */
const LISTS = ['crashes', 'faults', 'steps'] as const

/** Parameters that are kept, because a scenario without them would last for days. */
const NEEDED: ReadonlySet<string> = new Set(['minimal_backoff_time', 'maximal_backoff_time', 'maximal_queue_lifetime'])

export async function shrink(scenario: Scenario, fails: Fails): Promise<Scenario> {
  let smallest = scenario
  for (let before: Scenario | undefined; before !== smallest;) {
    before = smallest
    for (const list of LISTS) smallest = await shorten(smallest, list, fails)
    for (const simpler of simplerThan(smallest)) if (await fails(simpler)) smallest = simpler
  }
  return smallest
}

/** Removes halves, then quarters, then single elements. */
async function shorten(scenario: Scenario, list: (typeof LISTS)[number], fails: Fails): Promise<Scenario> {
  let current = scenario
  for (let size = Math.ceil(current[list].length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let from = 0; from < current[list].length;) {
      const shorter = { ...current, [list]: current[list].toSpliced(from, size) }
      if (await fails(shorter)) current = shorter
      else from += size
    }
  }
  return current
}

function simplerThan(scenario: Scenario): readonly Scenario[] {
  const { config, steps } = scenario
  return [
    ...Object.keys(config)
      .filter((name) => !NEEDED.has(name))
      .map((name) => ({
        ...scenario,
        config: Object.fromEntries(Object.entries(config).filter(([key]) => key !== name)),
      })),
    { ...scenario, tables: {} },
    { ...scenario, commitTakes: 0 },
    { ...scenario, storage: 'memory' as const },
    { ...scenario, ends: 'well' as const },
    ...steps.flatMap((step, index) => {
      if (step.do !== 'mail') return []
      return step.mail.to.map((_, n) => {
        const mail = { ...step.mail, to: step.mail.to.toSpliced(n, 1) }
        return { ...scenario, steps: mail.to.length === 0 ? steps : steps.with(index, { ...step, mail }) }
      })
    }),
  ].filter((simpler) => JSON.stringify(simpler) !== JSON.stringify(scenario))
}
