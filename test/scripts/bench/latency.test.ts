import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { latenciesOf, readArrivals, readSent } from '../../../scripts/bench/latency.ts'

test('times are read from the files of the source and the sink, arrivals from a position on', () => {
  const folder = mkdtempSync(join(tmpdir(), 'deferd-latency-'))
  const file = join(folder, 'times')
  try {
    writeFileSync(file, new Float64Array([1, 2.5, 3, 4, 5, 6.25]))
    expect(readSent(file)).toEqual([
      { number: 1, dot: 2.5, reply: 3 },
      { number: 4, dot: 5, reply: 6.25 },
    ])
    expect(readArrivals(file, 16)).toEqual([
      { number: 3, at: 4 },
      { number: 5, at: 6.25 },
    ])
    expect(readArrivals(file, 48)).toEqual([])
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('latencies are those of messages that arrived, at their last arrival', () => {
  const sent = [1, 2, 3].map((number) => ({ number, dot: 100, reply: 100 + number }))
  const arrivals = [
    { number: 1, at: 103 },
    { number: Number.NaN, at: 900 },
    { number: 2, at: 104 },
    { number: 1, at: 105 },
  ]
  expect(latenciesOf(sent, arrivals)).toEqual({ accept50: 2, accept99: 3, deliver50: 2, deliver99: 4 })
})

test('without messages there are no latencies', () => {
  expect(latenciesOf([], [])).toEqual({ accept50: null, accept99: null, deliver50: null, deliver99: null })
})
