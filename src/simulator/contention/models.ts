/**
 * The contention models `row`, `crash` and `limit`, which the command line selects by name. Each names its clients and the
 * columns of its table, and returns one flat record per row of that table.
 */
import { PolicyError } from '../../backoff/policy.ts'
import { DISCIPLINES, runCrashingServer } from './crashing-server.ts'
import { runLimitedServer } from './limited-server.ts'
import { ROW_BACKOFFS, runSharedRow } from './shared-row.ts'
import { constantOne, type Feedback, perConcurrency, perRoot } from './window-clients.ts'

export type ModelName = 'row' | 'crash' | 'limit'

interface ModelOptions {
  /** Names of the model's clients; default all. */
  readonly client?: readonly string[]
  readonly seed: number
  /** Number of runs, with consecutive seeds; results are means. */
  readonly runs: number
  readonly clients?: number
}

/** One row of results; every figure is a mean over the runs. */
export type ModelResult = Readonly<Record<string, string | number>>

interface Model {
  readonly about: string
  /** Columns of the table: heading, member of the result, decimals. */
  readonly columns: readonly (readonly [heading: string, member: string, digits: number])[]
  readonly names: readonly string[]
  /** Runs one client once; returns figures only. */
  run(name: string, options: ModelOptions, seed: number): readonly Readonly<Record<string, number>>[]
}

const FEEDBACKS: ReadonlyMap<string, readonly [feedback: Feedback, halfStep: boolean]> = new Map([
  ['1/N', [perConcurrency, false]],
  ['1/sqrt(N)', [perRoot, false]],
  ['1', [constantOne, false]],
  ['1/N program', [perConcurrency, true]],
  ['1/sqrt(N) program', [perRoot, true]],
  ['1 program', [constantOne, true]],
])

export const MODELS: Readonly<Record<ModelName, Model>> = {
  row: {
    about: 'Clients that change one row with optimistic locking, base 5 ms, cap 2 s (AWS Architecture Blog, 2015).',
    columns: [
      ['BACKOFF', 'client', 0],
      ['CLIENTS', 'clients', 0],
      ['CALLS', 'calls', 0],
      ['SECONDS', 'makespan', 2],
    ],
    names: ROW_BACKOFFS,
    run(name, { clients = 100 }, seed) {
      const backoff = ROW_BACKOFFS.find((known) => known === name) ?? 'none'
      const { calls, time } = runSharedRow({ clients, backoff, seed })
      return [{ clients, calls, makespan: time / 1000 }]
    },
  },
  crash: {
    about: 'Jobs processed in 300 s by a queue of 20 jobs/s that crashes when 400 submissions are open (Thain and Livny, 2003).',
    columns: [
      ['DISCIPLINE', 'client', 0],
      ['CLIENTS', 'clients', 0],
      ['JOBS', 'jobs', 0],
      ['CRASHES', 'crashes', 1],
      ['ATTEMPTS', 'attempts', 0],
    ],
    names: DISCIPLINES,
    run(name, { clients }, seed) {
      const discipline = DISCIPLINES.find((known) => known === name) ?? 'fixed'
      const sizes = clients === undefined ? [200, 400, 420, 600, 1000] : [clients]
      return sizes.map((size) => {
        const { jobs, crashes, attempts } = runCrashingServer({ clients: size, discipline, seed })
        return { clients: size, jobs, crashes, attempts }
      })
    },
  },
  limit: {
    about: "Share of 1,000 deliveries deferred by a server that replies 421 to the sixth connection (Postfix's SCHEDULER_README).",
    columns: [
      ['FEEDBACK', 'client', 0],
      ['DEFERRED %', 'deferred', 1],
      ['CONCURRENCY', 'concurrency', 2],
      ['DEVIATION', 'deviation', 2],
    ],
    names: [...FEEDBACKS.keys()],
    run(name, _options, seed) {
      const [feedback, halfStep] = FEEDBACKS.get(name) ?? [perConcurrency, false]
      const { deferred, concurrency, deviation } = runLimitedServer({ feedback, halfStep, seed })
      return [{ deferred: 100 * deferred, concurrency, deviation }]
    },
  },
}

export function runModel(name: ModelName, options: ModelOptions): readonly ModelResult[] {
  const model = MODELS[name]
  return (options.client ?? model.names).flatMap((client) => {
    if (!model.names.includes(client))
      throw new PolicyError(`the model ${name} has no client "${client}"; it has ${model.names.join(', ')}`)
    const runs = Array.from({ length: options.runs }, (_, i) => model.run(client, options, options.seed + i))
    return (runs[0] ?? []).map((_, row) => ({ client, ...meanOf(runs.map((rows) => rows[row] ?? {})) }))
  })
}

function meanOf(records: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const members = Object.keys(records[0] ?? {})
  return Object.fromEntries(
    members.map((member) => [member, records.reduce((sum, record) => sum + (record[member] ?? 0), 0) / Math.max(1, records.length)]),
  )
}
