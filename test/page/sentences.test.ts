/** The sentences that answer the question of Now, a destination, a message and Trends. */
import { expect, test } from 'vitest'
import { destinationSentence, laterProbes, type DestinationState, type WaitingCause } from '../../src/page/screens/destination-sentence.ts'
import { messageSentence, type MessageState } from '../../src/page/screens/messages/message-sentence.ts'
import { changesOf } from '../../src/page/screens/trend-changes.ts'
import { firstMailOf, ratePoints } from '../../src/page/screens/series-plots.ts'
import { trendSentence } from '../../src/queries/counts/series-text.ts'
import type { SeriesJson } from '../../src/resources/series-json.ts'
import { nowSentence, type NowState } from '../../src/page/screens/now-sentence.ts'

const AT = { now: Date.parse('2026-11-28T16:00:00Z'), clock: { zone: () => ({ offset: 60, name: 'CET' }) } }

/** Seconds since 1970 of a time in UTC, of 28 November without a date. */
const at = (text: string): number => Date.parse(text.includes('T') ? `${text}Z` : `2026-11-28T${text}Z`) / 1_000

type Place = NowState['largest_destinations'][number]

interface ShownNow {
  /** Recipients by queue. */
  readonly queues?: Readonly<Record<string, number>>
  readonly hour?: Partial<NowState['last_hour']>
  /** Recipients that waited an hour ago. */
  readonly before?: number
  /** Recipients that were on hold an hour ago; as many as now when absent. */
  readonly heldBefore?: number
  readonly places?: readonly Place[]
  readonly broken?: true
  /** The share whose limit refuses new mail; null for the whole queue. */
  readonly full?: string | null
}

const place = (destination: string, waiting: number, state: Place['state'] = 'open', refuses = false): Place => ({
  destination,
  waiting,
  scheduled: 0,
  state,
  site_stage: null,
  refuses_all: refuses,
})

const NO_TRAFFIC = { accepted: 0, delivered: 0, deferred: 0, bounced: 0, expired: 0, deleted: 0 }
const STORE = { kind: 'store-unavailable', count: null, at_least: false, within: null, text: 'disk full', since: at('15:00') } as const

const nowState = ({ queues = {}, hour = {}, before, heldBefore = queues['hold'] ?? 0, places = [], broken, full }: ShownNow): NowState => ({
  time: at('16:00'),
  waited: before === undefined ? null : { time: at('15:00'), recipients: before, hold: heldBefore },
  limits: full === undefined ? [] : [{ share: full, refuses: true }],
  queues: Object.entries(queues).map(([name, recipients]) => ({
    queue_name: name,
    messages: recipients,
    recipients,
    oldest_arrival_time: at('06:00'),
  })),
  last_hour: { ...NO_TRAFFIC, ...hour },
  largest_destinations: places,
  attention: broken === true ? [STORE] : [],
})

