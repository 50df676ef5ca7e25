/** Contract of the store: the suppression list, which all nodes share. */
import { expect, test } from 'vitest'
import { FIRST_KEY, type NewSuppression, type SuppressionPage } from '../../src/store/records/suppression-entry.ts'
import { DAY } from '../../src/system/clock.ts'
import { MIN, T0, type Subject } from './mail.ts'

const entry = (address: string, more: Partial<NewSuppression> = {}): NewSuppression => ({
  scope: 'us.example',
  address,
  reason: 'bounce',
  reply: '550 5.1.1 no such "user"',
  destination: 'far.example',
  since: T0,
  until: T0 + DAY,
  hits: 2,
  firstHitAt: T0 - DAY,
  lastHitAt: T0,
  addedBy: 'deferd',
  listings: 1,
  strikes: [],
  ...more,
})
const counting = (address: string, more: Partial<NewSuppression> = {}) =>
  entry(address, { reason: null, since: null, listings: 0, strikes: [T0], ...more })
const manual = (address: string, more: Partial<NewSuppression> = {}) =>
  entry(address, {
    reason: 'manual',
    reply: null,
    destination: null,
    until: null,
    hits: 0,
    firstHitAt: null,
    lastHitAt: null,
    listings: 0,
    ...more,
  })

const ANY = { scope: null, address: null, reason: null, destination: null, since: null, now: T0, after: FIRST_KEY, limit: 10 }
const START = { seq: 0, ...FIRST_KEY }

