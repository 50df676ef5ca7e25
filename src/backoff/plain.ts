/** Policies of mail queues: doubling, age, fixed, haraka, kumomta, and literal tables. */
import { type Duration, HOUR, MINUTE, SECOND } from '../system/clock.ts'
import { count, formula, time } from './policy.ts'

/** min(cap, base·2^times); the exponent is limited, so that the result is always a finite number or cap. */
export const doubled = (base: Duration, times: number, cap: Duration): Duration => Math.min(cap, base * 2 ** Math.min(times, 1000))

/**
 * doubling — the n-th failed attempt waits min(max, min·2^(n−1)).
 * Defaults: min 300 s, max 4000 s. Not random. Gives 300, 600, 1200, 2400, 4000, 4000 … s.
 * Source: the wording of Postfix's qmgr(8), "the interval is doubled after each attempt".
 */
export const doubling = formula({
  about: 'doubles with each failed attempt, up to a maximum',
  source: 'the wording of Postfix, qmgr(8)',
  parameters: { min: time(300 * SECOND, 'the first wait'), max: time(4000 * SECOND, 'the longest wait') },
  base: 'min',
  cap: 'max',
  wait: ({ min, max }, { step }) => doubled(min, step - 1, max),
})

/** Postfix's clamp: the minimum wins when it is above the maximum (qmgr_active.c). */
export const clampedAge = (age: Duration, min: Duration, max: Duration): Duration => Math.max(min, Math.min(age, max))

/**
 * age — waits as long as the mail is old, at least min, at most max; the age doubles with each attempt, so no count is kept.
 * Defaults: min 300 s, max 4000 s. Not random.
 * Source: Postfix, qmgr_active.c (there rounded up to the next queue scan).
 */
export const age = formula({
  about: 'waits as long as the mail is old',
  source: 'Postfix, qmgr_active.c',
  parameters: { min: time(300 * SECOND, 'the shortest wait'), max: time(4000 * SECOND, 'the longest wait') },
  base: 'min',
  cap: 'max',
  wait: ({ min, max }, facts) => clampedAge(facts.age, min, max),
})

/**
 * fixed — every wait is the same.
 * Default: 300 s. Not random.
 * Source: sendmail's queue runs (`-q15m`, `-q1h`).
 */
export const fixed = formula({
  about: 'always the same wait',
  source: 'sendmail, -q15m',
  parameters: { wait: time(300 * SECOND, 'the wait') },
  base: 'wait',
  wait: ({ wait }) => wait,
})

/**
 * haraka — the n-th failed attempt waits 2^(n+5) seconds.
 * Defaults: first wait 64 s, 13 attempts; the last wait is 36 hours. Not random.
 * Source: Haraka issue #1973.
 */
export const haraka = formula({
  about: 'doubles from 64 s without a cap, 13 attempts',
  source: 'Haraka #1973',
  parameters: { T: time(64 * SECOND, 'the first wait'), tries: count(13, 'attempts in all', 1) },
  base: 'T',
  wait: ({ T, tries }, { step }) => doubled(T, Math.min(step, tries) - 1, Infinity),
  ends: ({ tries }, { step }) => step >= tries,
})

/**
 * kumomta — the n-th failed attempt waits T·2^(n−1), spread by ± the smaller of T/40 and 30 s when spread is 1.
 * Defaults: T 20 min, no cap (M 0), spread 0. Uncapped, mail waits for up to a day and a half after an outage of two days.
 * Source: KumoMTA, config.rs and queue.rs.
 */
export const kumomta = formula({
  about: 'doubles from 20 min, without a cap by default',
  source: 'KumoMTA, queue.rs',
  parameters: {
    T: time(20 * MINUTE, 'the first wait'),
    M: time(0, 'the longest wait; 0 for none', 0),
    spread: count(0, '1 for the spread of ± min(T/40, 30 s)'),
  },
  base: 'T',
  cap: 'M',
  wait({ T, M, spread }, { step, draw }) {
    const width = spread > 0 ? Math.min(T / 40, 30 * SECOND) : 0
    return doubled(T, step - 1, M > 0 ? M : Infinity) + width * (2 * draw() - 1)
  },
})

/**
 * table — the n-th failed attempt waits the n-th time of a list; the last time repeats. Literal in a queue.
 * Source: the form in which ZoneMTA, Exchange and RFC 5321 section 4.5.4.1 give their schedules.
 */
export const tableWait = (waits: readonly Duration[], step: number): Duration => waits[Math.min(step, waits.length) - 1] ?? HOUR
