import { expect, test } from 'vitest'
import { faultyRun } from '../support/io-faults/faulty-runs.ts'
import { noFaultsBecause } from '../support/io-faults/io-faults.ts'

const why = noFaultsBecause()
const title = (text: string): string => (why === null ? text : `${text} (not run: ${why})`)

for (const from of [1, 9, 30]) {
  test.runIf(why === null)(
    title(`after a failed sync (number ${from}) no 250 follows, and a new start serves all that was accepted`),
    { timeout: 60_000 },
    async () => {
      const { ended } = await faultyRun({ call: 'sync', from, count: 1, error: 'EIO' })
      // EX_IOERR: a supervisor starts the daemon again.
      expect(ended).toBe(74)
    },
  )
}

test.runIf(why === null)(
  title('after a failed write the daemon ends and a new start serves all that was accepted'),
  { timeout: 60_000 },
  async () => {
    const { ended } = await faultyRun({ call: 'write', from: 60, count: 1, error: 'EIO' })
    expect(ended).toBe(74)
  },
)

// The first two syncs of the file make it; the third one is in a checkpoint.
test.runIf(why === null)(
  title('after a failed sync of the queue file in a checkpoint no 250 follows, and a new start serves all that was accepted'),
  { timeout: 60_000 },
  async () => {
    const { ended, fatal } = await faultyRun({ call: 'sync', from: 3, count: 1, error: 'EIO', path: '*/queue.db' })
    expect(ended).toBe(74)
    expect(fatal).toEqual([expect.stringContaining('while the write-ahead log was moved into the queue file') as string])
  },
)
