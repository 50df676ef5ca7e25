import { join } from 'node:path'
import { expect, test } from 'vitest'
import { faultyRun } from '../support/io-faults/faulty-runs.ts'
import { faultyEnvironment, firstFault, noFaultsBecause } from '../support/io-faults/io-faults.ts'
import { KillableRelay } from '../support/killable-relay.ts'

const why = noFaultsBecause()
const title = (text: string): string => (why === null ? text : `${text} (not run: ${why})`)

for (const from of [1, 9, 30]) {
  test.runIf(why === null)(
    title(`after a failed sync (number ${from}) no 250 follows, and a new start serves all that was accepted`),
    async () => {
      const { ended } = await faultyRun({ call: 'sync', from, count: 1, error: 'EIO' })
      // EX_IOERR: a supervisor starts the daemon again.
      expect(ended).toBe(74)
    },
  )
}

test.runIf(why === null)(title('after a failed write the daemon ends and a new start serves all that was accepted'), async () => {
  const { ended } = await faultyRun({ call: 'write', from: 60, count: 1, error: 'EIO' })
  expect(ended).toBe(74)
})

// The first two syncs of the file make it; the third one is in a checkpoint.
test.runIf(why === null)(
  title('after a failed sync of the queue file in a checkpoint no 250 follows, and a new start serves all that was accepted'),
  async () => {
    const { ended, fatal } = await faultyRun({ call: 'sync', from: 3, count: 1, error: 'EIO', path: '*/queue.db' })
    expect(ended).toBe(74)
    expect(fatal).toEqual([expect.stringContaining('while the write-ahead log was moved into the queue file') as string])
  },
)

/** Exit code of a start whose n-th sync fails; `started` when it made fewer syncs. Throws when it neither ends nor listens. */
async function startWithFailedSync(n: number): Promise<number | 'started'> {
  const lab = new KillableRelay()
  try {
    await lab.open(0)
    const log = join(lab.queueDirectory, 'faults.log')
    const listensOrEnds = lab.startDaemon(faultyEnvironment({ call: 'sync', from: n, count: 1, error: 'EIO' }, log))
    const ended = lab.ends(20_000)
    await Promise.race([ended, listensOrEnds])
    if (lab.load.port !== null && firstFault(log) === null) return 'started'
    const code = await ended
    if (code === 'running') throw new Error(`the daemon did not end after failed sync ${n}`)
    return code
  } finally {
    await lab.close()
  }
}

test.runIf(why === null)(title('a failed sync at any moment of the start ends it with 74'), async () => {
  const codes: (number | 'started')[] = []
  while (codes.at(-1) !== 'started') codes.push(await startWithFailedSync(codes.length + 1))
  expect(codes.length).toBeGreaterThan(8)
  expect(new Set(codes.slice(0, -1))).toEqual(new Set([74]))
})
