import { describe, expect, test } from 'vitest'
import { settingsFor } from '../../src/config/destination-settings.ts'
import { loadConfig } from '../../src/config/load.ts'
import { MINUTE } from '../../src/mail/clock.ts'
import { Destination } from '../../src/queue/destination.ts'

const { config } = loadConfig({ calledAs: 'deferd', uid: 1000, env: {}, overrides: ['minimal_backoff_time=5m'] })

const REFUSED = { feedback: 'negative' } as const

/** A destination whose window of 5 was narrowed to 4 by one failure, at minute 0. */
function narrowed(): Destination {
  const destination = new Destination('far.example', settingsFor(config, 'far.example', 'far.example').values)
  const begunAs = destination.begin(0)
  destination.learn(REFUSED, { now: 0, alone: false, begunAs })
  destination.end(0)
  expect(destination.window).toBe(4)
  return destination
}

describe('a window is kept for minimal_backoff_time after the last delivery', () => {
  test('a delivery just before that finds it as it was', () => {
    const destination = narrowed()
    destination.begin(5 * MINUTE - 1)
    expect(destination.window).toBe(4)
  })

  test('a delivery that begins then finds a fresh one, however long it waited in memory for its slot', () => {
    const destination = narrowed()
    destination.begin(5 * MINUTE)
    expect(destination.window).toBe(5)
  })

  test('while another delivery is running it is kept, however long that takes', () => {
    const destination = narrowed()
    destination.begin(MINUTE)
    destination.begin(60 * MINUTE)
    expect(destination.window).toBe(4)
  })
})
