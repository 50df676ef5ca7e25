/** SIGTERM under load: running deliveries may end, other mail stays in the queue, and nothing is lost or sent twice. */
import { expect, test } from 'vitest'
import { KillableRelay, isRefused } from '../support/killable-relay.ts'

const LIMIT = 10_000

test('SIGTERM with a slow next hop: exits with 0 within ten seconds, and the next start delivers the rest', async () => {
  const lab = new KillableRelay()
  lab.far.delay = 2_500
  try {
    await lab.open(8)
    await lab.startDaemon()
    // More than the relay has in flight to one destination.
    await lab.acknowledges(100)
    await expect.poll(() => lab.far.inTransfer).toBeGreaterThan(0)
    const terminated = lab.terminate()
    // As npm and timeout(1) do, which signal the process and its group.
    await new Promise((resolve) => setTimeout(resolve, 200))
    lab.signal('SIGTERM')
    lab.signal('SIGINT')
    const { code, took } = await terminated
    expect(code).toBe(0)
    expect(took).toBeLessThan(LIMIT)
    const deliveredBefore = lab.far.delivered.size
    expect(deliveredBefore).toBeGreaterThan(0)
    expect(deliveredBefore).toBeLessThan(lab.acknowledged.size)
    lab.far.delay = 0
    await lab.quiet()
    await lab.startDaemon()
    expect(await lab.drained(30_000)).toBe(true)
    expect((await lab.terminate()).code).toBe(0)
    const { delivered, noticed } = lab.far
    expect([...lab.acknowledged.keys()].filter((number) => !(isRefused(number) ? noticed : delivered).has(number))).toEqual([])
    expect([...delivered.values()].filter((times) => times !== 1)).toEqual([])
    expect([...noticed.values()].filter((ids) => ids.size !== 1)).toEqual([])
  } finally {
    await lab.close()
  }
})
