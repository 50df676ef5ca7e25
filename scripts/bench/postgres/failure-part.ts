/**
 * Failures of nodes and of the database: times until others take over and until mail is accepted again, and what faults at random did.
 */
import { absentDatabase } from '../../../test/support/nodes/absent-database.ts'
import { randomFaults } from '../../../test/support/nodes/random-faults.ts'
import { removalTimes } from '../../../test/support/nodes/removal-times.ts'
import type { Figure, Target } from '../figures/figure.ts'
import type { Part } from '../figures/subject.ts'

const figure = (name: string, unit: string, target: Target | null, ...values: readonly number[]): Figure => ({ name, unit, target, values })
const NONE = { most: 0, each: true } as const

async function inTurn<T>(rounds: number, run: () => Promise<T>): Promise<T[]> {
  const results: T[] = []
  for (let round = 0; round < rounds; round++) results.push(await run())
  return results
}

export const TAKEOVER: Part = {
  name: 'takeover',
  about: 'a node is killed, frozen, cut off, or ends: time until others have its mail',
  measure: async ({ rounds }) => {
    const times = await inTurn(rounds, removalTimes)
    const limit = { most: 7_000, each: true } as const
    return [
      figure('taken over, killed', 'ms', limit, ...times.map(({ killed }) => killed)),
      figure('taken over, frozen', 'ms', limit, ...times.map(({ frozen }) => frozen)),
      figure('taken over, cut off', 'ms', limit, ...times.map(({ cut }) => cut)),
      figure('left in order', 'ms', { most: 2_000, each: true }, ...times.map(({ left }) => left)),
      figure('outcomes of nodes that were removed', '', NONE, ...times.map(({ foreignOutcomes }) => foreignOutcomes)),
    ]
  },
}

export const DATABASE_AWAY: Part = {
  name: 'database-away',
  about: 'the database is away for 60 s during 100 deliveries',
  measure: async ({ rounds, sized }) => {
    const found = await inTurn(rounds, () => absentDatabase(sized(60)))
    return [
      figure('return of the database → first 250', 'ms', { most: 2_000, each: true }, ...found.map(({ accepted }) => accepted)),
      figure('the same, of the last of three nodes', 'ms', { most: 2_000, each: true }, ...found.map(({ acceptedByAll }) => acceptedByAll)),
      figure('nodes that deferred mail which they could not read', '', NONE, ...found.map(({ postponed }) => postponed)),
      figure('takeovers', '', NONE, ...found.map(({ takeovers }) => takeovers)),
      figure('repeated deliveries', '', NONE, ...found.map(({ repeated }) => repeated)),
    ]
  },
}

export const FAULTS: Part = {
  name: 'faults',
  about: '500 faults of nodes and 100 of the database at random, under load (40 minutes)',
  measure: async ({ sized }) => {
    const tally = await randomFaults({ nodeFaults: sized(500), databaseFaults: sized(100), seed: 16 })
    return [
      figure('acknowledged', 'messages', null, tally.acknowledged),
      // The run fails when acknowledged mail has not arrived at its end.
      figure('lost', '', NONE, 0),
      figure('outcomes of nodes that were removed', '', NONE, tally.foreignOutcomes),
      figure('connections begun after a takeover', '', NONE, tally.connectedAfterRemoval),
      figure('recipients with two notices', '', NONE, tally.noticedTwice.length),
      figure('left in the queue', '', NONE, tally.left),
      figure('repeated deliveries', '', { most: tally.inFlight }, tally.repeated),
    ]
  },
}
