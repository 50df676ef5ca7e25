/** A daemon under load whose N-th system call fails, and that is started again as a supervisor would. */
import { join } from 'node:path'
import { expect } from 'vitest'
import { KillableRelay, isRefused } from '../killable-relay.ts'
import { faultyEnvironment, firstFault, type IoFault } from './io-faults.ts'

/** Each of them has at most one reply under way when the call fails, and reads it later. */
const CLIENTS = 4
/** The most deliveries in flight: default_destination_concurrency_limit. */
const IN_FLIGHT = 20

export interface FaultyRun {
  /** Exit code of the daemon; 'running' when it refused mail and went on. */
  readonly ended: number | 'running'
  /** Milliseconds from the failed call to the end of the process, as far as the harness saw it. */
  readonly endedAfter: number
  /** Replies 250 that clients read after the failed call. */
  readonly late: number
  readonly acknowledged: number
  readonly duplicates: number
  /** Fatal log lines of the daemon. */
  readonly fatal: readonly string[]
}

/**
 * One run: the fault under load, then a start without it. Asserts that no 250 follows a failed sync but those under way, that the daemon
 * ends within `patience` ms or refuses, and that everything acknowledged arrives or is returned.
 */
export async function faultyRun(fault: IoFault, patience = 20_000): Promise<FaultyRun> {
  const lab = new KillableRelay()
  const log = join(lab.queueDirectory, 'faults.log')
  try {
    await lab.open(CLIENTS)
    await lab.startDaemon(faultyEnvironment(fault, log))
    for (let waited = 0; waited < 20_000 && firstFault(log) === null; waited += 20) await pause(20)
    const failedAt = firstFault(log)?.at ?? null
    expect(failedAt, 'the fault was never met').not.toBeNull()
    const ended = await lab.ends(patience)
    const endedAfter = Date.now() - (failedAt ?? 0)
    if (ended === 'running') await lab.die(0)
    const late = [...lab.load.acknowledgedAt.values()].filter((at) => at > (failedAt ?? 0)).length
    if (fault.call === 'sync') expect(late).toBeLessThanOrEqual(CLIENTS)
    await lab.startDaemon()
    const before = lab.acknowledged.size
    await lab.acknowledges(before + 20)
    await lab.quiet()
    expect(await lab.drained(30_000)).toBe(true)
    expect((await lab.terminate()).code).toBe(0)
    return { ended, endedAfter, late, fatal: lab.log.filter((line) => line.includes('fatal:')), ...account(lab) }
  } finally {
    await lab.close()
  }
}

function account({ far, acknowledged, log }: KillableRelay): Pick<FaultyRun, 'acknowledged' | 'duplicates'> {
  const lost = [...acknowledged.keys()].filter((number) => !(isRefused(number) ? far.noticed : far.delivered).has(number))
  const logged = lost.flatMap((number) => linesAbout(acknowledged.get(number) ?? '', log))
  expect(lost, logged.join('\n')).toEqual([])
  const duplicates = [...far.delivered.values()].reduce((sum, times) => sum + times - 1, 0)
  expect(duplicates).toBeLessThanOrEqual(2 * IN_FLIGHT)
  expect([...far.noticed].filter(([, ids]) => ids.size !== 1)).toEqual([])
  return { acknowledged: acknowledged.size, duplicates }
}

/** Log lines about a message and about the notices that it caused. */
function linesAbout(queueId: string, log: readonly string[]): readonly string[] {
  const lines = log.filter((line) => line.includes(` ${queueId}: `))
  const notices = lines.flatMap((line) => /notification: (\w+)$/.exec(line)?.[1] ?? [])
  return [...lines, ...notices.flatMap((notice) => linesAbout(notice, log))]
}

const pause = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms))
