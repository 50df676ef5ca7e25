import { describe, expect, test } from 'vitest'
import { blockedBy, healthOf, siteReason, stateText } from '../../src/presentation/destination-state.ts'
import { healthJson } from '../../src/resources/destination-json.ts'
import { WallView } from '../../src/system/wall-view.ts'
import type { LiveDestination } from '../../src/queue/scheduler/destination.ts'
import type { DestinationRecord } from '../../src/store/queue-store.ts'
import { liveDestination } from '../support/live-destination.ts'
import { HOUR, MINUTE } from '../../src/system/clock.ts'

const NOTHING = { deadUntil: null, probeInterval: null, suspension: null, siteStatus: null }
const REFUSED = {
  status: '4.3.2',
  reason: 'host mx[192.0.2.1] refused to talk to me: 421 4.3.2 busy',
  reply: '421 4.3.2 busy',
  stage: 'greeting',
} as const

const record = (differs: Partial<DestinationRecord>): DestinationRecord => ({ name: 'far.example', ...NOTHING, ...differs })
const live = (differs: Partial<LiveDestination>): LiveDestination => liveDestination('far.example', differs)

const text = (known: { live?: LiveDestination; record?: DestinationRecord }) =>
  stateText(healthJson({ live: undefined, record: undefined, ...known }, new WallView(() => 0)), 0)

describe('the state of a destination', () => {
  test('without a daemon: from its record', () => {
    expect(text({})).toBe('open')
    expect(text({ record: record({ deadUntil: 5 * MINUTE }) })).toBe('dead, probed in 5m')
    expect(text({ record: record({ suspension: { by: 'root', until: null, reason: null } }) })).toBe('suspended by root')
    const until = 2 * HOUR
    expect(text({ record: record({ suspension: { by: 'root', until, reason: 'why' } }) })).toBe('suspended by root, ends in 2h: why')
    expect(text({ record: record({ suspension: { by: 'root', until: -until, reason: null } }) })).toBe('suspended by root, ended 2h ago')
  })

  test('a dead one without mail, of which no probe is made', () => {
    const shown = healthJson({ live: undefined, record: record({ deadUntil: -MINUTE }) }, new WallView(() => 0))
    expect(stateText({ ...shown, waiting: 0 }, 0)).toBe('dead, no mail waits')
    expect(stateText({ ...shown, waiting: 1 }, 0)).toBe('dead, probe due since 1m')
  })

  test('with a daemon: as the scheduler has it, whatever the record', () => {
    const old = record({ deadUntil: 5 * MINUTE })
    expect(text({ live: live({}), record: old })).toBe('open')
    expect(text({ live: live({ state: 'throttled' }), record: old })).toBe('throttled')
    expect(text({ live: live({ state: 'dead', deadUntil: 10 * MINUTE }), record: old })).toBe('dead, probed in 10m')
  })

  test('a probe that has not begun is due, not made', () => {
    const dead = { state: 'dead', deadUntil: -9 * MINUTE } as const
    expect(text({ live: live(dead) })).toBe('dead, probe due since 9m')
    expect(text({ record: record({ deadUntil: -9 * MINUTE }) })).toBe('dead, probe due since 9m')
    expect(text({ live: live({ ...dead, isProbed: true }) })).toBe('dead, being probed')
    // It is made with mail that is due.
    expect(text({ live: live({ ...dead, nextDueAt: 5 * MINUTE }) })).toBe('dead, probed in 5m')
  })

  test('why no delivery begins', () => {
    const provider = { name: 'big', limit: 3, inFlight: 3, effects: [], suspension: null, isThrottled: false, messageRate: null }
    expect(blockedBy(live({}))).toBeNull()
    expect(blockedBy(live({ inFlight: 5 }))).toBe('5 of at most 5 deliveries are in flight')
    expect(blockedBy(live({ provider }))).toBe('3 of at most 3 deliveries to provider big are in flight')
    expect(blockedBy(live({ state: 'dead', inFlight: 5, provider }))).toBe('3 of at most 3 deliveries to provider big are in flight')
    expect(blockedBy(live({ awaited: ['192.0.2.1', '192.0.2.2'] }))).toBe(
      'no greeting of 192.0.2.1 or 192.0.2.2 yet, to which a fifth of the delivery slots connect',
    )
  })

  test('its reason is the last one known to the scheduler', () => {
    expect(healthOf({ live: live({ siteStatus: REFUSED }), record: undefined }).siteStatus).toBe(REFUSED)
    expect(healthOf({ live: undefined, record: record({ siteStatus: REFUSED }) }).siteStatus).toBe(REFUSED)
  })
})

describe('the reason of a failure of the site', () => {
  test('is the reply of the host itself', () => {
    expect(siteReason(REFUSED)).toBe('421 4.3.2 busy')
  })

  test('is that the host does not answer only where no reply came', () => {
    const reason = 'connect to mx[192.0.2.1]:25: Connection timed out'
    expect(siteReason({ status: '4.4.1', reason, stage: 'connect' })).toBe(`does not answer: ${reason}`)
    const lookup = 'Name service error for name=far.example: no answer in time'
    expect(siteReason({ status: '4.4.3', reason: lookup, stage: 'dns' })).toBe(lookup)
  })
})
