/** Rules and remedies of mail that is scheduled for later, at destinations that get none then. */
import { expect, test } from 'vitest'
import { remedyFor, ruleFor } from '../../src/presentation/next-attempt-reason.ts'
import { nextAttemptAt, recordsByName, type WaitsFor } from '../../src/presentation/recipient-status.ts'
import { DestinationPolicies } from '../../src/config/destination-policies.ts'
import { configFrom } from '../../src/config/load.ts'
import type { Recipient } from '../../src/mail/message.ts'
import type { MessageDetails } from '../../src/store/queue-reader.ts'
import type { DestinationRecord } from '../../src/store/queue-store.ts'

const policies = new DestinationPolicies(configFrom({}, 'relay.example').config)
const RULE = 'scheduled by the client, which named an interval after the acceptance (HOLDFOR, HOLDUNTIL, not_before)'
const RELEASE = 'to send now: deferd queue release 4ab'

const recordOf = (differs: Partial<DestinationRecord>): DestinationRecord => ({
  name: 'far.example',
  deadUntil: null,
  probeInterval: null,
  suspension: null,
  siteStatus: null,
  ...differs,
})

/** The rule and the remedy of mail that is scheduled for 1000. */
const remedyOf = (waits: WaitsFor, record: DestinationRecord | undefined, forcedExpire = false): string | null =>
  remedyFor({ waits, queueId: '4ab', record, forcedExpire })

function wordsAt(record: DestinationRecord | undefined): readonly [rule: string | null, remedy: string | null] {
  const recipient = { state: 'waiting', destination: 'far.example', dueAt: 1_000 } as Recipient
  const story = { message: { holdRequest: 'for;3600' }, queue: 'scheduled' } as unknown as MessageDetails
  const next = nextAttemptAt(recipient, 'scheduled', recordsByName(record === undefined ? [] : [record]))
  return [ruleFor({ recipient, story, waits: 'schedule', next, policies, live: undefined, record }), remedyOf('schedule', record)]
}

test('mail for later at a destination that is open then', () => {
  expect(wordsAt(undefined)).toEqual([RULE, RELEASE])
  expect(wordsAt(recordOf({ deadUntil: 900, probeInterval: 60 }))).toEqual([RULE, RELEASE])
})

test('mail for later at a suspended destination has both reasons and both commands', () => {
  const [by, reason] = ['ann', null]
  const suspended = `${RULE}; no attempts while the destination is suspended`
  for (const until of [null, 5_000])
    expect(wordsAt(recordOf({ suspension: { by, reason, until } }))).toEqual([
      suspended,
      `${RELEASE}, and deferd destination resume far.example`,
    ])
  expect(wordsAt(recordOf({ suspension: { by, reason, until: null, provider: 'big' } }))).toEqual([
    `${suspended} with provider big`,
    `${RELEASE}, and deferd provider resume big`,
  ])
  // It is resumed before the time of the mail.
  expect(wordsAt(recordOf({ suspension: { by, reason, until: 900 } }))[0]).toBe(RULE)
})

test('mail for later at a dead destination waits for its probe then', () => {
  expect(wordsAt(recordOf({ deadUntil: 5_000, probeInterval: 60 }))).toEqual([
    `${RULE}; the destination is dead and probed at doubling intervals`,
    RELEASE,
  ])
})

test('mail of a destination that is suspended with its provider is tried when the provider is resumed', () => {
  const suspension = { by: 'ann', reason: null, until: null }
  expect(remedyOf('resume', recordOf({ suspension }))).toBe('deferd destination resume far.example')
  expect(remedyOf('resume', recordOf({ suspension: { ...suspension, provider: 'big' } }))).toBe('deferd provider resume big')
  const also = { provider: 'big', by: 'eve', until: null }
  expect(remedyOf('resume', recordOf({ suspension: { ...suspension, also } }))).toBe(
    'deferd destination resume far.example, and deferd provider resume big',
  )
})

