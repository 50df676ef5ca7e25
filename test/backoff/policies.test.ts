/** Properties of every policy: bounds, growth, seeds, the text form, and the refusal of unusable parameters. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { attempts, retryUntil } from '../../src/backoff/attempts.ts'
import { FORMULAS } from '../../src/backoff/policies.ts'
import { PolicyError } from '../../src/backoff/policy.ts'
import { formatPolicy, parsePolicy, POLICY_NAMES } from '../../src/backoff/policy-text.ts'
import { compileAlone, compileRetryPolicy, jittered, nextWait } from '../../src/backoff/retry-policy.ts'
import { hours, minutes, seconds } from '../../src/system/clock.ts'
import { mulberry32 } from '../../src/system/random.ts'

const queue = { minimal: seconds(300), maximal: seconds(4000) }
const LITERAL = new Set(['table', 'exim', 'tcp'])
const names = POLICY_NAMES.filter((name) => name !== 'table')
const clamped = Object.keys(FORMULAS).filter((name) => !LITERAL.has(name))

const waits = (text: string, seed: number, tries: number, bounds = queue): number[] => {
  const times = [...attempts(compileRetryPolicy({ retry_backoff: text, ...bounds }), { until: `${tries} tries`, seed })]
  return times.slice(1).map((at, i) => at - (times[i] ?? 0))
}

describe('in a queue', () => {
  test('every formula keeps between minimal_backoff_time and maximal_backoff_time', () => {
    const bounds = fc
      .tuple(fc.integer({ min: 1, max: 86_400_000 }), fc.integer({ min: 0, max: 86_400_000 }))
      .map(([minimal, more]) => ({ minimal, maximal: minimal + more }))
    fc.assert(
      fc.property(fc.constantFrom(...clamped), bounds, fc.nat(), (name, between, seed) => {
        for (const wait of waits(name, seed, 40, between)) {
          expect(Number.isSafeInteger(wait)).toBe(true)
          expect(wait).toBeGreaterThanOrEqual(between.minimal)
          expect(wait).toBeLessThanOrEqual(between.maximal)
        }
      }),
    )
  })

  test('waits without jitter never shrink', () => {
    for (const name of ['doubling', 'age', 'fixed', 'quic', 'opensmtpd', 'haraka', 'kumomta', 'tcp', 'zonemta', 'rfc5321']) {
      const row = waits(name, 1, 60)
      expect(row, name).toEqual(row.toSorted((a, b) => a - b))
    }
  })

  test('the base is the minimum and the cap the maximum', () => {
    for (const name of ['doubling', 'fixed', 'quic', 'opensmtpd', 'haraka', 'kumomta']) expect(waits(name, 1, 2)[0], name).toBe(300_000)
    expect(waits('thain', 5, 2)[0]).toBeGreaterThan(300_000)
    for (const name of ['doubling', 'age', 'thain', 'google-drive', 'opensmtpd', 'sidekiq', 'qmail'])
      expect(waits(name, 1, 200).at(-1), name).toBe(4_000_000)
  })

  test('table, exim and tcp use their waits as written', () => {
    expect(waits('table(5s,10m,3h)', 1, 6)).toEqual([5000, 600_000, 10_800_000, 10_800_000, 10_800_000])
    expect(waits('tcp', 1, 16).slice(0, 3)).toEqual([1000, 2000, 4000])
    expect(waits('exim(F,1h,1m)', 1, 3)).toEqual([60_000, 60_000])
  })

  test('a policy that ends repeats its last wait', () => {
    expect(waits('tcp', 1, 30).slice(-10)).toEqual(Array(10).fill(64_000))
    expect(waits('google-drive(base=301s,tries=2)', 1, 9).every((wait) => wait < 604_000)).toBe(true)
    expect(waits('exim(F,2h,15m; G,16h,1h,1.5)', 1, 40).slice(-5)).toEqual(
      Array(5).fill(waits('exim(F,2h,15m; G,16h,1h,1.5)', 1, 20).at(-1)),
    )
    const stopped = waits('google-http(spread=0,stop_elapsed=15m)', 1, 9)
    expect(stopped.slice(0, 4)).toEqual([300_000, 450_000, 675_000, 675_000])
  })

  test('google-http without a limit grows to the cap until the lifetime ends', () => {
    expect(waits('google-http(spread=0)', 1, 12).at(-1)).toBe(4_000_000)
  })

  test('age: the message’s age at the end of the attempt, clamped as in Postfix', () => {
    const policy = compileRetryPolicy({ retry_backoff: 'age', ...queue })
    const wait = (age: number) => nextWait(policy, { step: 1, age, previousWait: null, draw: () => 0 })
    expect([0, 299_999, 300_001, 400_000, 86_400_000].map(wait)).toEqual([300_000, 300_000, 300_001, 400_000, 4_000_000])
  })

  test('doubling does not overflow at any number of steps', () => {
    const policy = compileRetryPolicy({ retry_backoff: 'doubling', ...queue })
    expect(nextWait(policy, { step: 1_000_000, age: 0, previousWait: null, draw: () => 0 })).toBe(4_000_000)
  })

  test('retry_jitter never makes a wait shorter', () => {
    expect(jittered(300_000, 0, 0.9)).toBe(300_000)
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 1e9 }),
        fc.double({ min: 0, max: 3, noNaN: true }),
        fc.double({ min: 0, max: 0.999, noNaN: true }),
        (w, j, u) => {
          expect(jittered(w, j, u)).toBeGreaterThanOrEqual(w)
          expect(jittered(w, j, u)).toBeLessThanOrEqual(w * (1 + j) + 1)
        },
      ),
    )
  })
})

const exponential = (step: number) => Math.min(2000, 5 * 2 ** (step - 1))

describe('alone', () => {
  test('the same seed gives the same schedule, another seed another one', () => {
    for (const name of names) {
      const schedule = (seed: number) => [...attempts(name, { until: '2d or 200 tries', seed })]
      expect(schedule(11), name).toEqual(schedule(11))
    }
    const random = [
      'ethernet',
      'thain',
      'google-http',
      'aws-simpledb',
      'aws-full-jitter',
      'aws-equal-jitter',
      'aws-decorrelated',
      'sidekiq',
    ]
    for (const name of random)
      expect([...attempts(name, { until: '9 tries', seed: 1 })], name).not.toEqual([...attempts(name, { until: '9 tries', seed: 2 })])
  })

  test('the jitter variants of the AWS blog stay in their ranges', () => {
    const draw = mulberry32(4)
    let previous = 5
    for (let step = 1; step < 40; step++) {
      const facts = { step, age: 0, previousWait: step === 1 ? null : previous, draw }
      const wait = (name: string) => nextWait(compileAlone(name), facts)
      expect(wait('aws-full-jitter')).toBeLessThanOrEqual(exponential(step))
      expect(wait('aws-equal-jitter')).toBeGreaterThanOrEqual(Math.floor(exponential(step) / 2))
      const decorrelated = wait('aws-decorrelated')
      expect(decorrelated).toBeGreaterThanOrEqual(5)
      expect(decorrelated).toBeLessThanOrEqual(Math.min(2000, 3 * previous))
      previous = decorrelated
    }
  })

  test('limits by time, by count or by both', () => {
    expect(retryUntil('1h')).toEqual({ within: hours(1), tries: Infinity })
    expect(retryUntil('5 tries')).toEqual({ within: Infinity, tries: 5 })
    expect(retryUntil('90m or 3 times')).toEqual({ within: minutes(90), tries: 3 })
    expect([...attempts('fixed(10m)', { until: '1h' })]).toHaveLength(7)
    expect([...attempts('fixed(10m)', { until: '1h or 3 tries' })]).toEqual([0, 600_000, 1_200_000])
    expect(() => retryUntil('soon')).toThrow(PolicyError)
  })
})

describe('policy text', () => {
  test('round-trips', () => {
    const texts = [
      'fixed',
      'fixed(wait=5m)',
      'thain(T=5m,F=2,M=4h)',
      'table(5m,10m,1h)',
      'exim(F,2h,15m; G,16h,1h,1.5; F,4d,6h)',
      'google-http(spread=0.25)',
      'ethernet(slot=51.2us)',
    ]
    for (const text of texts) expect(formatPolicy(parsePolicy(text))).toBe(text)
    expect(formatPolicy(parsePolicy('Thain( 300s, 2, 4h )'))).toBe('thain(T=5m,F=2,M=4h)')
    expect(formatPolicy(parsePolicy('exim( H,1h30m,5m,2 )'))).toBe('exim(H,90m,5m,2)')
  })

  const refused: readonly (readonly [string, RegExp])[] = [
    ['', /is not a policy/],
    ['doubling(', /is not a policy/],
    ['dubbling', /unknown policy "dubbling"; the policies are doubling, age/],
    ['table', /table is empty/],
    ['table()', /table is empty/],
    ['table(5m,0s)', /retry without end/],
    ['table(5m,soon)', /"soon", which is not a time/],
    ['table(9999999999d)', /overflows/],
    ['fixed(0s)', /at least/],
    ['fixed(5m,6m)', /no parameter for "6m"/],
    ['fixed(pause=5m)', /no parameter "pause"; it has wait/],
    ['fixed(wait=5m,wait=6m)', /twice/],
    ['thain(F=0.5)', /at least 1/],
    ['thain(F=2,F=3)', /twice/],
    ['thain(F=1e300)', /not a number/],
    ['thain(F=9999999999)', /overflows/],
    ['thain(T=5h,M=4h)', /first wait \(T = 5h\) is above the longest \(M = 4h\)/],
    ['sidekiq(retries=2.5)', /not a whole number/],
    ['exim()', /at least one rule/],
    ['exim(X,1h,5m)', /begin with F, G or H/],
    ['exim(F,1h)', /must read F,until,wait/],
    ['exim(G,1h,5m)', /must read G/],
    ['exim(F,1h,0s)', /retry without end/],
    ['exim(F,2h,15m; F,1h,5m)', /never applies/],
    ['zonemta(5m)', /takes no parameters/],
  ]
  for (const [text, reason] of refused) {
    test(`"${text}" is refused with the reason`, () => {
      expect(() => compileAlone(text)).toThrow(PolicyError)
      expect(() => compileAlone(text)).toThrow(reason)
    })
  }

  test('a minimum above the maximum, or of nothing, is refused', () => {
    expect(() => compileRetryPolicy({ retry_backoff: 'doubling', minimal: 2000, maximal: 1000 })).toThrow(
      'minimal_backoff_time (2s) is above maximal_backoff_time (1s)',
    )
    expect(() => compileRetryPolicy({ retry_backoff: 'doubling', minimal: 0, maximal: 1000 })).toThrow(/without end/)
  })

  test('an uncapped policy without a limit in time overflows, and says so', () => {
    expect(() => [...attempts('kumomta', { until: '1000 tries' })]).toThrow(/overflows after \d+ attempts/)
  })
})
