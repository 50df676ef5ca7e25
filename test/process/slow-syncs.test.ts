/** The two acknowledgements of a commit, with the store of a daemon on a disk whose syncs take 100 ms, or fail. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { daemonEnvironment } from '../../src/system/node-version.js'
import { delayedSyncs, faultyEnvironment, noFaultsBecause } from '../support/io-faults/io-faults.ts'
import type { SlowSyncs } from '../support/slow-syncs.ts'
import { folder } from '../store/sqlite/folders.ts'

const why = noFaultsBecause()
const title = (text: string): string => (why === null ? text : `${text} (not run: ${why})`)

function slowSyncs(more: Readonly<Record<string, string>> = {}): SlowSyncs {
  const env = { ...process.env, ...daemonEnvironment, ...delayedSyncs(100), ...more }
  const program = join(import.meta.dirname, '../support/slow-syncs.ts')
  const { stdout, stderr, status } = spawnSync(process.execPath, [program, folder()], { env, encoding: 'utf8' })
  expect(status, stderr).toBe(0)
  return JSON.parse(stdout) as SlowSyncs
}

const numbers = (told: SlowSyncs['told'], what: SlowSyncs['told'][number][0]): readonly number[] =>
  told.flatMap(([one, number]) => (one === what ? [number] : []))

const ascending = (all: readonly number[]): readonly number[] => all.toSorted((a, b) => a - b)

test.runIf(why === null)(title('outcomes are written while syncs of earlier ones run, and durable in order'), () => {
  const { told, failures, last } = slowSyncs()
  const [written, durable] = [numbers(told, 'written'), numbers(told, 'durable')]
  expect(durable).toEqual(Array.from({ length: 60 }, (_, n) => n))
  expect(written).toEqual(ascending(written))
  const at = (what: string, n: number): number => told.findIndex(([one, number]) => one === what && number === n)
  expect(written.filter((n) => at('written', n) > at('durable', n))).toEqual([])
  // One is written before the one before it is durable.
  expect(written.filter((n) => n > 0 && at('written', n) < at('durable', n - 1)).length).toBeGreaterThan(10)
  expect([failures, last]).toEqual([[], 'answered'])
  // The free space tells nothing of the outcomes, and waits for none of them.
  expect(numbers(told, 'space').filter((n) => at('space', n) < at('durable', n)).length).toBeGreaterThan(30)
})

test.runIf(why === null)(title('after a failed sync nothing more is durable, although later syncs succeed'), () => {
  const fault = faultyEnvironment({ call: 'sync', path: '*/queue.db-wal', from: 20, count: 1, error: 'EIO' }, join(folder(), 'faults'))
  const { told, failures, last } = slowSyncs(fault)
  const [durable, failed] = [numbers(told, 'durable'), numbers(told, 'failed')]
  expect([...durable, ...failed]).toEqual(Array.from({ length: 60 }, (_, n) => n))
  expect(failed.length).toBeGreaterThan(5)
  expect(told.findIndex(([what]) => what === 'failed')).toBeGreaterThan(told.findLastIndex(([what]) => what === 'durable'))
  const failure = expect.stringContaining('I/O error in the queue file: the write-ahead log cannot be synced: EIO') as string
  expect([failures, last]).toEqual([[failure], failure])
})

test.runIf(why === null)(title('after a slow checkpoint the log grows beyond the frames at which a checkpoint is due'), () => {
  const program = join(import.meta.dirname, '../support/slow-checkpoints.ts')
  // The checkpoint takes 600 ms, so that the next one waits for 12 s: three times as long as what is stored meanwhile takes.
  const { stdout, stderr, status } = spawnSync(process.execPath, [program, folder()], {
    env: { ...process.env, ...delayedSyncs(200) },
    encoding: 'utf8',
  })
  expect(status, stderr).toBe(0)
  expect(Number(stdout)).toBeGreaterThan(1_900)
})
