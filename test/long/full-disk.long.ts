import { expect, test } from 'vitest'
import { printFigures } from '../support/figures.ts'
import { noSmallDisksBecause, onSmallDisk } from '../support/full-disk.ts'

const why = noSmallDisksBecause()
const title = (text: string): string => (why === null ? text : `${text} (not run: ${why})`)

test.runIf(why === null)(
  title('64 MB full of deferred mail and of another file: goodput is back to 95 % within 60 s after the file is gone'),
  { timeout: 300_000 },
  () => {
    const report = onSmallDisk('deferred', { megabytes: 64, seconds: 2 })
    printFigures('full disk, 64 MB, deferred mail', { report: report as object })
    expect(report).toMatchObject({
      isFull: true,
      left: 0,
      drainedWhileFull: true,
      hasRecovered: true,
      drained: true,
      healthy: true,
      lost: 0,
      duplicates: 0,
      exit: 0,
    })
  },
)

test.runIf(why === null)(
  title('40 clients with 9 MB each and a disk of 256 MB: all space is free again, and the daemon starts on a full disk'),
  { timeout: 300_000 },
  () => {
    const report = onSmallDisk('big', { megabytes: 256, seconds: 0 })
    printFigures('full disk, 256 MB, 40 clients with 9 MB each', { report: report as object })
    expect(report).toMatchObject({ health: 200, one: '250 2.0.0', accepts: true, exits: [0, 0] })
  },
)

test.runIf(why === null)(
  title('256 MB full of mail over HTTP: 507 or 503 with nothing kept, and nothing is lost'),
  { timeout: 300_000 },
  () => {
    const report = onSmallDisk('http', { megabytes: 256, seconds: 0 })
    printFigures('full disk, 256 MB, mail over HTTP', { report: report as object })
    expect(report).toMatchObject({ left: 0, kept: 0, drained: true, refusedAgain: 0, drainedAgain: true, exit: 0, lost: 0, duplicates: 0 })
  },
)
