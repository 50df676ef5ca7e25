import { describe, expect, test } from 'vitest'
import { NoticeRounds } from '../../src/bounce/notice-rounds.ts'
import type { MessageId } from '../../src/mail/message.ts'
import { MINUTE, SECOND } from '../../src/system/clock.ts'
import { VirtualClock } from '../../src/testkit/virtual/virtual-clock.ts'

/** Rounds on a clock that starts at 0, with messages in memory, and the ends of rounds as `message at second`. */
function roundsAtZero(...inMemory: readonly MessageId[]) {
  const clock = new VirtualClock({ startsAt: 0 })
  const open = new Set(inMemory)
  const ended: string[] = []
  const rounds = new NoticeRounds(
    clock,
    (message) => open.has(message),
    (message) => ended.push(`${message} at ${clock.monotonic() / SECOND}`),
  )
  return { clock, open, ended, rounds }
}

describe('a round', () => {
  test('ends at once when no recipient of the message is in memory', () => {
    const { clock, ended, rounds } = roundsAtZero()
    rounds.begin(1)
    expect(ended).toEqual(['1 at 0'])
    expect(rounds.has(1)).toBe(false)
    expect(clock.pending).toBe(0)
  })

  test('ends with the last recipient that leaves memory', () => {
    const { clock, open, ended, rounds } = roundsAtZero(1)
    rounds.begin(1)
    clock.jumpTo(10 * SECOND)
    rounds.check(1)
    expect(ended).toEqual([])
    open.delete(1)
    rounds.check(1)
    rounds.check(1)
    expect(ended).toEqual(['1 at 10'])
  })

  test('ends a minute after its first failure, whatever is still in memory', () => {
    const { clock, ended, rounds } = roundsAtZero(1, 2)
    rounds.begin(1)
    clock.jumpTo(20 * SECOND)
    rounds.begin(2)
    rounds.begin(1)
    while (clock.runNext());
    expect(ended).toEqual(['1 at 60', '2 at 80'])
  })

  test('is not begun by a message without a notice due', () => {
    const { ended, rounds } = roundsAtZero()
    rounds.check(1)
    expect(ended).toEqual([])
  })

  test('does not end any more after a stop', () => {
    const { clock, ended, rounds } = roundsAtZero(1)
    rounds.begin(1)
    rounds.stop()
    clock.jumpTo(2 * MINUTE)
    expect(ended).toEqual([])
    expect(clock.pending).toBe(0)
  })
})
