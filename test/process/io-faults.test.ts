import { spawnSync } from 'node:child_process'
import { basename, join, relative } from 'node:path'
import { expect, test } from 'vitest'
import { faultyRun } from '../support/io-faults/faulty-runs.ts'
import { faultyEnvironment, firstFault, noFaultsBecause } from '../support/io-faults/io-faults.ts'
import { KillableRelay } from '../support/killable-relay.ts'
import { folder } from '../store/sqlite/folders.ts'

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

// The opening of a new queue makes some hundreds of writes.
test.runIf(why === null)(title('after a failed write the daemon ends and a new start serves all that was accepted'), async () => {
  const { ended, fatal } = await faultyRun({ call: 'write', from: 1_500, count: 1, error: 'EIO' })
  expect(ended).toBe(74)
  expect(fatal).toEqual([expect.stringContaining('I/O error in the queue file: disk I/O error (SQLITE_IOERR_WRITE)') as string])
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

interface FaultyOpening {
  /** The file or folder whose sync failed, relative to the queue folder; null when the opening made fewer syncs. */
  readonly path: string | null
  /** Exit code; null when the queue was opened. */
  readonly code: number | null
  readonly said: string
}

/** Opens a new queue, and fails the n-th sync of any file or folder. */
function openingWithFailedSync(n: number): FaultyOpening {
  const [directory, faults] = [folder(), join(folder(), 'faults.log')]
  const program = join(import.meta.dirname, '../support/io-faults/queue-opener.ts')
  const env = { ...process.env, ...faultyEnvironment({ call: 'sync', from: n, count: 1, error: 'EIO', path: directory }, faults) }
  const { status, stderr } = spawnSync(process.execPath, [program, directory], { env, encoding: 'utf8' })
  const path = firstFault(faults)?.path
  return { path: path === undefined ? null : relative(directory, path), code: status, said: stderr }
}

// SQLite syncs the folder for each journal and log that it makes, and ignores the result (unixSync in os_unix.c). The two of the rollback
// journal precede all mail. The one of the log follows a sync by the store, which has checked the same names.
test.runIf(why === null)(title('a failed sync at any moment of the opening ends it with 74'), () => {
  const openings: FaultyOpening[] = []
  while (openings.at(-1)?.path !== null) openings.push(openingWithFailedSync(openings.length + 1))
  const met = openings.slice(0, -1)
  expect(met.filter(({ path, code }) => path !== '' && code !== 74)).toEqual([])
  expect(new Set(met.map(({ path }) => path))).toEqual(new Set(['queue.db', 'queue.db-journal', 'queue.db-wal', 'generation.partial', '']))
  expect(met.filter(({ path }) => path === '').map(({ code }) => code)).toEqual([null, null, 74, null, 74])
  expect(met.filter(({ code, said }) => code === 74 && !/^(?:cannot open the queue|I\/O error in the queue file).*\n$/.test(said))).toEqual(
    [],
  )
})

test.runIf(why === null).each(['*/queue.db', '*/queue.db-wal', '*/generation.partial', 'FOLDER'])(
  title('after a failed sync of %s no daemon listens: 74 and a sentence'),
  async (of) => {
    const lab = new KillableRelay()
    try {
      await lab.open(0)
      const path = of === 'FOLDER' ? `*/${basename(lab.queueDirectory)}` : of
      await lab.startDaemon(faultyEnvironment({ call: 'sync', from: 1, error: 'EIO', path }, join(folder(), 'faults.log')))
      expect(await lab.ends(60_000)).toBe(74)
      expect(lab.load.port).toBeNull()
      expect(lab.log).toEqual([expect.stringMatching(/^deferd: cannot open the queue .*check the disk, then start again$/)])
    } finally {
      await lab.close()
    }
  },
)
