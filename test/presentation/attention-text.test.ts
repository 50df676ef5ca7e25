/** Words of conditions that need an operator's attention. */
import { expect, test } from 'vitest'
import { loggedNotes, otherLimits } from '../../src/presentation/attention-text.ts'

test('the notes of a shared queue are those of one node', () => {
  expect(loggedNotes(3, 'n1')).toBe('3 notes (warnings and errors) that the process of n1 has logged in the last hour')
  expect(loggedNotes(1, undefined)).toBe('1 note (warnings and errors) that this process has logged in the last hour')
})

test.each([
  [1, 0, ''],
  [1, 1, ''],
  [3, 0, ', and 2 other limits nearly full'],
  [3, 1, ', and 2 other limits nearly full'],
  [3, 2, ', and by 1 other limit; 1 other limit nearly full'],
  [3, 3, ', and by 2 other limits'],
])('of %i limits that need attention, %i refuse mail: %s', (found, refusing, text) => {
  expect(otherLimits({ found, refusing })).toBe(text)
})
