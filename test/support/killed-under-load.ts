/** Kills a relay `kills` times under load and checks the outcome of each message; used by the short and the long test. */
import { expect } from 'vitest'
import { seededRandom } from '../../src/system/random.ts'
import { until } from './node-cluster.ts'
import { KillableRelay, isRefused } from './killable-relay.ts'

/** Points at which the relay is killed, in turn; the empty one is a random moment. */
const MOMENTS = ['', 'before enqueue', 'after enqueue', 'before settle', 'after settle', 'before report', 'after report']
/** Maximum number of deliveries in flight: default_destination_concurrency_limit. */
const IN_FLIGHT = 20

export interface KillReport {
  readonly acknowledged: number
  readonly duplicates: number
  readonly notices: number
  readonly corrupt: number
}

export async function killedUnderLoad(kills: number, seed: number): Promise<KillReport> {
  const chance = seededRandom(seed).stream('crashes')
  const lab = new KillableRelay()
  lab.far.delay = 5
  try {
    await lab.open(8)
    for (let kill = 0; kill < kills; kill++) {
      const moment = MOMENTS[kill % MOMENTS.length] ?? ''
      await lab.start(moment === '' ? '' : `${moment} ${1 + Math.floor(chance() * 30)}`)
      await lab.die(moment === '' ? 50 + chance() * 400 : 5_000)
    }
    await lab.start()
    // A busy machine may take longer for some mail than the kills.
    await until('some mail is acknowledged', 60_000, () => Promise.resolve(lab.acknowledged.size > 50 && lab.far.noticed.size > 2))
    await lab.quiet()
    expect(await lab.drained(60_000)).toBe(true)
    expect((await lab.terminate()).code).toBe(0)
    return account(lab, kills)
  } finally {
    await lab.close()
  }
}

/** Expects that every message answered 250 was delivered, returned or kept, and that only crashes caused duplicates. */
function account(lab: KillableRelay, kills: number): KillReport {
  const { far, acknowledged } = lab
  const corrupt = lab.corrupt()
  const lost = [...acknowledged.keys()].filter(
    (number) => !(isRefused(number) ? far.noticed : far.delivered).has(number) && !corrupt.has(number),
  )
  expect(lost).toEqual([])
  const duplicates = [...far.delivered.values()].reduce((sum, times) => sum + times - 1, 0)
  expect(duplicates).toBeLessThanOrEqual(kills * IN_FLIGHT)
  // The delivery of a notice may be repeated by a crash like that of any mail, but there are never two notices.
  expect([...far.noticed].filter(([, ids]) => ids.size !== 1)).toEqual([])
  return { acknowledged: acknowledged.size, duplicates, notices: far.noticed.size, corrupt: corrupt.size }
}
