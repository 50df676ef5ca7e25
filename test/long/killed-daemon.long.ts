import { join } from 'node:path'
import { expect, test } from 'vitest'
import { SAFETY_MUTANTS } from '../mutants/safety-mutants.ts'
import { withPlanted } from '../mutants/test-hunt.ts'
import { printFigures } from '../support/figures.ts'
import { killCycles } from '../support/kill-cycles/kill-cycles.ts'
import { portion } from './portion.ts'

const CYCLES = 250
const { isIncluded, from, to } = portion('killed-daemon/cycles')
const seeds = Array.from({ length: isIncluded ? to - from + 1 : 0 }, (_, n) => from + n)

test.each(seeds)(`seed %i: a daemon killed ${CYCLES} times during submissions, operations and notices loses neither`, async (seed) => {
  const { cycles, atSystemCalls, recipients, notices, duplicates, bound, ...more } = await killCycles({ cycles: CYCLES, seed })
  printFigures('SIGKILL', {
    cycles,
    'of them at a system call': atSystemCalls,
    'acknowledged recipients': recipients,
    notices: notices,
    lost: 0,
    'notices lost or doubled': 0,
    'corrupt queue files': 0,
    duplicates: duplicates,
    'allowed duplicates': bound,
    'recipients in corrupt': more.corrupt,
    operations: more.operations,
    'submissions by sendmail': more.submissions,
    seed,
  })
  expect(recipients).toBeGreaterThan(5 * CYCLES)
})

const PLANTED = ['250 before the commit', 'a file is removed before its message is committed']

const planted = portion('killed-daemon/planted').isIncluded ? SAFETY_MUTANTS.filter(({ name }) => PLANTED.includes(name)) : []

test.each(planted)('the account finds that $name', async (mutant) => {
  await withPlanted(mutant, async (folder) => {
    const harness = (await import(join(folder, 'test/support/kill-cycles/kill-cycles.ts'))) as { readonly killCycles: typeof killCycles }
    await expect(harness.killCycles({ cycles: 60, seed: 1 })).rejects.toThrow('to deeply equal []')
  })
})
