/** The contention models, compared with their publications and with two other implementations. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { runClient } from '../../../src/simulator/contention/clients.ts'
import { type Discipline, runCrashingServer } from '../../../src/simulator/contention/crashing-server.ts'
import { runLimitedServer } from '../../../src/simulator/contention/limited-server.ts'
import { type RowBackoff, runSharedRow } from '../../../src/simulator/contention/shared-row.ts'
import { constantOne, type Feedback, perConcurrency, perRoot } from '../../../src/simulator/contention/window-clients.ts'
import { mulberry32 } from '../../../src/system/random.ts'

interface Golden {
  readonly expo_full_n0_1: Record<string, Record<string, [number, number]>>
  readonly cc: Record<string, Record<string, [number, number, number]>>
}
const golden = JSON.parse(readFileSync(new URL('golden/backoff-simulation-goldens.json', import.meta.url), 'utf8')) as Golden

const run = (client: string, seed = 1, more: { maxBusy?: number; wait?: number } = {}) =>
  runClient({ client, seed, requests: 2000, maxBusy: 50, ...more })

const seconds = (microseconds: number): number => microseconds / 1e6
const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length

test('mulberry32(1) draws the reference numbers', () => {
  const draw = mulberry32(1)
  expect([draw(), draw(), draw()]).toEqual([0.6270739405881613, 0.002735721180215478, 0.5274470399599522])
})

describe('equal to the golden file, to the microsecond and the attempt', () => {
  for (const [maxBusy, seeds] of Object.entries(golden.expo_full_n0_1)) {
    test(`backoff with full jitter, a server of ${maxBusy}`, () => {
      for (const [seed, expected] of Object.entries(seeds)) {
        const { makespan, attempts, completed } = run('backoff', Number(seed), { maxBusy: Number(maxBusy) })
        expect([seconds(makespan), attempts], `seed ${seed}`).toEqual(expected)
        expect(completed).toBe(2000)
      }
    })
  }
  for (const [maxBusy, clients] of Object.entries(golden.cc)) {
    for (const [client, [makespan, attempts]] of Object.entries(clients)) {
      test(`${client}, a server of ${maxBusy}`, () => {
        const result = run(client, 1, { maxBusy: Number(maxBusy) })
        expect([seconds(result.makespan), result.attempts]).toEqual([makespan, attempts])
      })
    }
  }
})

describe('the AWS article of 2019', () => {
  const windows: readonly (readonly [string, number, number])[] = [
    ['reno', 25.07, 2085],
    ['postfix', 25.1, 2041],
    ['postfix-program', 25.01, 2018],
  ]
  for (const [client, makespan, attempts] of windows) {
    test(`${client}: ${makespan} s and ${attempts} attempts`, () => {
      const result = run(client)
      expect(Math.abs(seconds(result.makespan) / makespan - 1)).toBeLessThan(0.005)
      expect(result.attempts).toBe(attempts)
    })
  }

  test('a fixed wait of 1 s collapses, one of 5 s needs 199 s', () => {
    const collapsed = run('fixed')
    expect(collapsed.attempts).toBe(400_000)
    expect(collapsed.completed).toBeLessThanOrEqual(100)
    const slow = run('fixed', 1, { wait: 5_000_000 })
    expect(slow.completed).toBe(2000)
    expect(Math.abs(seconds(slow.makespan) / 199 - 1)).toBeLessThan(0.02)
  })

  test('without jitter backoff needs a quarter of an hour', () => {
    const { makespan, attempts } = run('backoff-none')
    expect(Math.round(seconds(makespan))).toBe(1106)
    expect(attempts).toBe(50_750)
  })

  test('every client ends, the oracle first', () => {
    const oracle = run('oracle')
    expect(oracle.attempts).toBe(2000)
    for (const client of [
      'backoff-equal',
      'backoff-decorrelated',
      'token-bucket',
      'tahoe',
      'postfix-constant',
      'sidekiq',
      'google-http',
      'thain',
    ]) {
      const { completed, makespan } = run(client)
      expect(completed, client).toBe(2000)
      expect(makespan, client).toBeGreaterThan(oracle.makespan)
    }
  })

  test('an unknown client is refused by name', () => {
    expect(() => run('vegas')).toThrow(/unknown client "vegas"; the clients are backoff,/)
  })
})

describe('clients of one row (AWS, 2015), 100 clients, 100 trials', () => {
  const published: Record<RowBackoff, readonly [calls: number, seconds: number]> = {
    none: [2421, 2.0],
    exponential: [1860, 64],
    equal: [813, 6.7],
    decorrelated: [999, 4.6],
    full: [795, 4.9],
  }
  for (const [backoff, [calls, time]] of Object.entries(published)) {
    test(`${backoff}: ${calls} calls in ${time} s`, () => {
      const results = Array.from({ length: 100 }, (_, i) => runSharedRow({ clients: 100, backoff: backoff as RowBackoff, seed: i + 1 }))
      expect(Math.abs(mean(results.map((result) => result.calls)) / calls - 1)).toBeLessThan(0.02)
      expect(Math.abs(mean(results.map((result) => result.time)) / 1000 / time - 1)).toBeLessThan(0.05)
    })
  }
})

const jobs = (discipline: Discipline, clients: number) =>
  mean([1, 2, 3, 4, 5].map((seed) => runCrashingServer({ discipline, clients, seed }).jobs))

describe('the Ethernet experiment', () => {
  test('below exhaustion all are equal', () => {
    for (const discipline of ['fixed', 'aloha', 'ethernet'] as const) expect(jobs(discipline, 400)).toBeGreaterThan(5900)
  })
  test('just above it fixed retries collapse, Aloha degrades, Ethernet is unaffected', () => {
    expect(jobs('fixed', 420) / jobs('fixed', 400)).toBeLessThanOrEqual(0.15)
    const aloha = jobs('aloha', 420) / jobs('aloha', 400)
    expect(aloha).toBeGreaterThanOrEqual(0.6)
    expect(aloha).toBeLessThanOrEqual(0.9)
    for (const clients of [420, 600, 1000]) expect(jobs('ethernet', clients) / jobs('ethernet', 400)).toBeGreaterThanOrEqual(0.97)
  })
})

describe('Postfix’s experiment with a server that replies 421', () => {
  const table: readonly (readonly [string, Feedback, boolean, number, number | null])[] = [
    ['1/N', perConcurrency, false, 16.5, 5.17],
    ['1/√N', perRoot, false, 24.6, 5.26],
    ['1', constantOne, false, 49.7, 5.55],
    ['1/N, the program', perConcurrency, true, 16.5, null],
    ['1/√N, the program', perRoot, true, 33.0, null],
    ['1, the program', constantOne, true, 33.3, null],
  ]
  for (const [name, feedback, halfStep, deferred, concurrency] of table) {
    test(`feedback ${name}: ${deferred} % deferred`, () => {
      const results = Array.from({ length: 20 }, (_, i) => runLimitedServer({ feedback, halfStep, seed: i + 1 }))
      expect(Math.abs(100 * mean(results.map((result) => result.deferred)) - deferred)).toBeLessThanOrEqual(0.5)
      if (concurrency !== null) expect(Math.abs(mean(results.map((result) => result.concurrency)) - concurrency)).toBeLessThanOrEqual(0.15)
    })
  }
})

test('the model makes a million attempts per second and core', () => {
  run('backoff')
  const before = process.cpuUsage()
  let attempts = 0
  for (let seed = 1; seed <= 60; seed++) attempts += run('backoff', seed).attempts
  const { user, system } = process.cpuUsage(before)
  // Processor time, and half the figure: other processes share caches and cores.
  const perSecond = attempts / ((user + system) / 1_000_000)
  expect(perSecond).toBeGreaterThan(500_000)
})