const NOW_STATES: readonly (readonly [ShownNow, string])[] = [
  [{ full: 'shop.example' }, 'The queue is empty.'],
  [
    { full: null, queues: { active: 2 } },
    'New mail is refused, because the queue is at its limit. 2 recipients are in delivery or were not tried yet; none is deferred.',
  ],
  [{}, 'The queue is empty.'],
  [{ hour: { delivered: 27 } }, 'The queue is empty; 27 recipients got mail in the last hour.'],
  [{ hour: { delivered: 1 } }, 'The queue is empty; 1 recipient got mail in the last hour.'],
  [{ broken: true, queues: { deferred: 5 } }, 'Mail is neither accepted nor delivered: the queue cannot be written.'],
  [{ queues: { hold: 3 } }, 'No mail waits for delivery; recipients: 3 on hold.'],
  [{ queues: { scheduled: 1_200 } }, 'No mail waits for delivery; recipients: 1,200 scheduled for later.'],
  [
    { queues: { hold: 3, scheduled: 5, corrupt: 1 } },
    'No mail waits for delivery; recipients: 3 on hold, 5 scheduled for later, 1 in unreadable mail.',
  ],
  [{ queues: { active: 1 } }, '1 recipient is in delivery or was not tried yet; none is deferred.'],
  [{ queues: { incoming: 4, active: 8 } }, '12 recipients are in delivery or were not tried yet; none is deferred.'],
  [{ queues: { active: 8, hold: 2 } }, '8 recipients are in delivery or were not tried yet; none is deferred.'],
  [{ queues: { deferred: 1 }, places: [place('a.example', 1)] }, '1 recipient waits. a.example has it.'],
  [{ queues: { deferred: 9 }, places: [place('a.example', 9)] }, '9 recipients wait. a.example has all of them.'],
  [
    { queues: { deferred: 9 }, before: 0, places: [place('a.example', 9)] },
    '9 recipients wait, 9 more than an hour ago. a.example has all of them.',
  ],
  [
    { queues: { deferred: 40 }, before: 0, places: [place('a.example', 30), place('b.example', 10)] },
    'The queue is growing: 40 recipients wait, 40 more than an hour ago. a.example has 75 % of them.',
  ],
  [
    {
      queues: { deferred: 21_660 },
      before: 18_460,
      places: [place('gmail.com', 8_664, 'throttled')],
    },
    'The queue is growing: 21,660 recipients wait, 3,200 more than an hour ago. gmail.com has 40 % of them, and is throttled.',
  ],
  [
    { queues: { deferred: 21_660 }, before: 30_620, places: [place('gmail.com', 8_664, 'dead')] },
    'The queue is draining: 21,660 recipients wait, 8,960 fewer than an hour ago. gmail.com has 40 % of them; its servers do not accept connections or mail.',
  ],
  [
    { queues: { deferred: 500 }, before: 1_000, places: [{ ...place('far.example', 400, 'dead'), site_stage: 'dns' }] },
    'The queue is draining: 500 recipients wait, 500 fewer than an hour ago. far.example has 80 % of them; the look-up of its servers fails.',
  ],
  [
    { queues: { deferred: 500 }, before: 1_000, places: [place('gmail.com', 400, 'suspended')] },
    'The queue is draining: 500 recipients wait, 500 fewer than an hour ago. gmail.com has 80 % of them, and is suspended.',
  ],
  [
    { queues: { deferred: 6_296, hold: 570 }, before: 6_579, heldBefore: 0, places: [place('gmail.com', 4_186)] },
    '6,296 recipients wait, 283 fewer than an hour ago; 570 more are on hold. gmail.com has 66 % of them.',
  ],
  [
    { queues: { deferred: 900, hold: 1 }, before: 300, heldBefore: 601, places: [place('gmail.com', 900)] },
    '900 recipients wait, 600 more than an hour ago; 600 fewer are on hold. gmail.com has all of them.',
  ],
  [
    { queues: { deferred: 100, hold: 20 }, before: 900, heldBefore: 0, places: [place('gmail.com', 100)] },
    'The queue is draining: 100 recipients wait, 800 fewer than an hour ago; 20 more are on hold. gmail.com has all of them.',
  ],
  [
    { queues: { deferred: 500 }, before: 495, places: [place('gmail.com', 130, 'open', true)] },
    '500 recipients wait, 5 more than an hour ago. gmail.com has 26 % of them, and delivered nothing in its last attempts.',
  ],
  [
    { queues: { deferred: 10_000 }, before: 9_850, places: [place('gmail.com', 2_400)] },
    '10,000 recipients wait, 150 more than an hour ago. No destination has more than 24 % of them.',
  ],
  [
    { queues: { deferred: 10_000 }, before: 9_850, places: [place('gmail.com', 40)] },
    '10,000 recipients wait, 150 more than an hour ago. No destination has more than 1 % of them.',
  ],
  [
    { queues: { deferred: 90, active: 10 }, before: 120, places: [place('b.example', 10), place('a.example', 60)] },
    'The queue is draining: 100 recipients wait, 20 fewer than an hour ago. a.example has 60 % of them.',
  ],
  // Scheduled mail is not among the recipients that wait, and says nothing about where they wait.
  [
    {
      queues: { deferred: 1_846, scheduled: 2_020 },
      places: [{ ...place('isp.example', 2_020), scheduled: 2_020 }, place('suspended.example', 1_085, 'suspended')],
    },
    '1,846 recipients wait. suspended.example has 59 % of them, and is suspended.',
  ],
  [
    { queues: { deferred: 10, scheduled: 90 }, places: [{ ...place('a.example', 95), scheduled: 90 }] },
    '10 recipients wait. a.example has 50 % of them.',
  ],
  [{ queues: { deferred: 9 }, places: [{ ...place('a.example', 9), scheduled: null }] }, '9 recipients wait. a.example has all of them.'],
  [{ queues: { deferred: 12 }, places: [] }, '12 recipients wait.'],
  [{ queues: { deferred: 12 }, before: 12, places: [] }, '12 recipients wait, as many as an hour ago.'],
  [
    { queues: { deferred: 12, hold: 5 }, places: [place('a.example', 12, 'suspended')] },
    '12 recipients wait. a.example has all of them, and is suspended.',
  ],
]

test.each(NOW_STATES)('Now %j: %s', (state, sentence) => {
  expect(nowSentence(nowState(state))).toBe(sentence)
})

const cause = (text: string | null, recipients: number, isHeld = false): WaitingCause => ({
  kind: text === null ? 'untried' : 'failed',
  cause: text,
  recipients,
  on_hold: isHeld,
})

interface ShownDestination extends Partial<DestinationState> {
  readonly causes?: readonly WaitingCause[]
}

