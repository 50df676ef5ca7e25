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

test('mail that was made to expire is not tried by a remedy', () => {
  expect(remedyOf('due-time', undefined, true)).toBe('to have it expire now: deferd queue flush 4ab')
  expect(remedyOf('schedule', undefined, true)).toBe('to have it expire now: deferd queue release 4ab')
  expect(remedyOf('probe', recordOf({}), true)).toBe('waits for a probe of far.example; to have it expire now: deferd queue flush 4ab')
  expect(remedyOf('probe', recordOf({}))).toBe('waits until a probe of far.example succeeds; to try now: deferd queue flush 4ab')
})
