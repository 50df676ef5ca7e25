import { describe, expect, test } from 'vitest'
import { DestinationPolicies } from '../../../src/config/destination-policies.ts'
import { configFrom } from '../../../src/config/load.ts'
import type { Settings } from '../../../src/config/destination-settings.ts'
import type { DeliveryStatus } from '../../../src/mail/smtp-reply.ts'
import {
  freshHealth,
  learned,
  recalled,
  recordOf,
  reopened,
  stateOf,
  suspended,
  windowSize,
  withProbe,
  type DestinationHealth,
  type LearnFacts,
} from '../../../src/queue/scheduler/destination-health.ts'
import { MINUTE } from '../../../src/system/clock.ts'

const settingsWith = (values: Parameters<typeof configFrom>[0]): Settings =>
  new DestinationPolicies(configFrom(values, 'relay.example').config).for('far.example').settings

const settings = settingsWith({ minimal_backoff_time: '5m', maximal_backoff_time: '15m' })

const SITE: DeliveryStatus = { status: '4.4.1', reason: 'connect to mx.far.example[192.0.2.1]:25: Connection refused', stage: 'connect' }
const ANSWERED = { feedback: 'positive' } as const
const REFUSED = { feedback: 'negative', siteStatus: SITE } as const
const SILENT = { feedback: 'none' } as const
const ASKED_FOR_LESS = { feedback: 'positive', congestion: 'late' } as const

const facts = (differs: Partial<LearnFacts> = {}): LearnFacts => ({
  settings,
  now: 0,
  inFlight: 5,
  alone: false,
  begunAs: 1,
  latestBegun: 1,
  ...differs,
})

/** Health after these results, one after the other. */
const after = (results: readonly Parameters<typeof learned>[1][], differs: Partial<LearnFacts> = {}, from = freshHealth(settings)) =>
  results.reduce<DestinationHealth>((health, result) => learned(health, result, facts(differs)), from)

const DEAD = after(Array.from({ length: 5 }, () => REFUSED))

describe('a destination dies', () => {
  test('with the failure that completes a cohort, and is probed after minimal_backoff_time', () => {
    expect(after(Array.from({ length: 4 }, () => REFUSED)).access).toEqual({ kind: 'open' })
    expect(DEAD.access).toEqual({ kind: 'dead', until: 5 * MINUTE, interval: 5 * MINUTE, siteStatus: SITE, probing: false })
  })

  test('never while its only mail is the one that failed', () => {
    const health = after(
      Array.from({ length: 20 }, () => REFUSED),
      { alone: true, inFlight: 1 },
    )
    expect(health.access).toEqual({ kind: 'open' })
  })

  test('not by failures that report nothing about it, nor by late requests for less', () => {
    const results = [SILENT, ASKED_FOR_LESS].flatMap((result) => Array.from({ length: 20 }, () => result))
    expect(after(results).access).toEqual({ kind: 'open' })
  })
})

describe('a dead destination', () => {
  const probed = (health: DestinationHealth) => withProbe(health, true)

  test('doubles the wait with each failed probe, up to maximal_backoff_time', () => {
    const intervals: unknown[] = []
    let health = DEAD
    for (let n = 0; n < 3; n++) {
      health = after([REFUSED], { now: 1_000 }, probed(health))
      intervals.push(health.access)
    }
    const dead = (minutes: number) => ({ kind: 'dead', until: minutes * MINUTE + 1_000, interval: minutes * MINUTE, probing: false })
    expect(intervals).toMatchObject([dead(10), dead(15), dead(15)])
  })

  test('learns nothing from the failure of a delivery that began before', () => {
    expect(after([REFUSED], { now: MINUTE }, DEAD).access).toBe(DEAD.access)
  })

  test('repeats a probe that reported nothing, after the same wait', () => {
    expect(after([SILENT], { now: MINUTE }, probed(DEAD)).access).toMatchObject({
      until: 6 * MINUTE,
      interval: 5 * MINUTE,
      probing: false,
    })
  })

  test.each([
    ['an answer', ANSWERED],
    ['a late request for less', ASKED_FOR_LESS],
  ])('is open again after %s, with a window for the deliveries in flight', (_, result) => {
    const health = after([result], { inFlight: 3 }, DEAD)
    expect(health.access).toEqual({ kind: 'open' })
    expect(windowSize(health, settings)).toBe(2)
    expect(windowSize(after([result], { inFlight: 1 }, DEAD), settings)).toBe(5)
  })
})