const DESTINATION_STATES: readonly (readonly [ShownDestination, string])[] = [
  [{}, 'No mail waits for it.'],
  [{ state: 'suspended' }, 'No mail waits; new mail waits until the destination is resumed.'],
  // To resume the destination would not end it.
  [{ state: 'suspended', suspended_with: 'yahoo' }, 'No mail waits; new mail waits until the provider yahoo is resumed.'],
  [{ state: 'dead' }, 'No mail waits; its servers do not accept connections or mail.'],
  [{ state: 'dead', site_stage: 'dns' }, 'No mail waits; the look-up of its servers fails.'],
  [{ state: 'throttled' }, 'No mail waits for it.'],
  [{ in_flight: 1 }, '1 delivery runs; no other mail waits.'],
  [{ in_flight: 20, state: 'throttled' }, '20 deliveries run; no other mail waits.'],
  [{ waiting: 1 }, '1 recipient waits.'],
  [{ waiting: 9_260, next_due_time: at('15:59') }, '9,260 recipients wait. The next attempt is due now.'],
  [{ waiting: 9_260, next_due_time: at('16:10') }, '9,260 recipients wait. The next attempt is at 17:10.'],
  [{ waiting: 9_260, next_due_time: at('2026-11-29T08:30:00') }, '9,260 recipients wait. The next attempt is at 2026-11-29 09:30.'],
  [
    {
      waiting: 9_260,
      next_due_time: at('16:10'),
      causes: [cause('421 4.7.28 unusual rate of mail', 8_096), cause('452 4.2.2 mailbox full', 1_164)],
    },
    '9,260 recipients wait: 87 % for 421 4.7.28 unusual rate of mail, 13 % for 452 4.2.2 mailbox full. The next attempt is at 17:10.',
  ],
  [
    { waiting: 10, causes: [cause('452 4.2.2 mailbox full', 1), cause('421 4.7.28 unusual rate', 9)] },
    '10 recipients wait: 90 % for 421 4.7.28 unusual rate, 10 % for 452 4.2.2 mailbox full.',
  ],
  [
    { waiting: 100, causes: [cause('421 4.7.28 unusual rate', 97), cause('452 4.2.2 mailbox full', 3)] },
    '100 recipients wait: 97 % for 421 4.7.28 unusual rate.',
  ],
  [{ waiting: 3, causes: [cause('450 4.2.1 busy', 3)] }, '3 recipients wait for 450 4.2.1 busy.'],
  [{ waiting: 3, causes: [cause('450 4.2.1 busy', 3), cause('450 4.2.1 busy', 7, true)] }, '3 recipients wait for 450 4.2.1 busy.'],
  // One of them is scheduled for later: it waits for its time.
  [{ waiting: 3, causes: [cause('450 4.2.1 busy', 2)] }, '3 recipients wait: 67 % for 450 4.2.1 busy.'],
  [{ waiting: 4 }, '4 recipients wait.'],
  // Scheduled mail has no cause.
  [
    { waiting: 2_020, scheduled: 2_020, next_due_time: at('16:28'), causes: [] },
    '2,020 recipients wait for a later time, as scheduled mail does. The next attempt is at 17:28.',
  ],
  [
    { waiting: 1, scheduled: 1, next_due_time: at('16:28'), causes: [cause('450 4.2.1 busy', 7, true)] },
    '1 recipient waits for a later time, as scheduled mail does. The next attempt is at 17:28.',
  ],
  // Mail that was deferred after the causes were counted.
  [{ waiting: 2, next_due_time: at('16:28'), causes: [] }, '2 recipients wait. The next attempt is at 17:28.'],
  [
    { waiting: 120, scheduled: 31, causes: [cause('421 4.7.28 unusual rate', 16), cause(null, 73)] },
    '120 recipients wait: 13 % for 421 4.7.28 unusual rate. 73 were not tried yet. 31 are scheduled for a later time.',
  ],
  [{ waiting: 5, scheduled: 1 }, '5 recipients wait. 1 is scheduled for a later time.'],
  [
    // The others were put on hold since the causes were counted.
    { waiting: 17, scheduled: 16, causes: [cause('450 4.2.1 busy', 12), cause(null, 102)] },
    '17 recipients wait. 16 are scheduled for a later time.',
  ],
  [{ waiting: 131, scheduled: 16, causes: [cause(null, 2)] }, '131 recipients wait. 16 are scheduled for a later time.'],
  [
    { waiting: 10, state: 'dead', scheduled: 4, causes: [cause('450 4.2.1 busy', 6)] },
    '10 recipients wait: 60 % for 450 4.2.1 busy. 4 are scheduled for a later time.',
  ],
  [{ waiting: 2, next_due_time: at('15:59'), causes: [] }, '2 recipients wait. The next attempt is due now.'],
  [{ waiting: 2, in_flight: 1, next_due_time: at('16:28'), causes: [] }, '2 recipients wait. The next attempt is at 17:28.'],
  [
    { waiting: 10, causes: [cause('450 4.2.1 busy', 8), cause(null, 2)] },
    '10 recipients wait: 80 % for 450 4.2.1 busy. 2 were not tried yet.',
  ],
  [
    { waiting: 3, causes: [cause(`421 4.7.28 ${'unusual rate '.repeat(9)}`, 3)] },
    `3 recipients wait for 421 4.7.28 ${'unusual rate '.repeat(9).slice(0, 78)}…`,
  ],
  [{ waiting: 3, causes: [cause(null, 3)] }, '3 recipients wait. 3 were not tried yet.'],
  [
    { waiting: 3, in_flight: 2, causes: [cause(null, 3)] },
    '3 recipients wait. 3 recipients are in their first attempt, or were not tried yet.',
  ],
  // The causes are older than the number of those that wait.
  [{ waiting: 311, causes: [cause(null, 312)] }, '311 recipients wait. 311 were not tried yet.'],
  [
    { waiting: 10, causes: [cause('450 4.2.1 busy', 9), cause(null, 1)] },
    '10 recipients wait: 90 % for 450 4.2.1 busy. 1 was not tried yet.',
  ],
  [
    { waiting: 10, state: 'dead', next_due_time: at('16:10'), causes: [cause('connect to mx.example[·]:25: Connection refused', 10)] },
    '10 recipients wait for a connection to mx.example (Connection refused).',
  ],
  // All mail of a dead destination waits for the same, also what was not tried.
  [
    {
      waiting: 227,
      state: 'dead',
      site_reason: 'does not answer: connect to mx.example[192.0.2.1]:25: Connection refused',
      causes: [cause('connect to mx.example[·]:25: Connection refused', 1), cause('450 4.2.1 busy', 9), cause(null, 217)],
    },
    '227 recipients wait for a connection to mx.example (Connection refused). 217 were not tried yet.',
  ],
  [
    { waiting: 9, state: 'dead', scheduled: 4, site_reason: '421 4.3.2 busy', causes: [cause(null, 5)] },
    '9 recipients wait: 5 for 421 4.3.2 busy. 5 were not tried yet. 4 are scheduled for a later time.',
  ],
  [
    { waiting: 10, state: 'suspended', next_due_time: at('16:10'), causes: [cause('450 4.2.1 busy', 10)] },
    '10 recipients wait until the destination is resumed.',
  ],
  [{ waiting: 10, state: 'suspended', resume_time: at('18:00') }, '10 recipients wait until the destination is resumed at 19:00.'],
  // None of the scheduled mail waits for the resumption alone.
  [
    { waiting: 3, scheduled: 3, state: 'suspended', resume_time: at('18:00'), next_due_time: at('18:30') },
    '3 recipients wait for a later time, as scheduled mail does; nothing is tried until the destination is resumed at 19:00.',
  ],
  [
    { waiting: 126, scheduled: 20, state: 'suspended', suspended_with: 'othermail', resume_time: at('18:00') },
    '126 recipients wait: 106 until the provider othermail is resumed at 19:00, 20 for a later time, as scheduled mail does.',
  ],
  [
    { waiting: 10, state: 'suspended', suspended_with: 'yahoo', resume_time: at('18:00') },
    '10 recipients wait until the provider yahoo is resumed at 19:00.',
  ],
  // Its own suspension and that of its provider must both end.
  [
    { waiting: 127, state: 'suspended', provider: 'othermail', provider_suspended_by: 'root' },
    '127 recipients wait until the destination and the provider othermail are both resumed.',
  ],
  [
    { waiting: 336, state: 'suspended', provider: 'bigmail', provider_suspended_by: 'root', resume_time: at('18:00') },
    '336 recipients wait until the destination and the provider bigmail are both resumed at 19:00.',
  ],
  // Replies that differ behind the cut only would be named twice.
  [
    {
      waiting: 100,
      causes: [
        cause(`421 4.7.28 ${'unusual rate '.repeat(9)}; see a`, 46),
        cause('452 4.2.2 mailbox full', 30),
        cause(`421 4.7.28 ${'unusual rate '.repeat(9)}; see b`, 22),
      ],
    },
    `100 recipients wait: 68 % for 421 4.7.28 ${'unusual rate '.repeat(9).slice(0, 78)}…, 30 % for 452 4.2.2 mailbox full.`,
  ],
  [
    {
      waiting: 2,
      causes: [cause('421 4.7.28 [· ·] Our system has detected an unusual rate of unsolicited mail originating from your IP address', 2)],
    },
    '2 recipients wait for 421 4.7.28 Our system has detected an unusual rate of unsolicited mail originating from …',
  ],
  [
    { waiting: 2, causes: [cause('421 4.7.28 [·] unusual rate; see · · - mx·', 2)] },
    '2 recipients wait for 421 4.7.28 unusual rate; see …',
  ],
  [{ waiting: 2, causes: [cause('· - ·', 2)] }, '2 recipients wait for …'],
  [
    {
      waiting: 4,
      causes: [cause('connect to mx·.example[·]:·: Connection timed out', 3), cause('lost connection with ·[·] while sending ·', 1)],
    },
    '4 recipients wait: 75 % for a connection (Connection timed out), 25 % for lost connection with … while sending …',
  ],
]

