/**
 * The life of messages in the store, one node and two nodes on PostgreSQL beside SQLite, and what it costs the server.
 */
import { join } from 'node:path'
import type { PostgresServer } from '../../../test/support/postgres-server.ts'
import { rotated } from '../statistics.ts'
import type { Figure } from '../figures/figure.ts'
import type { Part, Setting } from '../figures/subject.ts'
import { costOf, startBenchServer } from './bench-server.ts'
import type { Life } from './life-cycle.ts'
import { startLifeProcess, type LifeProcess } from './life-process.ts'

interface Contest {
  readonly name: 'sqlite' | 'postgres' | 'two nodes'
  readonly processes: readonly LifeProcess[]
}

interface Load {
  readonly life: Life
  readonly callers: number
  readonly messages: number
}

interface Result {
  readonly name: Contest['name']
  readonly load: Load
  readonly rate: number
  /** µs of CPU time per message: of the processes with the stores, and of the server. */
  readonly own: number
  readonly server: number
  /** Bytes of write-ahead log per message. */
  readonly log: number
}

export const STORE: Part = {
  name: 'store',
  about: 'queued and delivered in the store, one and two nodes beside SQLite',
  measure: async (setting) => {
    const server = await startBenchServer(setting, setting.folder)
    const contests = await startContests(setting, server)
    const loads: readonly Load[] = [
      { life: 'born leased', callers: 128, messages: setting.sized(60_000) },
      { life: 'born leased', callers: 32, messages: setting.sized(40_000) },
      { life: 'claimed', callers: 128, messages: setting.sized(30_000) },
    ]
    for (const load of loads)
      for (const contest of contests) await turn(server, contest, { ...load, messages: Math.ceil(load.messages / 10) })
    const results: Result[] = []
    for (let round = 0; round < setting.rounds; round++)
      for (const load of loads) for (const contest of rotated(contests, round)) results.push(await turn(server, contest, load))
    return figuresOf(results)
  },
}

async function startContests({ folder, undo }: Setting, server: PostgresServer): Promise<readonly Contest[]> {
  const start = async (...started: readonly Promise<LifeProcess>[]): Promise<readonly LifeProcess[]> => {
    const processes = await Promise.all(started)
    for (const one of processes) undo.defer(() => one.stop())
    return processes
  }
  const [one, two] = [await server.createDatabase('one'), await server.createDatabase('two')]
  const first = await start(startLifeProcess(two, { index: 0, of: 2 }))
  return [
    { name: 'sqlite', processes: await start(startLifeProcess(join(folder, 'sqlite'))) },
    { name: 'postgres', processes: await start(startLifeProcess(one)) },
    { name: 'two nodes', processes: [...first, ...(await start(startLifeProcess(two, { index: 1, of: 2 })))] },
  ]
}

async function turn(server: PostgresServer, { name, processes }: Contest, load: Load): Promise<Result> {
  const before = await costOf(server)
  const began = performance.now()
  const each = Math.ceil(load.messages / processes.length)
  const took = await Promise.all(processes.map((one) => one.run({ ...load, messages: each })))
  const seconds = (performance.now() - began) / 1_000
  const after = await costOf(server)
  const messages = each * processes.length
  const perMessage = (value: number): number => value / messages
  return {
    name,
    load,
    rate: messages / seconds,
    own: perMessage(took.reduce((sum, { cpu }) => sum + cpu, 0) * 1e6),
    server: perMessage((after.cpu - before.cpu) * 1e6),
    log: perMessage(after.log - before.log),
  }
}

function figuresOf(results: readonly Result[]): Figure[] {
  const of = (name: Contest['name'], life: Life, callers: number): readonly Result[] =>
    results.filter(({ name: one, load }) => one === name && load.life === life && load.callers === callers)
  const values = (quantity: 'rate' | 'own' | 'server' | 'log', ...which: Parameters<typeof of>): number[] =>
    of(...which).map((result) => result[quantity])
  const ratios = (over: Contest['name'], under: Contest['name'], life: Life, callers: number): number[] => {
    const others = of(under, life, callers)
    return of(over, life, callers).map(({ rate }, round) => rate / (others[round]?.rate ?? Number.NaN))
  }
  const rate = (name: Contest['name'], life: Life, callers: number): Figure => ({
    name: `${name}, ${life}, ${callers} callers`,
    unit: 'messages/s',
    target: null,
    values: values('rate', name, life, callers),
  })
  const cost = (name: string, unit: string, most: number, each: number[]): Figure => ({ name, unit, target: { most }, values: each })
  return [
    rate('sqlite', 'born leased', 128),
    rate('postgres', 'born leased', 128),
    rate('two nodes', 'born leased', 128),
    { name: 'postgres ÷ sqlite, 128 callers', unit: '', target: { least: 0.8 }, values: ratios('postgres', 'sqlite', 'born leased', 128) },
    { name: 'postgres ÷ sqlite, 32 callers', unit: '', target: { least: 0.7 }, values: ratios('postgres', 'sqlite', 'born leased', 32) },
    {
      name: 'two nodes ÷ one, 128 callers each',
      unit: '',
      target: { least: 1.2 },
      values: ratios('two nodes', 'postgres', 'born leased', 128),
    },
    cost('server CPU per message, born leased', 'µs', 40, values('server', 'postgres', 'born leased', 128)),
    cost('write-ahead log per message, born leased', 'kB', 3.3, values('log', 'postgres', 'born leased', 128).map(kilobytes)),
    cost('server CPU per message, claimed', 'µs', 80, values('server', 'postgres', 'claimed', 128)),
    cost('write-ahead log per message, claimed', 'kB', 3.7, values('log', 'postgres', 'claimed', 128).map(kilobytes)),
    { name: 'node CPU per message, born leased', unit: 'µs', target: null, values: values('own', 'postgres', 'born leased', 128) },
    { name: 'sqlite CPU per message, born leased', unit: 'µs', target: null, values: values('own', 'sqlite', 'born leased', 128) },
    rate('sqlite', 'claimed', 128),
    rate('postgres', 'claimed', 128),
    { name: 'postgres ÷ sqlite, claimed', unit: '', target: null, values: ratios('postgres', 'sqlite', 'claimed', 128) },
  ]
}

const kilobytes = (bytes: number): number => bytes / 1_000
