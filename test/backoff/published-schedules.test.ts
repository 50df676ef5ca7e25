/** The schedules of known mail servers and job queues, and the tables published with the policies. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { attempts } from '../../src/backoff/attempts.ts'
import { compileRetryPolicy } from '../../src/backoff/retry-policy.ts'
import { googleInterval } from '../../src/backoff/cloud.ts'
import { compileAlone, exactWait } from '../../src/backoff/retry-policy.ts'
import { days, seconds } from '../../src/system/clock.ts'
import { plannedAttempts } from '../../src/planner/schedule.ts'

const golden = JSON.parse(readFileSync(new URL('golden/retry-schedules.json', import.meta.url), 'utf8')) as Record<string, number[]>

/** The policy of each row of the golden file; random parts have their mean. */
const WRITTEN: Record<string, string> = {
  'OpenSMTPD 400*n^2, 4d': 'opensmtpd',
  'Haraka 2^(n+5), 13 tries': 'haraka',
  'Exim default': 'exim',
  'qmail remote (skip 20)': 'qmail',
  'qmail local (skip 10)': 'qmail(skip=10)',
  'KumoMTA 20m x2, 7d': 'kumomta',
  'KumoMTA cap 4h': 'kumomta(M=4h)',
  'Sendmail -q1h 5d': 'sendmail',
  'Sendmail -q15m 5d': 'fixed(15m)',
  'Exchange 4x1m,6x5m,10m 2d': 'exchange',
  ZoneMTA: 'zonemta',
  'Thain T=5m F=2 M=4h R~1.5': 'thain(T=5m,F=2,M=4h)',
  Sidekiq: 'sidekiq',
  Faktory: 'faktory',
  'RFC5321 hint 30m,30m,2.5h': 'rfc5321',
}

function* withMeanChance(text: string, until: number): Generator<number> {
  const policy = compileAlone(text)
  let previousWait: number | null = null
  for (let step = 1, age = 0; age <= until; step++) {
    yield age / 1000
    previousWait = exactWait(policy, { step, age, previousWait, draw: () => 0.5 })
    age += previousWait
  }
}

describe('the first twelve attempts match', () => {
  for (const [name, expected] of Object.entries(golden)) {
    if (name === 'Postfix 300/4000s,5d') continue
    test(name, () => {
      const text = WRITTEN[name]
      expect(text).toBeDefined()
      expect([...withMeanChance(text ?? '', days(7))].slice(0, 12)).toEqual(expected)
    })
  }

  test('Postfix, on its grid of 300 s', () => {
    const policy = compileAlone('age')
    const planned = plannedAttempts({ policy, lifetime: days(5), grid: seconds(300) }).map((at) => at / 1000)
    expect(planned.slice(0, 12)).toEqual(golden['Postfix 300/4000s,5d'])
    expect(planned).toHaveLength(108)
    expect(planned.at(-1)).toBe(433_200)
  })
})

