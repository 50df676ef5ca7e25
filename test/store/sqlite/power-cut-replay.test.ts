import { expect, test } from 'vitest'
import { noFaultsBecause } from '../../support/io-faults/io-faults.ts'
import { powerCuts } from '../../support/power-cut/replay.ts'

const why = noFaultsBecause()
const title = (text: string): string => (why === null ? text : `${text} (not run: ${why})`)
const STATES = 120

test.runIf(why === null)(title(`${STATES} disks that a power cut may leave hold all acknowledged changes, and no damage`), async () => {
  const report = await powerCuts({ states: STATES, seed: 1 })
  expect(report).toEqual({ states: STATES, corrupt: 0, lost: 0, findings: [] })
})

test.runIf(why === null)(title('a change that is acknowledged when it is written is found'), async () => {
  expect((await powerCuts({ states: 40, seed: 1, fault: 'written' })).lost).toBeGreaterThan(4)
})
