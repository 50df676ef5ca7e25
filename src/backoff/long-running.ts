/** Policies of job queues and of other mail servers: powers of the attempt number or of the age. */
import { type Duration, SECOND } from '../system/clock.ts'
import { count, formula, time } from './policy.ts'

/**
 * sidekiq — n⁴ + 15 + a random whole number below 10·(n+1) seconds; n is 0 for the first wait.
 * Default: 25 retries, about 20 days.
 * Source: Sidekiq, job_retry.rb.
 */
export const sidekiq = formula({
  about: 'n⁴ + 15 s and a small random part, 25 retries',
  source: 'Sidekiq, job_retry.rb',
  parameters: { retries: count(25, 'attempts after the first') },
  wait: ({ retries }, { step, draw }) => quartic(Math.min(step, Math.max(retries, 1)), (n) => Math.floor(draw() * 10 * (n + 1))),
  ends: ({ retries }, { step }) => step > retries,
})

/**
 * faktory — n⁴ + 15 + (n+1) times a random whole number below 30 seconds; n is 0 for the first wait.
 * Default: 25 retries.
 * Source: Faktory, manager/retry.go.
 */
export const faktory = formula({
  about: 'n⁴ + 15 s and a larger random part, 25 retries',
  source: 'Faktory, manager/retry.go',
  parameters: { retries: count(25, 'attempts after the first') },
  wait: ({ retries }, { step, draw }) => quartic(Math.min(step, Math.max(retries, 1)), (n) => Math.floor(draw() * 30) * (n + 1)),
  ends: ({ retries }, { step }) => step > retries,
})

function quartic(step: number, random: (n: number) => number): Duration {
  const n = step - 1
  return (n ** 4 + 15 + random(n)) * SECOND
}

/**
 * qmail — the next attempt is at (⌊√age⌋ + skip)² seconds after arrival.
 * Defaults: skip 20 (remote; 10 for local mail). Not random; computed from arrival, so delays do not add up.
 * Source: qmail-send.c.
 */
export const qmail = formula({
  about: 'at 400, 1600, 3600, 6400 … s: quadratic in the attempt number',
  source: 'qmail-send.c',
  parameters: { skip: count(20, 'growth of √age per attempt, in √s', 1) },
  wait: ({ skip }, { age }) => (Math.floor(Math.sqrt(age / SECOND)) + skip) ** 2 * SECOND - age,
})

/**
 * opensmtpd — the next attempt is at T·n² after arrival. n is the smallest number that is not below the number of failures and
 * gives a time in the future.
 * Default: T 400 s (10 s for local mail). Not random.
 * Source: OpenSMTPD, scheduler_ramqueue.c.
 */
export const opensmtpd = formula({
  about: 'at T·n² after arrival',
  source: 'OpenSMTPD, scheduler_ramqueue.c',
  parameters: { T: time(400 * SECOND, 'the first wait') },
  base: 'T',
  wait({ T }, { step, age }) {
    const ahead = Math.max(step, Math.floor(Math.sqrt(age / T)) + 1)
    return T * ahead ** 2 - age
  },
})
