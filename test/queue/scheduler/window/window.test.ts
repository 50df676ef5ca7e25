import { describe, expect, test } from 'vitest'
import { succeeded, congested, failed, freshWindow, sizeOf, type Window } from '../../../../src/queue/scheduler/window/window.ts'
import type { WindowPolicy } from '../../../../src/queue/scheduler/window/window-policy.ts'

const constant = (rate: number) => ({ rate, perConcurrency: false })
const perConcurrency = (rate: number) => ({ rate, perConcurrency: true })
const facts = { inFlight: 5, begunAs: 1, latestBegun: 5 }
const policy = (differs: Partial<WindowPolicy> = {}): WindowPolicy => ({
  control: 'postfix',
  decrease: 0.5,
  initial: 5,
  limit: 20,
  positive: constant(1),
  negative: constant(1),
  failedCohortLimit: 1,
  ...differs,
})

/** The window after each failure of a destination that was fresh, until it is dead. */
function untilDead(rules: WindowPolicy): readonly (number | 'dead')[] {
  let window = freshWindow(rules)
  const sizes: (number | 'dead')[] = [sizeOf(window, rules)]
  for (;;) {
    const next = failed(window, rules, facts)
    if (next === 'dead') return [...sizes, 'dead']
    window = next
    sizes.push(sizeOf(window, rules))
  }
}

describe('consecutive failures lower the window until the destination is dead', () => {
  test.each<[string, Partial<WindowPolicy>, readonly (number | 'dead')[]]>([
    ['feedback 1', {}, [5, 3, 2, 'dead']],
    ['initial 1', { initial: 1 }, [1, 'dead']],
    ['limit 1', { limit: 1 }, [1, 'dead']],
    ['initial 2', { initial: 2 }, [2, 1, 'dead']],
    ['initial 20', { initial: 20 }, [20, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 'dead']],
    ['negative 1/concurrency', { negative: perConcurrency(1) }, [5, 4, 4, 4, 3, 'dead']],
    ['negative 0.5', { negative: constant(0.5) }, [5, 4, 3, 3, 'dead']],
    ['negative 0', { negative: constant(0) }, [5, 5, 5, 5, 5, 'dead']],
    ['cohort limit 3', { failedCohortLimit: 3 }, [5, 3, 2, 1, 1, 'dead']],
    ['cohort limit 10, limit 1', { failedCohortLimit: 10, limit: 1 }, [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 'dead']],
  ])('%s', (_name, differs, sizes) => {
    expect(untilDead(policy(differs))).toEqual(sizes)
  })

  test('cohort limit 0: never dead', () => {
    let window = freshWindow(policy({ failedCohortLimit: 0 }))
    for (let i = 0; i < 1000; i++) window = alive(failed(window, policy({ failedCohortLimit: 0 }), facts))
    expect(sizeOf(window, policy())).toBe(1)
  })
})

describe('successes raise the window', () => {
  test('by one each with feedback 1, from 5 to 20 after 15, and never above 20', () => {
    const sizes = Array.from({ length: 20 }, grow(policy()))
    expect(sizes.slice(0, 15)).toEqual([6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20])
    expect(new Set(sizes.slice(15))).toEqual(new Set([20]))
  })

  test('after 5 successes and then 6 more with 1/concurrency', () => {
    const sizes = Array.from({ length: 11 }, grow(policy({ positive: perConcurrency(1) })))
    expect(sizes).toEqual([5, 5, 5, 5, 6, 6, 6, 6, 6, 6, 7])
  })

  test('not while it is mostly unused', () => {
    const rules = policy()
    const wide = freshWindow(rules, 10)
    expect(sizeOf(succeeded(wide, rules, 1), rules)).toBe(10)
  })

  test('one failure, then one success: 5, 3, 4, and the cohort restarts', () => {
    const narrow = alive(failed(freshWindow(policy()), policy(), facts))
    const again = succeeded(narrow, policy(), 3)
    expect([sizeOf(narrow, policy()), sizeOf(again, policy()), again.cohorts]).toEqual([3, 4, 0])
  })
})

test('congestion lowers the window but does not make the destination dead', () => {
  const rules = policy({ negative: perConcurrency(1) })
  let window = freshWindow(rules)
  for (let i = 0; i < 100; i++) window = congested(window, rules, facts)
  expect([sizeOf(window, rules), window.cohorts]).toEqual([1, 0])
})

function grow(rules: WindowPolicy): () => number {
  let window = freshWindow(rules)
  return () => {
    window = succeeded(window, rules, sizeOf(window, rules))
    return sizeOf(window, rules)
  }
}

function alive(window: Window | 'dead'): Window {
  if (window === 'dead') throw new Error('the destination is dead')
  return window
}

describe('TCP congestion control', () => {
  const reno = policy({ control: 'reno', initial: 20, limit: 0 })
  const inFlight = (n: number, begunAs: number) => ({ inFlight: n, begunAs, latestBegun: begunAs + n })

  test('slow start: one more per success', () => {
    const sizes = Array.from({ length: 3 }, grow(reno))
    expect(sizes).toEqual([22, 23, 24])
  })

  test('Reno halves what is in flight and adds three; deliveries in flight at the cut do not count again', () => {
    const once = congested(freshWindow(reno, 50), reno, inFlight(50, 10))
    expect(once.by).toMatchObject({ ssthresh: 25, cwnd: 28 })
    expect(congested(once, reno, inFlight(49, 11)).by).toEqual(once.by)
    expect(congested(once, reno, inFlight(28, 61)).by).toMatchObject({ ssthresh: 14, cwnd: 17 })
  })

  test('the decrease factor is the part of the deliveries in flight to which a failure cuts it', () => {
    const stable = policy({ control: 'reno', initial: 20, limit: 0, decrease: 0.9 })
    expect(congested(freshWindow(stable, 50), stable, inFlight(50, 10)).by).toMatchObject({ ssthresh: 45, cwnd: 48 })
    const tahoe = policy({ control: 'tahoe', initial: 20, limit: 0, decrease: 0.9 })
    expect(congested(freshWindow(tahoe, 50), tahoe, inFlight(50, 10)).by).toMatchObject({ ssthresh: 45, cwnd: 1 })
  })

  test('above the threshold the window grows by one per window of successes', () => {
    const window = congested(freshWindow(reno, 50), reno, inFlight(50, 10))
    let grown = window
    for (let i = 0; i < 29; i++) grown = succeeded(grown, reno, 28)
    expect(sizeOf(grown, reno)).toBe(sizeOf(window, reno) + 1)
  })

  test('Tahoe restarts from one', () => {
    const tahoe = policy({ control: 'tahoe', initial: 20, limit: 0 })
    expect(congested(freshWindow(tahoe, 50), tahoe, inFlight(50, 10)).by).toMatchObject({ ssthresh: 25, cwnd: 1 })
  })

  test('the limit of the destination holds', () => {
    const limited = policy({ control: 'reno', initial: 20, limit: 22 })
    const sizes = Array.from({ length: 10 }, grow(limited))
    expect(Math.max(...sizes)).toBe(22)
  })
})