test('mail that is due at a destination with a message rate', () => {
  const due = {
    state: 'open',
    site_stage: null,
    site_reason: null,
    waiting: 9,
    scheduled: 0,
    in_flight: 0,
    next_due_time: 0,
    resume_time: null,
    provider: null,
    provider_suspended_by: null,
    suspended_with: null,
  } as const
  expect(destinationSentence({ ...due, message_rate: 7.04 }, null, AT)).toBe(
    '9 recipients wait. The next attempt is due now, at most 7 a minute.',
  )
})

test.each(DESTINATION_STATES)('a destination %j: %s', ({ causes = null, ...more }, sentence) => {
  const state = {
    state: 'open',
    site_stage: null,
    site_reason: null,
    waiting: 0,
    scheduled: 0,
    in_flight: 0,
    next_due_time: null,
    resume_time: null,
    provider: null,
    provider_suspended_by: null,
    suspended_with: null,
    message_rate: null,
    ...more,
  } as const
  expect(destinationSentence(state, causes, AT)).toBe(sentence)
})

test.each([
  [120, '15m', ', then after 4m and at doubling intervals up to 15m'],
  [450, '15m', ', then every 15m'],
  [480, '15m', ', then every 15m'],
  [900, '900s', ', then every 15m'],
  // maximal_backoff_time was less by a reload.
  [900, '300s', ', then every 5m'],
  [null, '15m', ''],
])('the probes after one at an interval of %j s with maximal_backoff_time %s%s', (interval, maximal, text) => {
  expect(laterProbes(interval, { table: null, values: { maximal_backoff_time: maximal }, origins: {} })).toBe(text)
})

type Recipient = MessageState['recipients'][number]

const one = (more: Partial<Recipient> = {}): Recipient => ({
  address: 'ann@far.example',
  destination: 'far.example',
  state: 'waiting',
  attempts: 2,
  waits_for: 'due-time',
  next_attempt_time: at('16:23'),
  settle_time: null,
  last_reply: '421 4.7.28 unusual rate',
  site_stage: null,
  suspended_with: null,
  also_suspended_with: null,
  resent_as: null,
  resume_time: null,
  ...more,
})

const many = (count: number, more: Partial<Recipient> = {}): readonly Recipient[] =>
  Array.from({ length: count }, (_, i) => one({ address: `r${i}@far.example`, ...more }))

const REFUSED = 'connect to mx.far.example[192.0.2.1]:25: Connection refused'

const tried = (time: string, reply: string | null = '421 4.7.28 unusual rate'): MessageState['history'][number] => ({
  time: at(time),
  recipient: 'ann@far.example',
  reply,
  reason: reply ?? REFUSED,
})

/** Attempts of the first recipients of `many`, one each. */
const triedBy = (...times: readonly string[]): MessageState['history'] =>
  times.map((time, i) => ({ ...tried(time), recipient: `r${i}@far.example` }))

