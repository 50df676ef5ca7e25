/** Policies of Google's and Amazon's clients. */
import { MINUTE, SECOND } from '../system/clock.ts'
import { count, formula, number, type Parameters, time } from './policy.ts'
import { doubled } from './plain.ts'

/** Google's interval in milliseconds before the random spread: initial·factor^(n−1), at most cap. */
export const googleInterval = ({ initial, factor, cap }: Parameters<'initial' | 'factor' | 'cap'>, step: number): number =>
  Math.min(initial * factor ** (step - 1), cap)

/**
 * google-http — interval = initial·factor^(n−1), at most cap, then spread by ± spread: U[1−s, 1+s]·interval.
 * Defaults: 500 ms, ×1.5, cap 1 min (applied before the spread), ±50 %. Stops when 15 min have elapsed; its documentation's table
 * stops when the interval passes 15 s instead (`stop_interval=15s`).
 * Source: google-http-java-client, ExponentialBackOff.
 */
export const googleHttp = formula({
  about: '×1.5 from 0.5 s, ± 50 %, at most a minute',
  source: 'google-http-java-client, ExponentialBackOff',
  parameters: {
    initial: time(500, 'the first interval'),
    factor: number(1.5, 'the factor', 1),
    spread: number(0.5, 'the spread to both sides, as a fraction'),
    cap: time(MINUTE, 'the longest interval, before the spread'),
    stop_elapsed: time(15 * MINUTE, 'age after which no attempt is made; 0 for never', 0),
    stop_interval: time(0, 'interval above which no attempt is made; 0 for never', 0),
  },
  base: 'initial',
  cap: 'cap',
  endsByTime: ['stop_elapsed'],
  wait: (parameters, { step, draw }) => googleInterval(parameters, step) * (1 - parameters.spread + 2 * parameters.spread * draw()),
  ends: (parameters, { step, age }) =>
    (parameters.stop_elapsed > 0 && age > parameters.stop_elapsed) ||
    (parameters.stop_interval > 0 && googleInterval(parameters, step) > parameters.stop_interval),
})

/**
 * google-drive — 2^n seconds plus a random 0 … 1000 ms, at most cap; n is 0 for the first wait.
 * Defaults: 1 s, cap 64 s, five attempts. The random part is too small to spread clients once the waits are long.
 * Source: Google Drive API, "Resolve errors".
 */
export const googleDrive = formula({
  about: 'doubles from 1 s, plus up to a second, five attempts',
  source: 'Google Drive API, Resolve errors',
  parameters: {
    base: time(SECOND, 'the first wait'),
    cap: time(64 * SECOND, 'the longest wait'),
    tries: count(5, 'attempts in all', 1),
  },
  base: 'base',
  cap: 'cap',
  wait: ({ base, cap, tries }, { step, draw }) => Math.min(cap, doubled(base, Math.min(step, tries) - 1, cap) + Math.floor(draw() * 1001)),
  ends: ({ tries }, { step }) => step >= tries,
})

/**
 * aws-simpledb — uniform between 0 and base·4^n; n is 1 for the first wait.
 * Defaults: 100 ms, five retries: up to 400, 1600, 6400, 25600, 102400 ms.
 * Source: Amazon SimpleDB Developer Guide, sample code.
 */
export const awsSimpledb = formula({
  about: 'uniform up to 100 ms · 4^n, five retries',
  source: 'Amazon SimpleDB Developer Guide',
  parameters: { base: time(100, 'a quarter of the longest first wait'), retries: count(5, 'attempts after the first') },
  base: 'base',
  wait: ({ base, retries }, { step, draw }) => draw() * base * 4 ** Math.min(step, Math.max(retries, 1)),
  ends: ({ retries }, { step }) => step > retries,
})

/** Parameters of the three policies of the AWS blog: E = min(cap, base·2^n), n = 0 for the first wait. */
const awsParameters = { base: time(5, 'the upper bound of the first wait'), cap: time(2 * SECOND, 'the longest wait') }

/**
 * aws-full-jitter — U(0, E), E = min(cap, base·2^n), n = 0 for the first wait.
 * Defaults: base 5 ms, cap 2 s. A wait may be 0; a queue raises it to minimal_backoff_time.
 * Source: M. Brooker, AWS Architecture Blog, 2015, and its simulator.
 */
export const awsFullJitter = formula({
  about: 'uniform up to base·2^n',
  source: 'AWS Architecture Blog, 2015',
  parameters: awsParameters,
  base: 'base',
  cap: 'cap',
  wait: ({ base, cap }, { step, draw }) => draw() * doubled(base, step - 1, cap),
})

/**
 * aws-equal-jitter — E/2 + U(0, E/2), E = min(cap, base·2^n), n = 0 for the first wait.
 * Defaults: base 5 ms, cap 2 s.
 * Source: as aws-full-jitter.
 */
export const awsEqualJitter = formula({
  about: 'half of base·2^n, plus uniform up to the other half',
  source: 'AWS Architecture Blog, 2015',
  parameters: awsParameters,
  base: 'base',
  cap: 'cap',
  wait: ({ base, cap }, { step, draw }) => (doubled(base, step - 1, cap) / 2) * (1 + draw()),
})

/**
 * aws-decorrelated — min(cap, U(base, 3·previous wait)); for the first wait, base takes the place of the previous wait.
 * Defaults: base 5 ms, cap 2 s.
 * Source: as aws-full-jitter.
 */
export const awsDecorrelated = formula({
  about: 'uniform from base to three times the previous wait',
  source: 'AWS Architecture Blog, 2015',
  parameters: awsParameters,
  base: 'base',
  cap: 'cap',
  usesPreviousWait: true,
  wait: ({ base, cap }, { previousWait, draw }) => Math.min(cap, base + draw() * (Math.max(base, 3 * (previousWait ?? base)) - base)),
})
