/** The policies without an author: doubling, age, fixed. Their waits are those of a mail queue. */
import { type Duration, HOUR, MINUTE, SECOND } from '../mail/clock.ts'
import { count, formula, time } from './policy.ts'

/** min·2^n, without the detour by a number too large to hold. */
export const doubled = (base: Duration, times: number, cap: Duration): Duration => Math.min(cap, base * 2 ** Math.min(times, 1000))

/**
 * doubling — the n-th failed attempt waits min(max, min·2^(n−1)).
 * Defaults: min 300 s, max 4000 s. No chance. Gives 300, 600, 1200, 2400, 4000, 4000 … s.
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

/** Postfix's clamp: the minimum wins when it lies above the maximum (qmgr_active.c). */
export const clampedAge = (age: Duration, min: Duration, max: Duration): Duration => Math.max(min, Math.min(age, max))

/**
 * age — wait as long as the mail is old, at least min, at most max: it doubles by itself, and nobody counts.
 * Defaults: min 300 s, max 4000 s. No chance.
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
 * Default: 300 s. No chance.
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
 * Defaults: first wait 64 s, 13 tries; the last wait is 36 hours. No chance.
 * Source: Haraka issue #1973.
 */
export const haraka = formula({
  about: 'doubles from 64 s without a cap, 13 tries',
  source: 'Haraka #1973',
  parameters: { T: time(64 * SECOND, 'the first wait'), tries: count(13, 'attempts in all', 1) },
  base: 'T',
  wait: ({ T, tries }, { step }) => doubled(T, Math.min(step, tries) - 1, Infinity),
  ends: ({ tries }, { step }) => step >= tries,
})

/**
 * kumomta — the n-th failed attempt waits T·2^(n−1), spread by ± a fortieth of T or 30 s, whichever is less, when spread is 1.
 * Defaults: T 20 min, no cap (M 0), spread 0. Uncapped, mail waits for a day and a half after an outage of two days.
 * Source: KumoMTA, config.rs and queue.rs.
 */
export const kumomta = formula({
  about: 'doubles from 20 min, uncapped unless told',
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
 * table — the n-th failed attempt waits the n-th time of a list, and the last one ever after. Literal in a queue.
 * Source: as ZoneMTA, Exchange and RFC 5321 section 4.5.4.1 state their schedules.
 */
export const tableWait = (waits: readonly Duration[], step: number): Duration => waits[Math.min(step, waits.length) - 1] ?? HOUR
