/** Words of conditions that need an operator's attention. */
import { expect, test } from 'vitest'
import { loggedNotes } from '../../src/presentation/attention-text.ts'

test('the notes of a shared queue are those of one node', () => {
  expect(loggedNotes(3, 'n1')).toBe('3 notes (warnings and errors) that the process of n1 has logged in the last hour')
  expect(loggedNotes(1, undefined)).toBe('1 note (warnings and errors) that this process has logged in the last hour')
})
