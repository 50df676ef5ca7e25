/**
 * Mail through whole daemons: one node on PostgreSQL beside a daemon on SQLite, and one relayhost for the mail of several nodes.
 */
import { KEPT } from '../cases.ts'
import type { BenchDaemon } from '../figures/bench-daemon.ts'
import type { Figure } from '../figures/figure.ts'
import type { Part, Setting } from '../figures/subject.ts'
import { startDaemon } from '../figures/bench-daemon.ts'
import { measureAll, type Bench } from '../load.ts'
import { startSink } from '../sink.ts'
import { rotated, type Measure } from '../statistics.ts'
import { startBenchServer } from './bench-server.ts'
import { shared, startNode } from './bench-node.ts'

const WARM_UP = 4_000

async function startBench({ folder, signal, undo }: Setting): Promise<Bench> {
  const sink = await startSink(folder, signal)
  undo.defer(() => sink.child.stop())
  return { sink, folder, signal }
}

/** 20 clients for each node. */
const load = (bench: Bench, daemons: readonly BenchDaemon[], messages: number): Promise<Measure> =>
  measureAll(bench, daemons, KEPT, messages)

export const RELAY: Part = {
  name: 'relay',
  about: 'mail through a daemon on PostgreSQL beside one on SQLite',
  measure: async (setting) => {
    const server = await startBenchServer(setting, setting.folder)
    const bench = await startBench(setting)
    const settings = { relayhost: `[127.0.0.1]:${bench.sink.port}` }
    const sqlite = await startDaemon(setting, 'sqlite', settings)
    const postgres = await startNode(setting, 'postgres', server.url(), settings)
    await shared(server, 'postgres', ['postgres'])
    for (const one of [sqlite, postgres]) await load(bench, [one], setting.sized(WARM_UP))
    const rates: Record<'sqlite' | 'postgres', number[]> = { sqlite: [], postgres: [] }
    for (let round = 0; round < setting.rounds; round++)
      for (const name of rotated(['sqlite', 'postgres'] as const, round))
        rates[name].push((await load(bench, [name === 'sqlite' ? sqlite : postgres], setting.sized(8_000))).rate)
    const ratios = rates.postgres.map((rate, round) => rate / (rates.sqlite[round] ?? Number.NaN))
    return [
      { name: 'sqlite', unit: 'delivered/s', target: null, values: rates.sqlite },
      { name: 'postgres', unit: 'delivered/s', target: null, values: rates.postgres },
      { name: 'postgres ÷ sqlite', unit: '', target: { least: 0.6 }, values: ratios },
    ]
  },
}

const NODES = ['n1', 'n2', 'n3']

export const RELAYHOST: Part = {
  name: 'relayhost',
  about: 'one relayhost for all mail: 1, 2 and 3 nodes accept, one of them delivers',
  measure: async (setting) => {
    const server = await startBenchServer(setting, setting.folder)
    const bench = await startBench(setting)
    const rates = new Map<number, number[]>(NODES.map((_, n) => [n + 1, []]))
    for (let round = 0; round < setting.rounds; round++)
      for (const count of rotated([...rates.keys()], round)) {
        const database = `nodes_${count}_${round}`
        rates.get(count)?.push(await rateOf(setting, { bench, count, database, url: await server.createDatabase(database) }, server))
      }
    return [...rates].map(([count, values]): Figure => ({
      name: `${count} node${count === 1 ? '' : 's'}`,
      unit: 'delivered/s',
      target: null,
      values,
    }))
  },
}

interface Trial {
  readonly bench: Bench
  readonly count: number
  readonly database: string
  readonly url: string
}

/** Starts so many nodes, measures, and ends them. */
async function rateOf(setting: Setting, { bench, count, database, url }: Trial, server: Parameters<typeof shared>[0]): Promise<number> {
  await using undo = new AsyncDisposableStack()
  const names = NODES.slice(0, count)
  const settings = { relayhost: `[127.0.0.1]:${bench.sink.port}` }
  const nodes: BenchDaemon[] = []
  for (const name of names) nodes.push(await startNode({ ...setting, undo, folder: `${setting.folder}/${database}` }, name, url, settings))
  await shared(server, database, names)
  await load(bench, nodes, setting.sized(WARM_UP))
  return (await load(bench, nodes, setting.sized(12_000))).rate
}
