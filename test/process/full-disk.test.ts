import { spawnSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { queue } from '../conformance/mail.ts'
import { noSmallDisksBecause, onSmallDisk } from '../support/full-disk.ts'
import { Operator } from '../support/operator.ts'

const why = noSmallDisksBecause()
const title = (text: string): string => (why === null ? text : `${text} (not run: ${why})`)

test.runIf(why === null)(
  title('a disk full of deferred mail: it is delivered when the remote server recovers; nothing is lost or sent twice'),
  { timeout: 120_000 },
  () => {
    expect(onSmallDisk('deferred', { megabytes: 24, seconds: 0 })).toMatchObject({
      isFull: true,
      left: 0,
      full: [503, expect.stringMatching(/^mail is refused: /)],
      drainedWhileFull: true,
      hasRecovered: true,
      drained: true,
      healthy: true,
      lost: 0,
      duplicates: 0,
      exit: 0,
      reply: '250 2.0.0',
    })
  },
)

test.runIf(why === null)(
  title('large messages that do not fit on the disk together: some are accepted, and the space of the others is free again'),
  { timeout: 120_000 },
  () => {
    const report = onSmallDisk('big', { megabytes: 24, seconds: 0 }) as { readonly rounds: readonly Readonly<Record<string, number>>[] }
    expect(report).toMatchObject({ health: 200, one: '250 2.0.0', accepts: true, exits: [0, 0] })
    // Clients that are equally fast may fill the disk together, so that a round accepts none of them.
    expect(report.rounds.reduce((sum, round) => sum + (round['250 2.0.0'] ?? 0), 0)).toBeGreaterThanOrEqual(1)
    for (const round of report.rounds) expect(round['452 4.3.1'] ?? 0).toBeGreaterThanOrEqual(10)
  },
)

test.runIf(why === null)(
  title('a disk full of mail over HTTP: 507 or 503 with nothing kept, operations work, and nothing is lost or sent twice'),
  { timeout: 120_000 },
  () => {
    const report = onSmallDisk('http', { megabytes: 24, seconds: 0 }) as { readonly statuses: Readonly<Record<string, number>> }
    expect(report).toMatchObject({
      left: 0,
      kept: 0,
      operations: [200, 200],
      drained: true,
      refusedAgain: 0,
      drainedAgain: true,
      exit: 0,
      lost: 0,
      duplicates: 0,
      log: [],
    })
    expect(report.statuses['507 /problems/no-space']).toBeGreaterThanOrEqual(20)
    expect(Object.keys(report.statuses).filter((text) => !/^50[37] \/problems\/(?:no-space|unavailable)$/.test(text))).toEqual([])
  },
)

test.runIf(why === null)(title('a backup to a full disk ends with 74, a restore to one with 75, and neither leaves a part'), async () => {
  const operator = new Operator()
  try {
    await operator.own(async (store) => void (await queue(store)))
    const small = join(operator.directory, 'small')
    mkdirSync(small)
    const deferd = `"$0" ${join(import.meta.dirname, '../../bin/deferd.js')} -o queue_directory=`
    const script = `
      mount -t tmpfs -o size=64k tmpfs ${small}
      ${deferd}${operator.directory} backup ${small}/copy.db; echo $?
      ls ${small}
      ${deferd}${operator.directory} backup ${operator.directory}/copy.db > ${operator.directory}/out; echo $?
      ${deferd}${small}/queue restore ${operator.directory}/copy.db; echo $?
      ls ${small}/queue`
    const { stdout, stderr } = spawnSync('unshare', ['-Urm', 'sh', '-c', script, process.execPath], { encoding: 'utf8' })
    expect(stdout).toBe('74\n0\n75\nlock.db\n')
    expect(stderr.split('\n')).toEqual([
      expect.stringMatching(/^deferd: cannot write the backup \S+: .* full; free some space on its disk, or name a file on another one$/),
      expect.stringMatching(/^deferd: cannot restore the queue in \S+: .* full; free some space on this disk, then restore again$/),
      '',
    ])
  } finally {
    operator.leave()
  }
})