describe('the state that operators see', () => {
  const state = (health: DestinationHealth, of = settings, delayed = false) => stateOf(health, of, delayed)

  test('of a fresh destination: open', () => {
    expect(state(freshHealth(settings))).toBe('open')
  })

  test('throttled once feedback has lowered the window, until it is as large as before', () => {
    const lowered = after([REFUSED])
    expect(windowSize(lowered, settings)).toBe(4)
    expect(state(lowered)).toBe('throttled')
    expect(state(after([ANSWERED, ANSWERED, ANSWERED, ANSWERED], {}, lowered))).toBe('open')
  })

  test('throttled below the largest window before, also above the initial one', () => {
    const wide = after(
      Array.from({ length: 60 }, () => ANSWERED),
      { inFlight: 20 },
    )
    const size = windowSize(wide, settings)
    expect(size).toBeGreaterThan(6)
    expect(state(wide)).toBe('open')
    const lowered = after([ASKED_FOR_LESS], { inFlight: 20 }, wide)
    expect(windowSize(lowered, settings)).toBe(size - 1)
    expect(state(lowered)).toBe('throttled')
  })

  test('throttled while a rate limit delays the next delivery', () => {
    expect(state(freshHealth(settings), settings, true)).toBe('throttled')
  })

  test('open with a window that the configuration limits', () => {
    for (const limited of [
      settingsWith({ default_destination_concurrency_limit: 2 }),
      settingsWith({ default_destination_rate_delay: '1s' }),
    ])
      expect(state(freshHealth(limited), limited)).toBe('open')
  })

  test('of a window by TCP: open when fresh, throttled after a cut', () => {
    const tahoe = settingsWith({ default_destination_concurrency_control: 'tahoe' })
    const fresh = freshHealth(tahoe)
    expect(state(fresh, tahoe)).toBe('open')
    expect(state(learned(fresh, REFUSED, facts({ settings: tahoe })), tahoe)).toBe('throttled')
  })

  test('dead and suspended come before everything else', () => {
    expect(state(DEAD, settings, true)).toBe('dead')
    expect(state(suspended(DEAD, { by: 'root', until: null, reason: null }))).toBe('suspended')
    expect(state(reopened(DEAD, settings))).toBe('open')
  })
})

test('learning changes no earlier value', () => {
  const fresh = Object.freeze(freshHealth(settings))
  for (const result of [ANSWERED, REFUSED, SILENT, ASKED_FOR_LESS]) learned(fresh, result, facts())
  expect(fresh).toEqual(freshHealth(settings))
})

describe('a record', () => {
  test('brings a dead destination back as it was, without its probe', () => {
    const record = recordOf('far.example', withProbe(DEAD, true))
    expect(recalled(freshHealth(settings), record, settings).access).toEqual(DEAD.access)
  })

  test('brings a suspended destination back', () => {
    const record = recordOf('far.example', suspended(DEAD, { by: 'root', until: null, reason: null }))
    expect(recalled(freshHealth(settings), record, settings).access).toEqual({
      kind: 'suspended',
      suspension: { by: 'root', until: null, reason: null },
    })
  })

  test('of an open destination holds nothing', () => {
    const record = recordOf('far.example', freshHealth(settings))
    expect(record).toEqual({ name: 'far.example', deadUntil: null, probeInterval: null, suspension: null, siteStatus: null })
    expect(recalled(DEAD, record, settings)).toBe(DEAD)
  })
})
