/**
 * Many messages through one node on PostgreSQL: the size of the tables, the time of claims, and a session that holds a snapshot, so that
 * no dead row can be removed.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { PostgresServer } from '../../../test/support/postgres-server.ts'
import { percentile, type Figure } from '../figures/figure.ts'
import type { Part } from '../figures/subject.ts'
import { startBenchServer } from './bench-server.ts'
import { LIVES, type Life } from './life-cycle.ts'
import { startLifeProcess, type LifeProcess } from './life-process.ts'

const CALLERS = 128
const CLAIMS = 50
/** Bytes that a message may take in both tables, and time for which dead ones may, in seconds. */
const BYTES = 2_300
const KEPT = 10

export const THROUGH: Part = {
  name: 'through',
  about: '500,000 messages through the store: size of the tables, time of claims',
  measure: async (setting) => {
    const server = await startBenchServer(setting, setting.folder)
    const process = await startLifeProcess(server.url())
    setting.undo.defer(() => process.stop())
    await process.queueWaiting(1_000)
    await process.run({ life: 'born leased', callers: CALLERS, messages: setting.sized(20_000) })
    const before = percentile(await process.claimTimes(CLAIMS), 0.5)
    const messages = setting.sized(500_000)
    const largest = await withLargestSize(server, process.run({ life: 'born leased', callers: CALLERS, messages }))
    const after = percentile(await process.claimTimes(CLAIMS), 0.5)
    const rate = messages / largest.result.seconds
    const limit = 2 * rate * KEPT * BYTES
    return [
      { name: 'rate', unit: 'messages/s', target: null, values: [rate] },
      { name: 'largest size of both tables', unit: 'MB', target: { most: limit / 1e6 }, values: [largest.bytes / 1e6] },
      { name: 'claim of 100 at the start, p50', unit: 'ms', target: null, values: [before] },
      { name: 'claim of 100, end ÷ start', unit: '', target: { most: 1.5 }, values: [after / before] },
    ]
  },
}

/** Looks at the size of the tables four times a second until the work ends. */
async function withLargestSize<T>(server: PostgresServer, work: Promise<T>): Promise<{ readonly result: T; readonly bytes: number }> {
  const session = await server.session()
  const over = new AbortController()
  let bytes = 0
  const looking = (async () => {
    while (!over.signal.aborted) {
      const { rows } = await session.query<{ bytes: string }>(
        `select pg_total_relation_size('message') + pg_total_relation_size('recipient') as bytes`,
      )
      bytes = Math.max(bytes, Number(rows[0]?.bytes))
      await pause(250)
    }
  })()
  try {
    const result = await work
    return { result, bytes }
  } finally {
    over.abort()
    await looking
    await session.end()
  }
}

const HELD = 600

export const SNAPSHOT: Part = {
  name: 'snapshot',
  about: 'a session holds a snapshot for ten minutes under load: rates before, at its end, and after',
  measure: async (setting) => {
    const server = await startBenchServer(setting, setting.folder)
    const process = await startLifeProcess(server.url())
    setting.undo.defer(() => process.stop())
    const messages = setting.sized(20_000)
    await rates(process, messages)
    const before = await rates(process, messages)
    const session = await server.session()
    await session.query('begin isolation level repeatable read')
    await session.query('select count(*) from message')
    const until = performance.now() + setting.sized(HELD * 1_000)
    let held = before
    while (performance.now() < until) held = await rates(process, messages)
    await session.query('commit')
    await session.end()
    // The node looks for dead rows every 5 s.
    await pause(10_000)
    await rates(process, messages)
    const after = await rates(process, messages)
    return LIVES.flatMap((life): Figure[] => [
      { name: `${life}, before`, unit: 'messages/s', target: null, values: [before[life]] },
      { name: `${life}, held ÷ before`, unit: '', target: { least: 0.7 }, values: [held[life] / before[life]] },
      { name: `${life}, after ÷ before`, unit: '', target: { least: 0.9 }, values: [after[life] / before[life]] },
    ])
  },
}

/** Messages per second of each life. */
async function rates(process: LifeProcess, messages: number): Promise<Readonly<Record<Life, number>>> {
  const of = async (life: Life): Promise<number> => messages / (await process.run({ life, callers: CALLERS, messages })).seconds
  return { 'born leased': await of('born leased'), claimed: await of('claimed') }
}
