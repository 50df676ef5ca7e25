/**
 * Mail through whole daemons: one node on PostgreSQL beside a daemon on SQLite, a node with a synchronous standby beside one without, and one
 * relayhost for the mail of several nodes.
 */
import { KEPT } from '../cases.ts'
import type { Duration } from '../../../src/system/clock.ts'
import type { BenchDaemon } from '../figures/bench-daemon.ts'
import { ratios, type Figure } from '../figures/figure.ts'
import type { Part, Setting } from '../figures/subject.ts'
import { startDaemon } from '../figures/bench-daemon.ts'
import { measureAll, type Bench } from '../load.ts'
import { startSink } from '../sink.ts'
import { rotated, type Measure } from '../statistics.ts'
import { follow, startBenchServer } from './bench-server.ts'
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
    return comparison(setting, { bench, unit: sqlite, other: postgres, target: { least: 0.6 } })
  },
}

interface Compared {
  readonly bench: Bench
  readonly unit: BenchDaemon
  readonly other: BenchDaemon
  /** Target of the ratio; null for none. */
  readonly target: Figure['target']
}

/** Measures two daemons in turns, and the rate of one in units of the other. */
async function comparison(setting: Setting, { bench, unit, other, target }: Compared): Promise<readonly Figure[]> {
  const rates = new Map([unit, other].map((daemon) => [daemon, [] as number[]]))
  for (const daemon of rates.keys()) await load(bench, [daemon], setting.sized(WARM_UP))
  for (let round = 0; round < setting.rounds; round++)
    for (const [daemon, values] of rotated([...rates], round)) values.push((await load(bench, [daemon], setting.sized(8_000))).rate)
  return [
    ...[...rates].map(([{ name }, values]): Figure => ({ name, unit: 'delivered/s', target: null, values })),
    { name: `${other.name} ÷ ${unit.name}`, unit: '', target, values: ratios(rates.get(other) ?? [], rates.get(unit) ?? []) },
  ]
}

/** Time that bytes take longer between the server and its standby, in each direction. */
const WAY: Duration = 1

export const STANDBY: Part = {
  name: 'standby',
  about: `mail through a node whose commits wait for a synchronous standby, ${WAY} ms away, beside one whose commits do not`,
  measure: async (setting) => {
    const server = await startBenchServer(setting, setting.folder)
    await follow(setting, server, WAY)
    const bench = await startBench(setting)
    const start = async (queue_database_durability: 'primary' | 'replicated'): Promise<BenchDaemon> => {
      const url = await server.createDatabase(queue_database_durability)
      const settings = { relayhost: `[127.0.0.1]:${bench.sink.port}`, queue_database_durability }
      const node = await startNode(setting, queue_database_durability, url, settings)
      await shared(server, queue_database_durability, [queue_database_durability])
      return node
    }
    return comparison(setting, { bench, unit: await start('primary'), other: await start('replicated'), target: null })
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
