/**
 * Contract of the store: leases.
 */
import { expect, test } from 'vitest'
import { recipientId } from '../../src/mail/message.ts'
import { formatQueueId } from '../../src/mail/queue-id.ts'
import { ANY_MESSAGE } from '../../src/store/message-conditions.ts'
import type { WaitingPlace } from '../../src/store/queue-store.ts'
import { operate } from '../support/operate.ts'
import { BUSY, claim, deferred, delivered, first, LIFETIME, messagesIn, MIN, queue, settleOne, T0, ownerOf, type Subject } from './mail.ts'

export function leases(subject: () => Subject): void {
  test('due mail is leased once, earliest first', async () => {
    const { store } = subject()
    const late = await queue(store, { at: T0 + 2 })
    const early = await queue(store, { at: T0 + 1 })
    const tomorrow = await queue(store, { to: [{ address: 'ann@far.example', dueAt: T0 + 60 * MIN }] })
    await queue(store, { to: [{ address: 'ann@else.example' }] })
    const claimed = await claim(store, T0 + MIN)
    expect(messagesIn(claimed.requests)).toEqual([early, late])
    expect(claimed.nextDueAt).toBe(T0 + 60 * MIN)
    expect((await claim(store, T0 + MIN)).requests).toEqual([])
    expect(messagesIn((await claim(store, T0 + 60 * MIN)).requests)).toEqual([tomorrow])
    expect((await claim(store, T0 + 60 * MIN)).nextDueAt).toBeNull()
  })

  test('a claim is limited, and returns the next due time', async () => {
    const { store } = subject()
    for (let n = 0; n < 5; n++) await queue(store, { at: T0 + n })
    const { requests, nextDueAt } = await claim(store, T0 + MIN, { limit: 3 })
    expect(requests).toHaveLength(3)
    expect(nextDueAt).toBe(T0 + 3)
  })

  test('classes have numbers of their own, and a claim asks for the mail of each up to its own limit', async () => {
    const { store } = subject()
    const { classBands } = store.records
    // A queue in PostgreSQL has the classes of other tests too.
    const [fast, bulk] = [
      { name: 'express', band: 11 },
      { name: 'slow', band: 12 },
    ]
    for (const one of [fast, bulk]) expect(await classBands.add(one)).toBe(true)
    expect(await classBands.add({ name: 'express', band: 13 })).toBe(false)
    expect(await classBands.add({ name: 'other', band: 12 })).toBe(false)
    expect(await classBands.all()).toEqual(expect.arrayContaining([fast, bulk]))
    const many = []
    for (let n = 0; n < 3; n++) many.push(await queue(store, { at: T0 + n, ofClass: bulk }))
    const urgent = await queue(store, { at: T0 + 5, ofClass: fast })
    const plain = await queue(store, { at: T0 + 6 })
    const bands = [
      { band: 11, limit: 9 },
      { band: 12, limit: 2 },
    ]
    const { requests, next } = await store.claimDue({ destination: 'far.example', now: T0 + MIN, bands, recipientLimit: 0 })
    expect(messagesIn(requests).toSorted((a, b) => a - b)).toEqual([...many.slice(0, 2), urgent])
    expect(next).toEqual([{ band: 12, dueAt: T0 + 2 }])
    expect(await store.destinationsDue()).toEqual([{ destination: 'far.example', dueAt: T0 + 2 }])
    expect(messagesIn((await claim(store, T0 + MIN)).requests)).toEqual([plain])
  })

  test('what waits for a destination is read in slices with its shares, the earliest due first', async () => {
    const { store } = subject()
    const ids = []
    for (const [share, at] of [
      ['news', 2],
      ['shop', 1],
      [undefined, 3],
    ] as const)
      ids.push(await queue(store, { at: T0 + at, ...(share === undefined ? {} : { share }) }))
    const [news = 0, shop = 0, plain = 0] = ids
    const later = await queue(store, { to: [{ address: 'ann@far.example', dueAt: T0 + 60 * MIN }], share: 'shop' })
    await queue(store, { to: [{ address: 'ann@else.example' }], share: 'shop' })
    await queue(store, { hold: true, share: 'shop' })
    const of = async (after: WaitingPlace, limit: number) =>
      (await store.waitingAt({ destination: 'far.example', band: 0, after, limit })).map(({ id, dueAt, share }) => [id, dueAt - T0, share])
    const begin = { dueAt: 0, id: 0 }
    expect(await of(begin, 2)).toEqual([
      [first(shop), 1, 'shop'],
      [first(news), 2, 'news'],
    ])
    expect(await of({ dueAt: T0 + 2, id: first(news) }, 9)).toEqual([
      [first(plain), 3, null],
      [first(later), 60 * MIN, 'shop'],
    ])
    expect(await of({ dueAt: T0 + 2, id: first(news) - 1 }, 1)).toEqual([[first(news), 2, 'news']])
    await claim(store, T0 + MIN, { limit: 1 })
    expect((await of(begin, 9)).map(([id]) => id)).toEqual([news, plain, later].map(first))
    expect(await store.waitingAt({ destination: 'far.example', band: 7, after: begin, limit: 9 })).toEqual([])
  })

  test('a claim of named recipients leases those that wait there and are due, and no others', async () => {
    const { store } = subject()
    const ids = []
    for (let n = 0; n < 5; n++) ids.push(await queue(store, { at: T0 + n }))
    const [a = 0, b = 0, c = 0, d = 0] = ids
    const later = await queue(store, { to: [{ address: 'ann@far.example', dueAt: T0 + 60 * MIN }] })
    const elsewhere = await queue(store, { to: [{ address: 'ann@else.example' }] })
    const held = await queue(store, { hold: true })
    const recipients = [d, b, later, elsewhere, held, 999_999].map(first)
    const { requests } = await claim(store, T0 + MIN, { recipients, limit: recipients.length })
    expect(messagesIn(requests).toSorted((x, y) => x - y)).toEqual([b, d])
    expect((await claim(store, T0 + MIN, { recipients: [first(b)], limit: 1 })).requests).toEqual([])
    expect((await claim(store, T0 + MIN, { recipients: [first(a)], limit: 1, band: 7 })).requests).toEqual([])
    await store.giveBack([first(b)], ownerOf(store))
    const again = await claim(store, T0 + MIN, { recipients: [first(b), first(c)], limit: 2 })
    expect(messagesIn(again.requests).toSorted((x, y) => x - y)).toEqual([b, c])
  })

  test('one claim has bands with names and bands without', async () => {
    const { store } = subject()
    const slow = { name: 'listed', band: 21 }
    await store.records.classBands.add(slow)
    const plain = []
    for (let n = 0; n < 3; n++) plain.push(await queue(store, { at: T0 + n }))
    const [, second = 0] = plain
    const others = [await queue(store, { at: T0, ofClass: slow }), await queue(store, { at: T0 + 1, ofClass: slow })]
    const bands = [
      { band: 0, limit: 1, recipients: [first(second)] },
      { band: 21, limit: 1 },
    ]
    const { requests, next } = await store.claimDue({ destination: 'far.example', now: T0 + MIN, bands, recipientLimit: 50 })
    expect(messagesIn(requests).toSorted((a, b) => a - b)).toEqual([second, others[0]].toSorted((a = 0, b = 0) => a - b))
    expect(next).toEqual([{ band: 21, dueAt: T0 + 1 }])
  })

  test('a requeued message, one that failed and one that was given back stay in the band of their class', async () => {
    const { store, reader } = subject()
    // A queue in PostgreSQL has the classes of the tests before.
    const late = { name: 'late', band: 4 }
    await store.records.classBands.add(late)
    const id = await queue(store, { leased: true, ofClass: late })
    await settleOne(store, id, deferred(first(id), T0 + MIN))
    expect((await claim(store, T0 + MIN)).requests).toEqual([])
    const [request] = (await claim(store, T0 + MIN, { band: 4 })).requests
    expect(request?.message.class).toBe('late')
    await store.giveBack(request?.recipients.map((one) => one.id) ?? [], ownerOf(store))
    const newId = store.nextId()
    const { woken } = await operate(store, id, { kind: 'requeue', now: T0 + MIN, newId, expiresAt: T0 + LIFETIME })
    expect(woken).toEqual([{ destination: 'far.example', dueAt: T0 + MIN }])
    expect(messagesIn((await claim(store, T0 + MIN, { band: 4 })).requests)).toEqual([newId])
    expect((await reader.find({ ...ANY_MESSAGE, class: 'late' }, { after: 0, limit: 9 })).map((one) => one.id)).toEqual([newId])
    expect(await reader.find({ ...ANY_MESSAGE, class: 'fast' }, { after: 0, limit: 9 })).toEqual([])
  })

  test('recipients of one message are claimed together, up to the recipient limit', async () => {
    const { store } = subject()
    const to = ['ann', 'bob', 'eve'].map((name) => ({ address: `${name}@far.example` }))
    const id = await queue(store, { to: [...to, { address: 'zoe@else.example' }] })
    const { requests } = await claim(store, T0, { recipientLimit: 2 })
    expect(requests.map((request) => request.recipients.map((one) => one.address))).toEqual([
      ['ann@far.example', 'bob@far.example'],
      ['eve@far.example'],
    ])
    expect(requests[0]).toMatchObject({ message: { id }, destination: 'far.example', fresh: true, forcedExpire: false })
  })

  test('a lease has the recipient’s steps and attempts', async () => {
    const { store } = subject()
    const id = await queue(store, { leased: true, to: [{ address: 'ann@far.example', notify: ['failure'], orcpt: 'rfc822;a@b' }] })
    await settleOne(store, id, deferred(first(id), T0 + 5 * MIN, { steps: 3, attempts: 4 }))
    const { requests } = await claim(store, T0 + 5 * MIN)
    expect(requests[0]?.fresh).toBe(false)
    expect(requests[0]?.recipients).toEqual([
      {
        id: first(id),
        address: 'ann@far.example',
        notify: ['failure'],
        orcpt: 'rfc822;a@b',
        dueAt: T0 + 5 * MIN,
        expiresAt: T0 + LIFETIME,
        steps: 3,
        attempts: 4,
        last: BUSY,
        warnings: 0,
        flushed: false,
      },
    ])
  })

  test('released mail keeps its due time, steps and attempts', async () => {
    const { store } = subject()
    const id = await queue(store)
    const before = await claim(store, T0)
    await store.giveBack([first(id), recipientId(id, 7), recipientId(999, 0)], ownerOf(store))
    const again = await claim(store, T0)
    expect(again).toEqual(before)
    await store.giveBack([first(id)], ownerOf(store))
    await store.giveBack([first(id)], ownerOf(store))
    expect(await store.destinationsDue()).toEqual([{ destination: 'far.example', dueAt: T0 }])
  })

  test('a lease names its owner, who alone settles it or gives it back', async () => {
    const { store, reader } = subject()
    const terms = store.leaseTerms()
    const id = await queue(store, { leased: true })
    const another = terms.owner + 1
    const settlement = { message: id, recipients: [delivered(first(id), T0)], attempts: [] }
    expect(await store.settle({ ...settlement, owner: another })).toEqual({ removed: false, noticeDue: false })
    await store.giveBack([first(id)], another)
    expect((await reader.details(formatQueueId(T0, id)))?.recipients).toMatchObject([{ state: 'leased' }])
    await store.giveBack([first(id)], terms.owner)
    const { requests } = await claim(store, T0)
    expect(requests).toMatchObject([{ lease: terms }])
    expect(terms.until).toBeGreaterThan(T0)
    expect((await store.settle({ ...settlement, owner: terms.owner })).removed).toBe(true)
    await queue(store)
    expect(await store.claimExpired(T0 + LIFETIME, 10)).toMatchObject([{ lease: terms }])
  })

  test('expired mail is leased at any destination', async () => {
    const { store } = subject()
    const old = await queue(store, { to: [{ address: 'ann@far.example', dueAt: T0 + LIFETIME }] })
    const older = await queue(store, { to: [{ address: 'ann@else.example', expiresAt: T0 + MIN }] })
    await queue(store, { hold: true, to: [{ address: 'ann@far.example', expiresAt: T0 + MIN }] })
    expect(await store.nextDeadlines()).toEqual({ expiresAt: T0 + MIN, warnAt: null })
    expect(await store.claimExpired(T0 + MIN - 1, 10)).toEqual([])
    expect(messagesIn(await store.claimExpired(T0 + LIFETIME, 1))).toEqual([older])
    expect(messagesIn(await store.claimExpired(T0 + LIFETIME, 10))).toEqual([old])
    expect(await store.claimExpired(T0 + LIFETIME, 10)).toEqual([])
    expect(await store.nextDeadlines()).toEqual({ expiresAt: null, warnAt: null })
  })

  test('expired mail is skipped at excluded destinations', async () => {
    const { store } = subject()
    const [far, near] = [await queue(store), await queue(store, { to: [{ address: 'ann@near.example' }] })]
    expect(messagesIn(await store.claimExpired(T0 + LIFETIME, 10, ['far.example']))).toEqual([near])
    expect(messagesIn(await store.claimExpired(T0 + LIFETIME, 10))).toEqual([far])
  })

  test('each destination with waiting mail is listed with its earliest due time', async () => {
    const { store } = subject()
    await queue(store, { at: T0 + 9, to: [{ address: 'ann@b.example' }, { address: 'bob@a.example' }] })
    await queue(store, { at: T0 + 3, to: [{ address: 'ann@b.example' }] })
    await queue(store, { at: T0 + 1, leased: true, to: [{ address: 'ann@c.example' }] })
    await queue(store, { at: T0 + 1, hold: true, to: [{ address: 'ann@d.example' }] })
    expect(await store.destinationsDue()).toEqual([
      { destination: 'a.example', dueAt: T0 + 9 },
      { destination: 'b.example', dueAt: T0 + 3 },
    ])
  })
}
