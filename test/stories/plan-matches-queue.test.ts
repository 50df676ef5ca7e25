/** The plan matches the queue: for a message alone at its destination the queue makes exactly the planned attempts. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { compileRetryPolicy } from '../../src/backoff/retry-policy.ts'
import { SECOND } from '../../src/system/clock.ts'
import { seededRandom } from '../../src/system/random.ts'
import { plannedAttempts } from '../../src/planner/schedule.ts'
import { type Behaviour } from '../support/modelled-remote.ts'
import { QueueWorld } from '../support/queue-world.ts'

interface Case {
  readonly retry_backoff: string
  /** Seconds, all of them. */
  readonly minimal: number
  readonly maximal: number
  readonly lifetime: number
  readonly outage: number
  readonly jitter: number
  readonly attempts: number
  readonly refusal: Behaviour
  readonly seed: number
}

const POLICIES = [
  'doubling',
  'age',
  'fixed',
  'ethernet',
  'thain',
  'thain(F=3)',
  'google-http',
  'google-http(stop_elapsed=1h)',
  'google-drive',
  'aws-simpledb',
  'aws-full-jitter',
  'aws-equal-jitter',
  'aws-decorrelated',
  'sidekiq',
  'faktory',
  'tcp',
  'quic',
  'qmail',
  'opensmtpd',
  'haraka',
  'kumomta(spread=1)',
  'zonemta',
  'exchange',
  'table(90s,7m,11m,1h)',
  'exim',
  'exim(F,1h,10m; H,16h,30m,2; G,4d,2h,1.5)',
]

const REFUSALS: readonly Behaviour[] = [
  { kind: 'refuses-connections' },
  { kind: 'replies', reply: '451 4.7.1 Greylisted' },
  { kind: 'replies', reply: '452 4.2.2 Mailbox full' },
]

/** Times between a minute and some days, as evenly spread over their orders of magnitude as those of operators. */
const time = (least: number, most: number): fc.Arbitrary<number> =>
  fc.double({ min: Math.log(least), max: Math.log(most), noNaN: true }).map((power) => Math.round(Math.exp(power)))

const cases: fc.Arbitrary<Case> = fc
  .record({
    retry_backoff: fc.constantFrom(...POLICIES),
    minimal: time(60, 7200),
    maximal: fc.constant(0),
    growth: time(1, 30),
    lifetime: time(60, 5 * 86_400),
    outage: time(30, 6 * 86_400),
    jitter: fc.constantFrom(0, 0, 0.1, 0.5),
    attempts: fc.constantFrom(0, 0, 0, 1, 3, 8),
    refusal: fc.constantFrom(...REFUSALS),
    seed: fc.nat(1_000_000),
  })
  .map(({ growth, ...one }) => ({ ...one, maximal: one.minimal * growth }))

async function queueMakes({ retry_backoff, minimal, maximal, lifetime, outage, jitter, attempts, refusal, seed }: Case) {
  const far = ({ destination, at }: { destination: string; at: number }): Behaviour =>
    destination === 'far.example' && at < outage * SECOND ? refusal : { kind: 'accepts' }
  const times = { minimal_backoff_time: `${minimal}s`, maximal_backoff_time: `${maximal}s`, maximal_queue_lifetime: `${lifetime}s` }
  const world = await QueueWorld.create({
    seed,
    remote: far,
    config: { retry_backoff, retry_jitter: jitter, maximal_delivery_attempts: attempts, ...times },
  })
  await world.accept(['ann@far.example'])
  await world.advance((lifetime + 60) * SECOND)
  return world.attempts('far.example')
}

function plannerSays({ retry_backoff, minimal, maximal, lifetime, outage, jitter, attempts, seed }: Case, message: number) {
  const random = seededRandom(seed)
  const planned = plannedAttempts({
    policy: compileRetryPolicy({ retry_backoff, minimal: minimal * SECOND, maximal: maximal * SECOND }),
    lifetime: lifetime * SECOND,
    attempts,
    jitter,
    draw: (what, step) => random.draw(`${what} ${message} far.example ${step}`),
  })
  const delivered = planned.findIndex((at) => at >= outage * SECOND)
  return delivered < 0 ? planned : planned.slice(0, delivered + 1)
}

test('over a thousand random policies and outages no attempt differs', async () => {
  let attempts = 0
  let delivered = 0
  let returned = 0
  await fc.assert(
    fc.asyncProperty(cases, async (one) => {
      const made = await queueMakes(one)
      expect(made.map(({ at }) => at)).toEqual(plannerSays(one, made[0]?.message ?? 0))
      attempts += made.length
      if (made.at(-1)?.kind === 'accepts') delivered++
      else returned++
    }),
    { numRuns: 1000, seed: 8, endOnFailure: false },
  )
  // The worlds were interesting: both ends were met, after many a try.
  expect(delivered).toBeGreaterThan(200)
  expect(returned).toBeGreaterThan(200)
  expect(attempts).toBeGreaterThan(5000)
}, 120_000)
