import { describe, expect, test } from 'vitest'
import { parseStat, parseUse, shareOfOthers, ticksOfTree } from '../../../scripts/bench/processor-time.ts'

/** A line of /proc/PID/stat with 52 fields. */
const statLine = (pid: number, name: string, parent: number, times: string) =>
  `${pid} (${name}) S ${parent} 1 1 0 -1 4194304 101 0 0 0 ${times} 20 0 1 0 22475 ${Array(30).fill(0).join(' ')}\n`

describe('a line of /proc/PID/stat', () => {
  test('tells the parent and the ticks, those of ended children included', () => {
    expect(parseStat(statLine(42, 'node', 7, '1 20 300 4000'))).toEqual({ pid: 42, parent: 7, ticks: 4321 })
  })

  test('may have a name with spaces and parentheses', () => {
    expect(parseStat(statLine(42, 'a) R 9 (b', 7, '1 2 3 4'))).toEqual({ pid: 42, parent: 7, ticks: 10 })
  })

  test.each(['', '42', '42 (node) S', 'no line at all'])('is refused when it is cut: %j', (line) => {
    expect(parseStat(line)).toBeNull()
  })
})

test('a tree has the ticks of all descendants and of nobody else', () => {
  const processes = [
    { pid: 1, parent: 0, ticks: 1000 },
    { pid: 12, parent: 11, ticks: 30 },
    { pid: 10, parent: 1, ticks: 1 },
    { pid: 11, parent: 10, ticks: 5 },
    { pid: 13, parent: 10, ticks: 200 },
    { pid: 20, parent: 1, ticks: 5000 },
  ]
  expect(ticksOfTree(10, processes)).toBe(236)
  expect(ticksOfTree(99, processes)).toBeNull()
})

test('what other programs took is what was busy without our own', () => {
  const before = { own: 10, ...parseUse('cpu  100 0 50 800 50 0 0 0 7 7\ncpu0 1 1 1 1\n') }
  const after = { own: 110, ...parseUse('cpu  250 0 100 1550 100 0 0 0 7 7\n') }
  expect(before).toEqual({ own: 10, busy: 150, total: 1000 })
  expect(shareOfOthers(before, after)).toBe(0.1)
  expect(shareOfOthers(before, before)).toBe(0)
})