const MESSAGE_STATES: readonly (readonly [Partial<MessageState>, string])[] = [
  [{ recipients: [one({ attempts: 0, last_reply: null })] }, 'It was not tried yet. The next attempt is at 17:23.'],
  [
    { recipients: [one({ attempts: 0, last_reply: null, next_attempt_time: at('16:00') })] },
    'It was not tried yet. The next attempt is due now.',
  ],
  [
    { history: [tried('06:35'), tried('14:17')] },
    'far.example defers it since 07:35: 421 4.7.28 unusual rate. The next attempt is at 17:23.',
  ],
  [
    {
      history: [tried('06:35', '450 4.2.1 busy'), tried('10:00'), tried('14:17')],
      future: [{ recipient: 'ann@far.example', expire_time: at('2026-11-30T11:00:00') }],
    },
    'far.example defers it since 11:00: 421 4.7.28 unusual rate. The next attempt is at 17:23; without a delivery it is returned to the sender at 2026-11-30 12:00.',
  ],
  [
    { history: [tried('14:17', null)], recipients: [one({ last_reply: 'connect to mx.far.example[192.0.2.1]:25: Connection refused' })] },
    'far.example defers it since 15:17: Connection refused. The next attempt is at 17:23.',
  ],
  [
    { recipients: [one({ next_attempt_time: at('15:59') })] },
    'far.example defers it: 421 4.7.28 unusual rate. It is due since 16:59, and waits for its turn.',
  ],
  [
    { recipients: [one({ next_attempt_time: at('16:00') })] },
    'far.example defers it: 421 4.7.28 unusual rate. The next attempt is due now.',
  ],
  [{ recipients: [one({ next_attempt_time: null })] }, 'far.example defers it: 421 4.7.28 unusual rate. No attempt is planned.'],
  [
    { recipients: [one({ last_reply: '450 4.2.1 ' + 'x'.repeat(200) })] },
    'far.example defers it: 450 4.2.1 xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx… The next attempt is at 17:23.',
  ],
  [
    { recipients: [one({ last_reply: `421 4.7.28 ${'unusual rate '.repeat(9)}` })] },
    `far.example defers it: 421 4.7.28 ${'unusual rate '.repeat(6)}… The next attempt is at 17:23.`,
  ],
  [
    { forced_expire: true },
    'far.example defers it: 421 4.7.28 unusual rate. An operator has made it expire: it is returned to the sender in place of its next attempt at 17:23.',
  ],
  // It is not returned while nothing is tried, and to nobody without a return path.
  [
    { forced_expire: true, sender: 'MAILER-DAEMON', recipients: [one({ next_attempt_time: at('15:00') })] },
    'far.example defers it: 421 4.7.28 unusual rate. An operator has made it expire: it is given up in place of its next attempt, which is due now.',
  ],
  [
    { forced_expire: true, waits_for: 'resume', recipients: [one({ attempts: 0, last_reply: null, next_attempt_time: null })] },
    'far.example is suspended. An operator has made it expire: it is returned to the sender when that is resumed, or at the end of its lifetime.',
  ],
  [
    { forced_expire: true, waits_for: 'probe', recipients: [one({ attempts: 0, last_reply: null })] },
    'far.example is dead. An operator has made it expire: it is returned to the sender in place of a probe.',
  ],
  [
    { forced_expire: true, waits_for: 'release', recipients: [one({ state: 'parked', attempts: 0, last_reply: null })] },
    'It is on hold until it is released. An operator has made it expire: it is returned to the sender then.',
  ],
  [{ waits_for: 'slot' }, 'far.example defers it: 421 4.7.28 unusual rate. It is due, and waits for a delivery slot.'],
  [{ waits_for: 'slot', recipients: [one({ attempts: 0, last_reply: null })] }, 'It is due, and waits for a delivery slot.'],
  [{ waits_for: 'delivery', recipients: [one({ state: 'leased' })] }, 'It is in delivery now.'],
  [
    { waits_for: 'probe', history: [tried('06:35')] },
    'far.example defers it since 07:35: 421 4.7.28 unusual rate. far.example is dead: its servers do not accept connections or mail. Each probe tries one of the recipients that wait for it; the next one is at 17:23.',
  ],
  [
    { waits_for: 'probe', recipients: [one({ attempts: 0, last_reply: null })] },
    'far.example is dead: its servers do not accept connections or mail. Each probe tries one of the recipients that wait for it; the next one is at 17:23.',
  ],
  [
    { waits_for: 'probe', recipients: [one({ attempts: 0, last_reply: null, site_stage: 'dns' })] },
    'far.example is dead: the look-up of its servers fails. Each probe tries one of the recipients that wait for it; the next one is at 17:23.',
  ],
  [
    { waits_for: 'resume' },
    'far.example defers it: 421 4.7.28 unusual rate. far.example is suspended: nothing is tried until it is resumed.',
  ],
  [
    { waits_for: 'resume', recipients: [one({ attempts: 0, last_reply: null })] },
    'far.example is suspended: nothing is tried until it is resumed.',
  ],
  // To resume the destination would not end it.
  [
    { waits_for: 'resume', recipients: [one({ attempts: 0, last_reply: null, suspended_with: 'bigmail', resume_time: at('19:54') })] },
    'far.example is suspended: nothing is tried until the provider bigmail is resumed at 20:54.',
  ],
  [
    { waits_for: 'resume', recipients: [one({ attempts: 0, last_reply: null, also_suspended_with: 'bigmail' })] },
    'far.example is suspended: nothing is tried until it and the provider bigmail are both resumed.',
  ],
  [
    { waits_for: 'release', recipients: [one({ state: 'parked' })] },
    'far.example defers it: 421 4.7.28 unusual rate. It is on hold until it is released.',
  ],
  [{ waits_for: 'release', recipients: [one({ state: 'parked', attempts: 0, last_reply: null })] }, 'It is on hold until it is released.'],
  [{ waits_for: 'inspection', recipients: [one({ state: 'parked' })] }, 'It is unreadable, and stays until it is deleted.'],
  [
    { waits_for: 'restore', restore_until: at('2026-11-29T12:00:00'), recipients: [one({ state: 'parked' })] },
    'It is in the trash, and can be restored until 2026-11-29 13:00.',
  ],
  [
    { waits_for: 'restore', restore_until: at('17:00'), recipients: [one({ state: 'delivered' }), one({ state: 'parked', attempts: 0 })] },
    'Of 2 recipients, 1 has it. It is in the trash, and can be restored until 18:00.',
  ],
  [
    { waits_for: 'restore', restore_until: at('15:00'), recipients: [one({ state: 'parked' })] },
    'It is in the trash, and is removed soon; it can be restored until then.',
  ],
  [{ waits_for: 'restore', recipients: [one({ state: 'parked' })] }, 'It is deleted, and cannot be restored.'],
  [
    {
      waits_for: 'schedule',
      not_before: at('2026-11-29T08:00:00'),
      rule: 'scheduled: quota app, 3/1h, is used up until then',
      recipients: [one({ state: 'scheduled', attempts: 0, last_reply: null })],
    },
    'It is not delivered before 2026-11-29 09:00 (scheduled: quota app, 3/1h, is used up until then).',
  ],
  [
    { waits_for: 'schedule', recipients: [one({ state: 'scheduled', attempts: 0, last_reply: null })] },
    'It is not delivered before a later time.',
  ],
  [
    { waits_for: 'nothing', recipients: [one({ state: 'delivered', settle_time: at('12:00'), last_reply: '250 2.0.0 Ok: queued as 27' })] },
    'far.example took it at 13:00: 250 2.0.0 Ok: queued as 27.',
  ],
  [
    { waits_for: 'nothing', recipients: [one({ state: 'bounced', settle_time: at('12:00'), last_reply: '552 5.2.2 Mailbox full.' })] },
    'It was refused for good at 13:00: 552 5.2.2 Mailbox full.',
  ],
  [
    { waits_for: 'nothing', recipients: [one({ state: 'expired', settle_time: at('2026-11-27T12:00:00') })] },
    'It was given up at 2026-11-27 13:00 without a delivery: 421 4.7.28 unusual rate.',
  ],
  [{ waits_for: 'nothing', recipients: [one({ state: 'removed', settle_time: null })] }, 'It was removed.'],
  [
    { waits_for: 'nothing', recipients: [one({ state: 'expired', settle_time: null, last_reply: null, resent_as: '4jdcQW68d4zMC' })] },
    'It was given up without a delivery. It was sent again, as 4jdcQW68d4zMC.',
  ],
  [
    { waits_for: 'nothing', recipients: [one({ state: 'removed', settle_time: null, last_reply: 'requeued as 4jdbC33Qzhz2K4' })] },
    'It was requeued, as 4jdbC33Qzhz2K4.',
  ],
  [
    {
      waits_for: 'nothing',
      recipients: ['ann', 'bob'].map((name) =>
        one({ address: `${name}@far.example`, state: 'removed', last_reply: 'requeued as 4jdbC33Qzhz2K4' }),
      ),
    },
    'All 2 recipients were requeued.',
  ],
  [{ waits_for: 'nothing', recipients: [] }, 'It has no recipients.'],
  [{ waits_for: 'nothing', recipients: many(600, { state: 'delivered' }) }, 'All 600 recipients have it.'],
  [
    { waits_for: 'nothing', recipients: [...many(5, { state: 'delivered' }), one({ state: 'bounced' }), ...many(2, { state: 'expired' })] },
    'Of 8 recipients, 5 have it, 1 was refused, 2 were given up.',
  ],
  [{ waits_for: 'nothing', recipients: many(3, { state: 'bounced' }) }, 'All 3 recipients were refused.'],
  [
    { recipients: [...many(568), ...many(32, { state: 'delivered' })] },
    '568 of 600 recipients wait, 32 have it. All of them wait for 421 4.7.28 unusual rate. The next attempt is at 17:23.',
  ],
  [
    { recipients: [...many(3), ...many(2, { last_reply: '452 4.2.2 mailbox full' }), one({ state: 'bounced' })] },
    '5 of 6 recipients wait, 1 was refused. 3 of them wait for 421 4.7.28 unusual rate. The next attempt is at 17:23.',
  ],
  [{ recipients: many(2, { attempts: 0, last_reply: null }) }, 'All 2 recipients wait. The next attempt is at 17:23.'],
  [
    { recipients: [one({}), one({ state: 'delivered' })] },
    '1 of 2 recipients waits, 1 has it. It waits for 421 4.7.28 unusual rate. The next attempt is at 17:23.',
  ],
  [
    { recipients: [one({}), one({ attempts: 0, last_reply: null })] },
    'All 2 recipients wait. 1 of them waits for 421 4.7.28 unusual rate. The next attempt is at 17:23.',
  ],
  [
    { recipients: [17, 25].map((id) => one({ last_reply: `451 4.2.0 busy with ${id}` })) },
    'All 2 recipients wait. All of them wait for 451 4.2.0 busy with … The next attempt is at 17:23.',
  ],
  [
    {
      recipients: [one({ next_attempt_time: at('18:00') }), one({ address: 'bob@far.example', next_attempt_time: at('17:00') })],
      future: [{ recipient: 'bob@far.example', expire_time: at('20:00') }],
    },
    'All 2 recipients wait. All of them wait for 421 4.7.28 unusual rate. The next attempt is at 18:00.',
  ],
  // Each closed destination holds up its own recipients alone.
  [
    {
      waits_for: 'resume',
      recipients: [
        ...many(20, { destination: 'a.example', waits_for: 'resume', next_attempt_time: at('16:10'), last_reply: null }),
        ...many(15, { destination: 'b.example', waits_for: 'resume', next_attempt_time: null, last_reply: null }),
        ...many(10, { destination: 'c.example', waits_for: 'probe', last_reply: null }),
        ...many(3, { destination: 'd.example', next_attempt_time: at('16:40'), last_reply: null }),
        ...many(57, { state: 'delivered' }),
      ],
    },
    '48 of 105 recipients wait, 57 have it. 20 wait until a.example is resumed, 15 until b.example is resumed, 10 for a probe of c.example. The next attempt is at 17:40.',
  ],
  [
    {
      waits_for: 'due-time',
      recipients: [
        one({ destination: 'a.example', waits_for: 'probe', last_reply: REFUSED }),
        one({ destination: 'b.example', waits_for: 'resume', last_reply: null }),
        one({ destination: 'c.example', next_attempt_time: at('16:40') }),
      ],
    },
    'All 3 recipients wait. 1 of them waits for 421 4.7.28 unusual rate. 1 waits for a probe of a.example, 1 until b.example is resumed. The next attempt is at 17:40.',
  ],
  [
    {
      waits_for: 'resume',
      recipients: [
        one({ destination: 'a.example', waits_for: 'resume', last_reply: null }),
        ...[1, 2, 3].map((n) => one({ destination: `x${n}.example`, waits_for: 'probe', last_reply: null })),
      ],
    },
    'All 4 recipients wait. 1 waits until a.example is resumed, 1 for a probe of x1.example, 1 for a probe of x2.example, 1 for other destinations.',
  ],
  [
    {
      waits_for: 'resume',
      recipients: [
        ...['a', 'b'].map((name) =>
          one({ destination: `${name}.example`, waits_for: 'resume', suspended_with: 'bigmail', last_reply: null }),
        ),
        one({ destination: 'c.example', waits_for: 'resume', last_reply: null }),
      ],
    },
    'All 3 recipients wait. 2 wait until the provider bigmail is resumed, 1 until c.example is resumed.',
  ],
  [
    { waits_for: 'resume', recipients: many(2, { waits_for: 'resume', last_reply: null }) },
    'All 2 recipients wait. far.example is suspended: nothing is tried until it is resumed.',
  ],
  [
    { waits_for: 'release', recipients: many(3, { state: 'parked' }) },
    'All 3 recipients wait. far.example defers all of them: 421 4.7.28 unusual rate. It is on hold until it is released.',
  ],
  [
    {
      waits_for: 'release',
      recipients: [...many(2, { state: 'parked' }), ...many(4, { state: 'delivered' })],
      history: triedBy('06:35', '14:17'),
    },
    '2 of 6 recipients wait, 4 have it. far.example defers all that wait since 15:17: 421 4.7.28 unusual rate. It is on hold until it is released.',
  ],
  [
    { waits_for: 'release', recipients: [one({ state: 'parked' }), one({ state: 'delivered' })], history: [tried('06:35')] },
    '1 of 2 recipients waits, 1 has it. far.example defers it since 07:35: 421 4.7.28 unusual rate. It is on hold until it is released.',
  ],
  [
    {
      waits_for: 'release',
      recipients: [
        ...['a', 'b'].map((name) => one({ destination: `${name}.example`, state: 'parked', last_reply: REFUSED })),
        one({ state: 'parked', attempts: 0, last_reply: null }),
      ],
    },
    'All 3 recipients wait. 2 destinations defer 2 of them: Connection refused. It is on hold until it is released.',
  ],
  [
    {
      waits_for: 'release',
      recipients: [...many(2, { state: 'parked' }), one({ state: 'parked', last_reply: '450 busy' }), one({ state: 'bounced' })],
    },
    '3 of 4 recipients wait, 1 was refused. far.example defers 2 that wait: 421 4.7.28 unusual rate. It is on hold until it is released.',
  ],
  [
    { waits_for: 'release', recipients: many(2, { state: 'parked', attempts: 0, last_reply: null }) },
    'All 2 recipients wait. It is on hold until it is released.',
  ],
  [
    { waits_for: 'resume', recipients: many(2, { waits_for: 'resume' }) },
    'All 2 recipients wait. far.example defers all of them: 421 4.7.28 unusual rate. far.example is suspended: nothing is tried until it is resumed.',
  ],
  [
    { waits_for: 'probe', recipients: many(2, { waits_for: 'probe', last_reply: REFUSED }) },
    'All 2 recipients wait. far.example defers all of them: Connection refused. far.example is dead: its servers do not accept connections or mail. Each probe tries one of the recipients that wait for it; the next one is at 17:23.',
  ],
  [
    { waits_for: 'schedule', not_before: at('2026-11-29T08:00:00'), recipients: many(2, { state: 'scheduled' }) },
    'All 2 recipients wait. It is not delivered before 2026-11-29 09:00.',
  ],
  [
    { waits_for: 'inspection', recipients: many(2, { state: 'parked' }) },
    'All 2 recipients wait. It is unreadable, and stays until it is deleted.',
  ],
]