export function suppressionList(subject: () => Subject): void {
  const list = () => subject().store.records.suppressions
  const addresses = async (page: Partial<SuppressionPage> = {}) =>
    (await subject().reader.records.suppressions.page({ ...ANY, ...page })).map(({ scope, address }) => `${scope} ${address}`)

  test('an entry is saved only over the one that was read', async () => {
    expect(await list().put(counting('bob@far.example'), 0)).toBe(true)
    expect(await list().put(entry('bob@far.example'), 0)).toBe(false)
    const { seq = 0, ...saved } = (await list().of('us.example', 'bob@far.example')) ?? {}
    expect(saved).toEqual(counting('bob@far.example'))
    expect(await list().put(entry('bob@far.example'), seq)).toBe(true)
    expect(await list().put(entry('bob@far.example', { hits: 9 }), seq)).toBe(false)
    expect(await list().of('us.example', 'bob@far.example')).toMatchObject(entry('bob@far.example'))
    expect(await list().of('us.example', 'ann@far.example')).toBeUndefined()
  })

  test('an entry that was removed since it was read is neither saved nor removed again', async () => {
    await list().putAll([manual('bob@far.example')])
    const read = await list().of('us.example', 'bob@far.example')
    if (read === undefined) throw new Error('the entry is missing')
    await list().putAll([manual('bob@far.example', { reason: 'complaint' })])
    expect(await list().removeUnchanged(read)).toBe(false)
    const changed = await list().of('us.example', 'bob@far.example')
    expect(changed).toMatchObject({ reason: 'complaint' })
    expect(await list().removeUnchanged(changed ?? read)).toBe(true)
    expect(await list().put(manual('bob@far.example'), changed?.seq ?? 0)).toBe(false)
    expect(await list().of('us.example', 'bob@far.example')).toBeUndefined()
  })

  test('changes come in order, and none is passed over', async () => {
    await list().put(entry('b@far.example'), 0)
    await list().putAll([manual('d@far.example'), manual('a@far.example', { scope: '*' }), manual('c@far.example')])
    const all = await list().changes(START, 10)
    expect(all.map(({ address }) => address)).toEqual(['b@far.example', 'a@far.example', 'c@far.example', 'd@far.example'])
    const second = await list().changes(all[1] ?? START, 1)
    expect(second).toEqual([all[2]])
    await list().putAll([manual('b@far.example')])
    expect((await list().changes(all.at(-1) ?? START, 10)).map(({ address }) => address)).toEqual(['b@far.example'])
    expect(await list().of('us.example', 'b@far.example')).toMatchObject(manual('b@far.example'))
  })

  test('a recipient has the entries of its address and domain, for its sender and for all', async () => {
    await list().putAll([
      manual('bob@far.example'),
      manual('bob@far.example', { scope: '*' }),
      manual('@far.example', { scope: '*' }),
      manual('ann@far.example'),
      manual('bob@far.example', { scope: 'other.example' }),
    ])
    const found = await list().matching({ scope: 'us.example', address: 'bob@far.example' }, '@far.example')
    expect(found.map(({ scope, address }) => `${scope} ${address}`).toSorted()).toEqual([
      '* @far.example',
      '* bob@far.example',
      'us.example bob@far.example',
    ])
    expect((await subject().reader.records.suppressions.ofAddress('bob@far.example')).map(({ scope }) => scope)).toEqual([
      '*',
      'other.example',
      'us.example',
    ])
  })

  test('pages have the entries that have not ended and meet all conditions', async () => {
    await list().putAll([
      manual('z@far.example', { scope: '*' }),
      entry('a@far.example'),
      entry('b@far.example', { since: T0 - MIN, destination: 'near.example' }),
      entry('c@far.example', { until: T0 }),
      counting('d@far.example'),
    ])
    expect(await addresses()).toEqual(['* z@far.example', 'us.example a@far.example', 'us.example b@far.example'])
    expect(await addresses({ limit: 1, after: { scope: '*', address: 'z@far.example' } })).toEqual(['us.example a@far.example'])
    expect(await addresses({ reason: 'manual' })).toEqual(['* z@far.example'])
    expect(await addresses({ destination: 'near.example' })).toEqual(['us.example b@far.example'])
    expect(await addresses({ scope: 'us.example', since: T0 })).toEqual(['us.example a@far.example'])
    expect(await addresses({ address: 'b@far.example' })).toEqual(['us.example b@far.example'])
    await list().removeAll([
      { scope: '*', address: 'z@far.example' },
      { scope: 'us.example', address: 'a@far.example' },
      { scope: 'us.example', address: 'nobody@far.example' },
    ])
    expect(await addresses()).toEqual(['us.example b@far.example'])
  })

  test('what a destination caused within a time is void, not what operators added', async () => {
    await list().putAll([
      entry('listed@far.example', { since: T0, lastHitAt: T0 }),
      counting('counted@far.example'),
      entry('before@far.example', { since: T0 - MIN, lastHitAt: T0 }),
      manual('manual@far.example', { destination: 'far.example', lastHitAt: T0 }),
      counting('other@near.example', { destination: 'near.example' }),
    ])
    expect(await list().listedSince('us.example', T0 - MIN)).toBe(1)
    expect(await list().listedSince('us.example', T0 - 2 * MIN)).toBe(2)
    await list().voidSince({ destination: 'far.example', since: T0 - MIN })
    const left = await list().changes(START, 10)
    expect(left.map(({ address }) => address)).toEqual(['before@far.example', 'manual@far.example', 'other@near.example'])
  })

  test('refusals that count no more are deleted, and an ended listing a year later', async () => {
    const end = T0 + DAY
    await list().putAll([counting('a@far.example'), entry('b@far.example'), manual('c@far.example')])
    await list().prune({ now: end })
    expect(await list().changes(START, 10)).toHaveLength(3)
    await list().prune({ now: end + 1 })
    expect((await list().changes(START, 10)).map(({ address }) => address)).toEqual(['b@far.example', 'c@far.example'])
    await list().prune({ now: end + 365 * DAY + 1 })
    expect((await list().changes(START, 10)).map(({ address }) => address)).toEqual(['c@far.example'])
  })

  test('the listings of a scope are stopped once, until they are resumed', async () => {
    const { suppressionStops: stops } = subject().store.records
    expect(await stops.stop({ scope: 'us.example', at: T0 })).toBe(true)
    expect(await stops.stop({ scope: 'us.example', at: T0 + 1 })).toBe(false)
    expect(await subject().reader.records.suppressionStops.all()).toEqual([{ scope: 'us.example', at: T0 }])
    expect(await stops.resume('us.example')).toBe(true)
    expect(await stops.resume('us.example')).toBe(false)
  })
}
