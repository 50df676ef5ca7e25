/** The number of causes is bounded, and those of a destination are not rare because many others were counted before it. */
import { expect, test } from 'vitest'
import { CauseGroups } from '../../../src/store/counts/cause-groups.ts'

const failed = (destination: string, cause: string) =>
  ({ destination, kind: 'failed', isHeld: false, cause, recipients: 1, since: null, last: null, example: null }) as const

test('the last of many destinations has its causes', () => {
  const groups = new CauseGroups()
  for (let n = 0; n < 5_000; n++) groups.add(failed(`d${n}.example`, 'Connection timed out'))
  for (let n = 0; n < 3_000; n++) groups.add(failed('last.example', '421 4.7.28 unusual rate'))
  expect(groups.all).toContainEqual({ ...failed('last.example', '421 4.7.28 unusual rate'), recipients: 3_000 })
  expect(groups.all.filter(({ kind }) => kind === 'rare')).toEqual([])
})

test('a server that writes a different text into each reply has a bounded number of causes', () => {
  const groups = new CauseGroups()
  for (let n = 0; n < 10_000; n++) groups.add(failed('odd.example', `450 text ${String.fromCodePoint(0x4e00 + n)}`))
  expect(groups.all).toHaveLength(4_097)
  expect(groups.all.find(({ kind }) => kind === 'rare')?.recipients).toBe(10_000 - 4_096)
})
