/** A million suppressed addresses. */
import { expect, test } from 'vitest'
import { printFigures } from '../support/figures.ts'
import { countedStatements } from '../support/statement-count.ts'
import { costOfRcpt } from '../support/suppressed-recipients.ts'

const ENTRIES = 1_000_000
const statements = countedStatements()

test('RCPT costs no statement more than beside none, and the keys take at most 20 MB', async () => {
  const none = await costOfRcpt(0, statements)
  const { others, withListed, memory } = await costOfRcpt(ENTRIES, statements)
  printFigures('suppressed addresses', {
    entries: ENTRIES,
    'statements of 100 recipients': others,
    'beside none': none.others,
    'bytes of keys': memory,
  })
  expect(others).toBe(none.others)
  expect(withListed).toBeGreaterThan(others)
  expect(memory).toBeGreaterThan(8 * ENTRIES)
  expect(memory).toBeLessThan(20_000_000)
})