test.each(MESSAGE_STATES)('a message %j: %s', (more, sentence) => {
  const state: MessageState = {
    waits_for: 'due-time',
    sender: 'app@us.example',
    forced_expire: false,
    restore_until: null,
    rule: null,
    recipients: [one()],
    history: [],
    future: [],
    ...more,
  }
  expect(messageSentence(state, AT)).toBe(sentence)
})

test('at least 60 states have a sentence of their own', () => {
  expect(NOW_STATES.length + DESTINATION_STATES.length + MESSAGE_STATES.length).toBeGreaterThanOrEqual(60)
})

const seriesWith = (values: SeriesJson['series'][number]['values'], name: string | null = null): SeriesJson => ({
  metric: 'flow',
  unit: '',
  from: 0,
  to: 120,
  step: 60,
  series: [{ name, values }],
  marks: [],
  known_since: null,
  as_of: 120,
})

test('a trend: how the backlog changed, and what happened to mail', () => {
  const flow = seriesWith({ delivered: [null, 12_000], deferred: [5_000, 300], bounced: [0, 20] })
  const flowText = 'Delivered: 12,000; deferred: 5,300; bounced: 20.'
  // A backlog that was not counted from the begin of the range on is that of a shorter time.
  const wholeFlowText = 'Delivered: 12,000; deferred: 5,300; bounced: 20, in the whole range.'
  const sentence = (values: SeriesJson['series'][number]['values'], intervals = 2): string =>
    trendSentence({ flow, backlog: { ...seriesWith(values), to: 60 * intervals, as_of: 60 * intervals } })
  expect(sentence({ incoming: [null, null], active: [], deferred: [null, null], hold: [null, null] })).toBe(flowText)
  const [none, unknown] = [seriesWith({ deferred: [null, null] }), seriesWith({ delivered: [null, null] })]
  expect(trendSentence({ flow: unknown, backlog: none })).toBe('No figures of this time are known.')
  expect(sentence({ deferred: [120, 3_000], hold: [0, 400] })).toBe(
    `The backlog grew from 120 to 3,000 recipients; 400 more are on hold. ${flowText}`,
  )
  expect(sentence({ deferred: [null, 120, 3_000], hold: [null, 0, 400] }, 3)).toBe(
    `In the last 1m, the backlog grew from 120 to 3,000 recipients; 400 more are on hold. ${wholeFlowText}`,
  )
  // That of a longer interval is the largest of its counts, whenever the first one was made.
  const hours = { ...seriesWith({ deferred: [null, 120, 3_000] }), to: 10_800, step: 3_600, known_since: 4_000, as_of: 7_840 }
  expect(trendSentence({ flow, backlog: hours })).toBe(
    `In the last 10m, the backlog grew from at most 120 to 3,000 recipients. ${wholeFlowText}`,
  )
  expect(trendSentence({ flow, backlog: { ...hours, series: seriesWith({ deferred: [null, 3_000, 120] }).series } })).toBe(
    `In the last 1h 3m, the backlog fell from a peak of 3,000 to 120 recipients. ${wholeFlowText}`,
  )
  const oneHour = (...deferred: (number | null)[]): string =>
    trendSentence({ flow, backlog: { ...hours, series: seriesWith({ deferred, hold: [2, 1, null] }).series } })
  expect(oneHour(null, null, 160)).toBe(`At the last count, 160 recipients waited. ${flowText}`)
  expect(oneHour(null, 160, null)).toBe(`At most 160 recipients waited; 1 more was on hold, last counted 10m 40s ago. ${flowText}`)
  expect(oneHour(20, 160, null)).toBe(
    `The backlog grew from at most 20 to 160 recipients; 1 more is on hold, last counted 10m 40s ago. ${flowText}`,
  )
  // One count is no trend.
  expect(sentence({ deferred: [null, 6_825], hold: [null, 1] })).toBe(
    `At the only count so far, 6,825 recipients waited; 1 more was on hold. ${flowText}`,
  )
  expect(sentence({ deferred: [3_000, null, 120] }, 3)).toBe(`The backlog fell from 3,000 to 120 recipients. ${flowText}`)
  expect(sentence({ deferred: [1, 1] })).toBe(`The backlog is about as it was: 1 recipient. ${flowText}`)
  expect(sentence({ deferred: [100, 109] })).toBe(`The backlog is about as it was: 109 recipients. ${flowText}`)
})

