import { describe, expect, test } from 'vitest'
import { DestinationPolicies } from '../../../src/config/destination-policies.ts'
import { configFrom } from '../../../src/config/load.ts'
import { MINUTE } from '../../../src/system/clock.ts'
import type { Job } from '../../../src/queue/scheduler/turns/job-queue.ts'
import { Destination } from '../../../src/queue/scheduler/destination.ts'

const { config } = configFrom({ minimal_backoff_time: '5m' }, 'relay.example')

const policies = new DestinationPolicies(config)

const job: Job = {
  request: {
    message: { id: 1, createdAt: 0, arrivedAt: 0, sender: 'app@us.example', size: 100, contentId: 1, smtputf8: false },
    destination: 'far.example',
    recipients: [],
    fresh: true,
    forcedExpire: false,
    lease: { owner: 1, until: Infinity },
  },
  activatedAt: 0,
  band: 0,
  share: '',
}

const REFUSED = { feedback: 'negative' } as const

/** A destination whose window of 5 was narrowed to 4 by one failure, at minute 0. */
function narrowed(): Destination {
  const destination = new Destination('far.example', () => policies)
  const begunAs = destination.begin(job, 0)
  destination.learn(REFUSED, begunAs, 0)
  destination.end(job, 0)
  expect(destination.window).toBe(4)
  return destination
}

describe('the window is kept for minimal_backoff_time after the last delivery', () => {
  test('a delivery just before the end finds it unchanged', () => {
    const destination = narrowed()
    destination.begin(job, 5 * MINUTE - 1)
    expect(destination.window).toBe(4)
  })

  test('a delivery that starts later finds a new one, however long it waited in memory for its slot', () => {
    const destination = narrowed()
    destination.begin(job, 5 * MINUTE)
    expect(destination.window).toBe(5)
  })

  test('it is kept while another delivery is running, however long', () => {
    const destination = narrowed()
    destination.begin(job, MINUTE)
    destination.begin(job, 60 * MINUTE)
    expect(destination.window).toBe(4)
  })
})