describe('published tables', () => {
  test('Google’s ten rows: the tenth attempt is the last', () => {
    const rows = [
      [0.5, 0.25, 0.75],
      [0.75, 0.38, 1.12],
      [1.12, 0.56, 1.69],
      [1.69, 0.84, 2.53],
      [2.53, 1.27, 3.8],
      [3.8, 1.9, 5.7],
      [5.7, 2.85, 8.54],
      [8.54, 4.27, 12.81],
      [12.81, 6.41, 19.22],
      [19.22, Number.NaN, Number.NaN],
    ] as const
    const policy = compileAlone('google-http(stop_interval=15s)')
    for (const [i, [interval, least, most]] of rows.entries()) {
      const step = i + 1
      const exact = googleInterval({ initial: 500, factor: 1.5, cap: 60_000 }, step) / 1000
      expect(Math.abs(exact - interval)).toBeLessThanOrEqual(0.005_01)
      if (step === 10) continue
      const waitFor = (draw: number) => exactWait(policy, { step, age: 0, previousWait: null, draw: () => draw }) / 1000
      expect(Math.abs(waitFor(0) - least)).toBeLessThanOrEqual(0.005_01)
      expect(Math.abs(waitFor(1) - most)).toBeLessThanOrEqual(0.005_01)
    }
    expect([...attempts('google-http(stop_interval=15s)', { until: '1h', seed: 7 })]).toHaveLength(10)
  })

  test('Google by default stops when 15 minutes have elapsed', () => {
    const times = [...attempts('google-http(spread=0)', { until: '1h' })]
    expect(times.at(-1)).toBeGreaterThan(900_000)
    expect(times.at(-2)).toBeLessThanOrEqual(900_000)
  })

  test('SimpleDB’s five: up to 400, 1600, 6400, 25600, 102400 ms', () => {
    const policy = compileAlone('aws-simpledb')
    const most = [1, 2, 3, 4, 5].map((step) => exactWait(policy, { step, age: 0, previousWait: null, draw: () => 1 }))
    expect(most).toEqual([400, 1600, 6400, 25_600, 102_400])
    expect([...attempts('aws-simpledb', { until: '1h' })]).toHaveLength(6)
  })

  test('Google Drive’s five attempts wait 1, 2, 4, 8 s and up to a second more', () => {
    const times = [...attempts('google-drive', { until: '1h', seed: 3 })]
    expect(times).toHaveLength(5)
    const waits = times.slice(1).map((at, i) => at - (times[i] ?? 0))
    for (const [i, wait] of waits.entries()) {
      expect(wait).toBeGreaterThanOrEqual(1000 * 2 ** i)
      expect(wait).toBeLessThanOrEqual(1000 * 2 ** i + 1000)
    }
  })

  test('TCP’s retransmission table, 511 s in total', () => {
    const times = [...attempts('tcp', { until: '1d' })].map((at) => at / 1000)
    expect(times.slice(1).map((at, i) => at - (times[i] ?? 0))).toEqual([1, 2, 4, 8, 16, 32, 64, 64, 64, 64, 64, 64, 64])
    expect(times.at(-1)).toBe(511)
  })

  test('Ethernet draws from 0 … 1023 slots from the tenth collision on', () => {
    const policy = compileAlone('ethernet(slot=1s)')
    const most = [1, 2, 9, 10, 11, 15].map((step) => exactWait(policy, { step, age: 0, previousWait: null, draw: () => 0.999_999 }) / 1000)
    expect(most).toEqual([1, 3, 511, 1023, 1023, 1023])
    expect([...attempts('ethernet', { until: '1h' })]).toHaveLength(16)
  })

  test('doubling with the queue’s defaults: 300, 600, 1200, 2400, 4000, 4000 s', () => {
    const policy = compileRetryPolicy({ retry_backoff: 'doubling', minimal: seconds(300), maximal: seconds(4000) })
    const times = [...attempts(policy, { until: '8 tries' })].map((at) => at / 1000)
    expect(times.slice(1).map((at, i) => at - (times[i] ?? 0))).toEqual([300, 600, 1200, 2400, 4000, 4000, 4000])
  })
})

describe('the contention window of IEEE 802.11', () => {
  /** The largest wait after each failure, in slots. */
  const windows = (text: string, count: number): readonly number[] =>
    Array.from({ length: count }, (_, n) => {
      const wait = exactWait(compileAlone(text), { step: n + 1, age: 0, previousWait: null, draw: () => 1 - Number.EPSILON })
      return Math.round(wait / 0.009)
    })

  test('doubles from 15 to 1023 slots of 9 µs, and ends after 7 attempts', () => {
    expect(windows('wifi(tries=20)', 8)).toEqual([31, 63, 127, 255, 511, 1_023, 1_023, 1_023])
    expect([...attempts('wifi', { until: '1h' })]).toHaveLength(7)
  })

  test('doubles from 31 with direct sequence', () => {
    expect(windows('wifi(CWmin=31,tries=20)', 7)).toEqual([63, 127, 255, 511, 1_023, 1_023, 1_023])
  })
})
