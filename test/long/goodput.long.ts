import { expect, test } from 'vitest'
import { printFigures } from '../support/figures.ts'
import { goodputAround, type Fault } from '../support/goodput.ts'
import { noFaultsBecause } from '../support/io-faults/io-faults.ts'

const FAULTS: readonly Fault[] = ['SIGKILL', 'SIGSTOP', 'remote outage', ...(noFaultsBecause() === null ? (['EIO'] as const) : [])]

test.each(FAULTS)('after %s goodput is back to 95 % within 60 seconds, and nothing is lost', async (fault) => {
  const { before, recovery, lost } = await goodputAround(fault)
  printFigures(`goodput after ${fault}`, { 'deliveries a second before': before, 's to 95 %': recovery, lost })
  expect(lost).toBe(0)
  expect(recovery).toBeLessThanOrEqual(60)
})
