/**
 * Moves the queue of a daemon under load to another directory, kills the daemon (SIGKILL) `kills` times during the move, completes it,
 * and counts what became of each message. The remote server accepts nothing before that, so that no delivery is repeated by a kill.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import { seededRandom } from '../../src/system/random.ts'
import { isRefused, KillableRelay } from './killable-relay.ts'

const pause = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms))

/** Number of messages in the queue when the first move begins. */
const BACKLOG = 150

export interface MoveReport {
  readonly acknowledged: number
  /** Number of kills after which messages were between the queues. */
  readonly interrupted: number
  readonly refusals: readonly string[]
}

/** Runs `deferd queue move` and resolves with its exit code and output. */
function move(from: string, to: string, ...more: readonly string[]): Promise<{ readonly code: number | null; readonly said: string }> {
  const program = join(import.meta.dirname, '../../bin/deferd.js')
  const words = ['queue', 'move', '--to', to, '-o', `queue_directory=${from}`, ...more]
  const child = spawn(process.execPath, [program, ...words], { stdio: ['ignore', 'pipe', 'pipe'] })
  let said = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (said += String(data)))
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, said })))
}

export async function killedWhileMoving(kills: number, seed: number): Promise<MoveReport> {
  const chance = seededRandom(seed).stream('kills')
  const lab = new KillableRelay()
  const target = mkdtempSync(join(tmpdir(), 'deferd-target-'))
  lab.far.isBusy = true
  lab.load.pace = 5
  try {
    await lab.open(4)
    await lab.startDaemon()
    await lab.acknowledges(BACKLOG)
    for (let kill = 0; kill < kills; kill++) {
      const moving = move(lab.queueDirectory, target)
      while (lab.log.filter((line) => line.includes('of this queue to')).length <= kill) await pause(5)
      await pause(chance() * 250)
      await lab.die(0)
      await moving
      await lab.startDaemon()
    }
    const final = await move(lab.queueDirectory, target, '--final')

    expect(final).toMatchObject({ code: 0 })
    await pause(300)
    const { refusals } = lab.load
    await lab.quiet()
    expect((await lab.terminate()).code).toBe(0)
    await lab.startDaemon()
    expect(await lab.ends(20_000)).toBe(78)
    expect(lab.log.at(-1)).toContain(`was moved to ${target}`)

    await delivered(lab, target)

    const interrupted = lab.log.filter((line) => line.includes('are between this queue and another')).length
    return { acknowledged: lab.acknowledged.size, interrupted, refusals }
  } finally {
    await lab.close()
    rmSync(target, { recursive: true, force: true })
  }
}

/** Starts a daemon with the target, and expects that it delivers or returns each acknowledged message once. */
async function delivered(lab: KillableRelay, target: string): Promise<void> {
  const { far, acknowledged } = lab
  far.isBusy = false
  const daemon = new KillableRelay({ queue_directory: target, relayhost: lab.nextHop })
  try {
    await daemon.startDaemon()
    expect(await daemon.drained(60_000)).toBe(true)
    expect((await daemon.terminate()).code).toBe(0)
    // A message that was in delivery at three kills.
    const corrupt = daemon.corrupt()
    const isMissing = (number: number) => !(isRefused(number) ? far.noticed : far.delivered).has(number) && !corrupt.has(number)
    expect([...acknowledged.keys()].filter(isMissing)).toEqual([])
  } finally {
    await daemon.close()
  }
  expect([...far.delivered].filter(([, times]) => times !== 1)).toEqual([])
  expect([...far.noticed].filter(([, ids]) => ids.size !== 1)).toEqual([])
}
