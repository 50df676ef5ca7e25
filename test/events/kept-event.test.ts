import { expect, test } from 'vitest'
import { eventTime } from '../../src/events/kept-event.ts'
import { WallView } from '../../src/system/wall-view.ts'

const AT = 1_767_225_600_123
const timeAt = (offset: number) => eventTime({ at: AT }, new WallView(() => AT, offset))

test('an event has one time for all processes whose clocks differ by less than a second, and that of a wall clock that was set', () => {
  expect([-400, -3, 0, 12, 499].map(timeAt)).toEqual(Array(5).fill(AT))
  expect([3_600_020, 3_599_990].map(timeAt)).toEqual(Array(2).fill(1_767_222_000_123))
})