test('the rate of an interval that has not ended is that of the time it has lasted', () => {
  const flow = { ...seriesWith({ delivered: [3_600, 900] }), from: 0, to: 7_200, step: 3_600, as_of: 3_600 + 900 }
  const rates = (series: SeriesJson): readonly number[] => ratePoints(series, 'delivered').map(([, rate]) => rate)
  expect(rates(flow)).toEqual([1, 1, 1])
  // That of some minutes is not scaled up to an hour, unless there is no other.
  expect(rates({ ...flow, as_of: 3_600 + 899, series: seriesWith({ delivered: [3_600, 900] }).series })).toEqual([1, 1])
  expect(rates({ ...flow, as_of: 3_601, series: seriesWith({ delivered: [null, 30] }).series })).toEqual([0.5, 0.5])
})

test('the rate of the interval with the first mail is that of the time since then', () => {
  const flow = { ...seriesWith({ delivered: [900, 3_600] }), from: 0, to: 7_200, step: 3_600, as_of: 7_200 }
  expect(ratePoints(flow, 'delivered', 2_700_000).map(([, rate]) => rate)).toEqual([1, 1, 1])
})

test('the time before the first mail is known from the flow', () => {
  const from = (accepted: readonly (number | null)[]): number | null => firstMailOf(seriesWith({ accepted: [...accepted] }))
  expect([from([null, null, 0, 4]), from([0, 4]), from([])]).toEqual([120_000, null, null])
})

test('the destinations whose deferrals changed most', () => {
  const counted = (name: string, deferred: readonly number[]) => seriesWith({ deferred: [...deferred] }, name).series
  const series = [...counted('a', [5, 5]), ...counted('b', [10, 4]), ...counted('c', [0, 40]), ...counted('', [0, 900])]
  expect(changesOf({ ...seriesWith({}), series })).toEqual([
    { name: 'c', before: 0, now: 40, change: 40 },
    { name: 'b', before: 10, now: 4, change: -6 },
  ])
  // A day that has begun before the range is a third interval.
  expect(changesOf({ ...seriesWith({}), series: counted('a', [7, 1, 30]) })).toEqual([{ name: 'a', before: 1, now: 30, change: 29 }])
})
