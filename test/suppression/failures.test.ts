import { expect, test } from 'vitest'
import type { Suppression } from '../../src/store/records/suppression-entry.ts'
import { afterFailure, isAboutRecipient, isRefuted, keyOf, termOf } from '../../src/suppression/failures.ts'
import { DAY, HOUR } from '../../src/system/clock.ts'

const T0 = 1_767_225_600_000
const TERMS = { limit: 2, interval: 12 * HOUR, window: 14 * DAY }

/** The entry after failures at these times, with the kinds of changes. */
function story(times: readonly number[], begin?: Suppression) {
  let known = begin
  const kinds = times.map((at) => {
    const verdict = afterFailure(
      known,
      { scope: 'us.example', address: 'bob@far.example', destination: 'far.example', at: T0 + at, reply: '550 5.1.1 no' },
      TERMS,
    )
    if (verdict.kind !== 'none') known = { ...verdict.entry, seq: 1 }
    return verdict.kind
  })
  return { kinds, entry: known }
}

test('two failures 13 hours apart list an address, 1 hour apart they do not', () => {
  expect(story([0, 13 * HOUR])).toMatchObject({
    kinds: ['counted', 'listed'],
    entry: { reason: 'bounce', since: T0 + 13 * HOUR, until: T0 + 13 * HOUR + 30 * DAY, hits: 2, firstHitAt: T0, listings: 1 },
  })
  expect(story([0, HOUR]).kinds).toEqual(['counted', 'none'])
  expect(story([0, HOUR, 11 * HOUR, 12 * HOUR]).kinds).toEqual(['counted', 'none', 'none', 'listed'])
  expect(story([0, 14 * DAY]).kinds).toEqual(['counted', 'counted'])
})

test('failures of mail that was accepted before are counted, and change no end', () => {
  const { kinds, entry } = story([0, 13 * HOUR, 14 * HOUR])
  expect(kinds).toEqual(['counted', 'listed', 'counted'])
  expect(entry).toMatchObject({ hits: 3, until: T0 + 13 * HOUR + 30 * DAY, strikes: [] })
})

test('they change neither text nor destination of an entry that an operator added', () => {
  const { entry: former } = story([0, 13 * HOUR])
  if (former === undefined) throw new Error('there is no entry')
  const added = { ...former, reason: 'complaint', reply: 'asked by telephone', destination: null, until: null } as const
  expect(story([14 * HOUR], added)).toEqual({
    kinds: ['counted'],
    entry: { ...added, hits: 3, lastHitAt: T0 + 14 * HOUR },
  })
})

test('each listing is twice as long as the one before, up to a year', () => {
  const first = story([0, DAY]).entry
  const second = story([32 * DAY, 33 * DAY], first)
  expect(second).toMatchObject({ kinds: ['counted', 'listed'], entry: { listings: 2, until: T0 + 33 * DAY + 60 * DAY } })
  expect([1, 2, 3, 4, 5, 9].map((n) => termOf(n) / DAY)).toEqual([30, 60, 120, 240, 365, 365])
})

test('only replies at RCPT about the address itself count', () => {
  const status = { status: '5.1.1', reason: 'said', reply: '550 5.1.1 no such user', stage: 'rcpt' } as const
  const about = (one: string, more = {}) => isAboutRecipient({ ...status, status: one, reply: `550 ${one} text`, ...more })
  expect(['5.1.1', '5.1.3', '5.1.6', '5.2.1', '5.7.13', '5.7.17'].filter((one) => !about(one))).toEqual([])
  expect(['5.7.1', '5.0.0', '5.1.2', '5.1.10', '5.2.2', '5.7.26', '5.4.1', '5.3.4'].filter((one) => about(one))).toEqual([])
  expect(about('5.1.1', { stage: 'mail' })).toBe(false)
  expect(about('5.1.1', { stage: 'end-of-data' })).toBe(false)
  expect(about('5.1.1', { reply: undefined })).toBe(false)
})

test('notices and mail to a postmaster have no key; folding is not done', () => {
  expect(keyOf('', 'bob@far.example')).toBeNull()
  expect(keyOf('app@us.example', 'Postmaster@far.example')).toBeNull()
  expect(keyOf('app@US.example', 'Bob+x@far.example')).toEqual({ scope: 'us.example', address: 'Bob+x@far.example' })
})

test('a delivery refutes failures only', () => {
  expect(['bounce', null].every((reason) => isRefuted({ reason: reason as 'bounce' | null }))).toBe(true)
  expect((['manual', 'complaint', 'import', 'unsubscribe'] as const).some((reason) => isRefuted({ reason }))).toBe(false)
})