const RETRIES = new DestinationPolicies(
  configFrom(
    {
      minimal_backoff_time: '1m',
      retry_jitter: 0.1,
      class: {
        normal: { weight: 10 },
        bulk: { weight: 1, maximal_queue_lifetime: '1h' },
        slow: { weight: 2, maximal_backoff_time: '2h', maximal_delivery_attempts: 3 },
      },
      destination: {
        'near.example': { minimal_backoff_time: '20s', maximal_backoff_time: '10m', maximal_delivery_attempts: 4 },
        'far.example': { retry_backoff: 'opensmtpd', minimal_backoff_time: '30s' },
        'other.example': { destination_rate_delay: '1s' },
      },
      provider: { big: { mx: ['.big.example'], maximal_backoff_time: '3h' } },
    },
    'relay.example',
  ).config,
  { of: (name) => (name === 'of-big.example' ? 'big' : null) },
)

function retryRule(
  destination: string,
  name: string,
  differs: { readonly steps?: number; readonly sender?: string; readonly end?: number },
) {
  const { steps = 1, sender = 'a@b.example', end = 9_000 } = differs
  const recipient = { state: 'waiting', destination, dueAt: 1_000, expiresAt: end, steps } as Recipient
  const story = { message: { class: name, sender }, queue: 'deferred', history: [] } as unknown as MessageDetails
  return ruleFor({ recipient, story, waits: 'due-time', next: 1_000, policies: RETRIES, live: undefined, record: undefined })
}

test.each([
  [
    'near.example',
    'bulk',
    'retry_backoff = doubling; minimal_backoff_time = 20s, maximal_backoff_time = 10m (both [destination."near.example"]), retry_jitter = 0.1',
  ],
  [
    'near.example',
    'slow',
    'retry_backoff = doubling; minimal_backoff_time = 20s ([destination."near.example"]), maximal_backoff_time = 2h ([class.slow]), retry_jitter = 0.1',
  ],
  [
    'far.example',
    'normal',
    'retry_backoff = opensmtpd ([destination."far.example"]); minimal_backoff_time = 30s ([destination."far.example"]), maximal_backoff_time = 4000s, retry_jitter = 0.1',
  ],
  [
    'of-big.example',
    'bulk',
    'retry_backoff = doubling; minimal_backoff_time = 1m, maximal_backoff_time = 3h ([provider.big]), retry_jitter = 0.1',
  ],
  ['other.example', 'bulk', 'retry_backoff = doubling; minimal_backoff_time = 1m, maximal_backoff_time = 4000s, retry_jitter = 0.1'],
])('the rule of a wait names the table that sets each value: %s, class %s', (destination, name, rule) => {
  expect(retryRule(destination, name, {})).toBe(`wait 1 of ${rule}`)
})

test('the rule of a last attempt names the table that sets its limit', () => {
  const near = '([destination."near.example"])'
  expect(retryRule('near.example', 'bulk', { steps: 3 })).toBe(`last attempt: maximal_delivery_attempts = 4 ${near}`)
  expect(retryRule('near.example', 'slow', { steps: 2 })).toBe('last attempt: maximal_delivery_attempts = 3 ([class.slow])')
  const end = 1_000
  expect(retryRule('near.example', 'bulk', { end })).toBe('last attempt, at the end of maximal_queue_lifetime = 1h ([class.bulk])')
  expect(retryRule('near.example', 'bulk', { end, sender: '' })).toBe(
    'last attempt, at the end of bounce_queue_lifetime = 1h ([class.bulk])',
  )
  expect(retryRule('near.example', 'slow', { end })).toBe('last attempt, at the end of maximal_queue_lifetime = 2d')
})

test('mail that was made to expire is not tried by a remedy', () => {
  expect(remedyOf('due-time', undefined, true)).toBe('to have it expire now: deferd queue flush 4ab')
  expect(remedyOf('schedule', undefined, true)).toBe('to have it expire now: deferd queue release 4ab')
  expect(remedyOf('probe', recordOf({}), true)).toBe('waits for a probe of far.example; to have it expire now: deferd queue flush 4ab')
  expect(remedyOf('probe', recordOf({}))).toBe('waits until a probe of far.example succeeds; to try now: deferd queue flush 4ab')
})
