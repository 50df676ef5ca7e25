import { expect, test } from 'vitest'
import { CheckpointPace, DUE_FROM, MOST_FRAMES } from '../../../../src/store/sqlite/file/checkpoint-pace.ts'

function paced({ took, hasRoom = true }: { took: number; hasRoom?: boolean }): CheckpointPace {
  const pace = new CheckpointPace(DUE_FROM, () => hasRoom)
  pace.ended(took, 10_000)
  return pace
}

test('a checkpoint is due at 1,000 frames, at once after a fast one', () => {
  const pace = paced({ took: 20 })
  expect(pace.isDue(999, 10_001)).toBe(false)
  expect(pace.isDue(1_000, 10_001)).toBe(true)
})

test('after a slow checkpoint the next one waits for 20 times its duration', () => {
  const pace = paced({ took: 1_200 })
  expect(pace.isDue(1_000, 33_999)).toBe(false)
  expect(pace.isDue(1_000, 34_000)).toBe(true)
})

test('a log of 7,500 frames does not wait, nor does one on a disk without room for it', () => {
  expect(paced({ took: 1_200 }).isDue(MOST_FRAMES, 10_001)).toBe(true)
  expect(paced({ took: 1_200, hasRoom: false }).isDue(1_000, 10_001)).toBe(true)
})
