/** Contract of the store: events, subscriptions and their positions. */
import { expect, test } from 'vitest'
import { ANY_EVENT } from '../../src/events/event-filter.ts'
import type { EventType } from '../../src/events/event-types.ts'
import type { NewEvent, RecipientEvent } from '../../src/events/kept-event.ts'
import { formatQueueId } from '../../src/mail/queue-id.ts'
import { recipientId, type MessageId } from '../../src/mail/message.ts'
import { newProgress, type Progress, type ProgressChange, type SubscriptionSettings } from '../../src/store/outbox/subscription.ts'
import type { DestinationRecord } from '../../src/store/queue-store.ts'
import { attempt, bounced, claim, deferred, delivered, first, mail, MIN, ownerOf, queue, T0, type Subject } from './mail.ts'

export const SETTINGS: SubscriptionSettings = {
  ...ANY_EVENT,
  to: 'https://hooks.example/',
  format: 'deferd',
  batch: 1,
  allowPrivate: false,
  size: 0,
  keep: 0,
  secrets: [],
}

export const event = (type: EventType, values: readonly unknown[] = [], at = T0): NewEvent => ({ type, at, data: JSON.stringify(values) })
export const about = (recipient: number, type: EventType, at = T0): RecipientEvent => ({ ...event(type, [recipient], at), recipient })

const NO_LIMIT = { before: 0, count: 1_000_000 }
const progressed = (cursor: number, more: Partial<Progress> = {}): ProgressChange => ({
  progress: { ...newProgress(cursor), ...more },
  told: null,
  parked: [],
})

export function outbox(subject: () => Subject): void {
  const subscribe = (name = 'app', settings: Partial<SubscriptionSettings> = {}) =>
    subject().store.outbox.subscribe({ name, settings: { ...SETTINGS, ...settings }, at: T0, by: 'root' })
  const numbered = async () => {
    while (await subject().store.outbox.numberEvents());
  }
  const pull = async (name = 'app', limit = 100) => {
    await numbered()
    const pulled = await subject().store.outbox.pullEvents(name, limit)
    if (pulled === null) throw new Error(`there is no subscription ${name}`)
    return pulled
  }
  const types = async (name = 'app') => (await pull(name)).events.map(({ type }) => type)
  const record = (...kinds: readonly EventType[]) => subject().store.outbox.recordEvents(kinds.map((type, n) => event(type, [n], T0 + n)))
  const settle = (
    message: MessageId,
    recipients: Parameters<Subject['store']['settle']>[0]['recipients'],
    events: readonly RecipientEvent[],
  ) =>
    subject().store.settle({
      owner: ownerOf(subject().store),
      message,
      recipients,
      attempts: recipients.map(({ recipient }) => attempt(recipient, T0)),
      events,
    })

  test('nothing is kept without a subscription', async () => {
    const { store, reader } = subject()
    await store.enqueue({ ...mail(store), events: [event('message.accepted')] })
    await record('store.trouble')
    await numbered()
    expect(await store.outbox.wantedTypes()).toEqual([])
    expect(await reader.eventsAfter({ after: 0, limit: 10, filter: ANY_EVENT })).toMatchObject({
      first: 1,
      last: 0,
      events: [],
      through: 0,
    })
  })

  test('the events of a message are kept with what happened to it, in order and without gaps', async () => {
    const { store, reader } = subject()
    await subscribe()
    const entry = { ...mail(store, { leased: true }), events: [event('message.accepted', [1])] }
    await store.enqueue(entry)
    const { id } = entry.message
    await settle(id, [deferred(first(id), T0 + MIN)], [about(first(id), 'recipient.deferred', T0 + 1)])
    await claim(store, T0 + MIN)
    await settle(id, [delivered(first(id), T0 + MIN)], [about(first(id), 'recipient.delivered', T0 + MIN)])
    const { events, epoch, cursor, lost, through, more } = await pull()
    expect(events.map(({ seq, at, type, data }) => [seq, at, type, JSON.parse(data)])).toEqual([
      [1, T0, 'message.accepted', [1]],
      [2, T0 + 1, 'recipient.deferred', [first(id)]],
      [3, T0 + MIN, 'recipient.delivered', [first(id)]],
      [4, T0 + MIN, 'message.removed', [formatQueueId(T0, id), 'app@us.example']],
    ])
    expect({ cursor, lost, through, more }).toEqual({ cursor: 0, lost: null, through: 4, more: false })
    const page = await reader.eventsAfter({ after: 2, limit: 10, filter: ANY_EVENT })
    expect(page).toEqual({ epoch, first: 1, last: 4, events: events.slice(2), through: 4 })
  })

  test('a settlement that is not applied has no events', async () => {
    const { store } = subject()
    await subscribe()
    const id = await queue(store, { leased: true, to: [{ address: 'ann@far.example' }, { address: 'bob@far.example' }] })
    const [ann, bob] = [recipientId(id, 0), recipientId(id, 1)]
    const events = [about(ann, 'recipient.deferred'), about(bob, 'recipient.bounced')]
    await settle(id, [deferred(ann, T0 + MIN)], events)
    await settle(id, [deferred(ann, T0 + MIN)], events)
    await store.settle({ owner: ownerOf(store) + 1, message: id, recipients: [bounced(bob, T0)], attempts: [], events })
    expect((await pull()).events.map(({ type, data }) => [type, JSON.parse(data)])).toEqual([['recipient.deferred', [ann]]])
  })

  test('a call that fails has no events, and leaves those of the calls beside it', async () => {
    const { store } = subject()
    await subscribe()
    const queued = (n: number, more: object = {}) => store.enqueue({ ...mail(store), events: [event('message.accepted', [n])], ...more })
    const calls = [queued(1), store.outbox.pullEvents('app', 1), queued(2), queued(3, { recipients: [] }), queued(4)]
    const settled = await Promise.allSettled(calls)
    expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'fulfilled', 'rejected', 'fulfilled'])
    expect((await pull()).events.map(({ seq, data }) => [seq, JSON.parse(data)])).toEqual([
      [1, [1]],
      [2, [2]],
      [3, [4]],
    ])
  })

  test('many events of one transaction are read, sent again, deleted and counted one by one', async () => {
    const { store, reader } = subject()
    await subscribe()
    await store.outbox.recordEvents(Array.from({ length: 250 }, (_, n) => event('store.trouble', [n + 1], T0 + n + 1)))
    const texts = (events: readonly { readonly seq: number; readonly at: number; readonly data: string }[]) =>
      events.map(({ seq, at, data }) => `${seq} ${at - T0} ${data}`)
    const expected = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, n) => `${from + n} ${from + n} [${from + n}]`)
    const whole = await pull('app', 1_000)
    expect([texts(whole.events), whole.through, whole.more]).toEqual([expected(1, 250), 250, false])
    const parked = [150, 151].map((seq) => ({ seq, tries: 6, at: T0, answer: '400' }))
    await store.outbox.saveProgress('app', 0, { ...progressed(160), parked })
    expect(await pull('app', 60)).toMatchObject({ cursor: 160, through: 220, more: true })
    await store.outbox.pruneEvents({ before: T0 + 151, count: 1_000 })
    expect((await reader.parkedEvents('app', { after: 0, limit: 10 })).map(({ event: { seq, data } }) => [seq, data])).toEqual([
      [151, '[151]'],
    ])
    const page = await reader.eventsAfter({ after: 0, limit: 60, filter: ANY_EVENT })
    expect([page.first, page.last, page.through, texts(page.events)]).toEqual([151, 250, 210, expected(151, 210)])
    expect(await store.outbox.replayEvents('app', { kind: 'since', at: T0 + 201 })).toBe(90)
    expect(await store.outbox.replayEvents('app', { kind: 'since', at: T0 + 151 })).toBe(100)
    expect(await pull()).toMatchObject({ cursor: 150, lost: { from: 150, to: 150, count: 1 }, events: { length: 100 } })
  })

  test('notices, operations and destinations have events of their transactions', async () => {
    const { store } = subject()
    await subscribe()
    const id = await queue(store, { leased: true })
    await settle(id, [bounced(first(id), T0)], [about(first(id), 'recipient.bounced')])
    const notice = { ...mail(store, { sender: '', at: T0 + 1 }), events: [event('message.accepted', [], T0 + 1)] }
    const report = {
      message: id,
      noticesSettled: [{ recipient: first(id), noticeDue: 'failure' as const }],
      late: [],
      notices: [notice],
      warnings: 0,
      warnAt: null,
      events: [event('notice.sent', [], T0 + 1)],
    }
    expect((await store.report(report)).entered).toBe(true)
    expect((await store.report(report)).entered).toBe(false)
    const { id: other } = notice.message
    const operated = [event('message.operated')]
    expect(await store.operate([{ message: other, operation: { kind: 'hold' }, events: operated }])).toMatchObject([{ changed: true }])
    expect(await store.operate([{ message: other, operation: { kind: 'hold' }, events: operated }])).toMatchObject([{ changed: false }])
    const dead: DestinationRecord = { name: 'far.example', deadUntil: T0 + MIN, probeInterval: MIN, suspension: null, siteStatus: null }
    await store.saveDestination(dead, [event('destination.died')])
    await store.saveDestination(dead)
    const kept = await types()
    expect(kept.toSorted()).toEqual(
      ['recipient.bounced', 'message.accepted', 'notice.sent', 'message.removed', 'message.operated', 'destination.died'].toSorted(),
    )
    expect(kept.indexOf('notice.sent')).toBeLessThan(kept.indexOf('message.removed'))
  })

  test('a message that is requeued, deleted or quarantined has events of the store', async () => {
    const { store } = subject()
    await subscribe()
    const [old, deleted, unreadable] = [await queue(store), await queue(store), await queue(store)]
    const requeue = { kind: 'requeue' as const, now: T0 + 1, newId: store.nextId(), expiresAt: T0 + MIN }
    await store.operate([{ message: old, operation: requeue, events: [event('message.accepted', [], T0 + 1)] }])
    await store.operate([{ message: deleted, operation: { kind: 'delete', now: T0 + 2, purge: true } }])
    await store.quarantine(unreadable, 'it is damaged')
    await store.quarantine(unreadable, 'it is damaged')
    const { events } = await pull()
    const found = events.map(({ type, data }) => [type, (JSON.parse(data) as readonly unknown[])[0]])
    expect(found.filter(([type]) => type === 'message.removed')).toEqual([
      ['message.removed', formatQueueId(T0, old)],
      ['message.removed', formatQueueId(T0, deleted)],
    ])
    expect(found).toHaveLength(4)
    expect(events.map(({ data }) => JSON.parse(data) as unknown)).toContainEqual([
      formatQueueId(T0, unreadable),
      'app@us.example',
      'it is damaged',
    ])
  })

  test('a call that fails keeps no event', async () => {
    const { store } = subject()
    await subscribe()
    const entry = { ...mail(store), events: [event('message.accepted')] }
    await store.enqueue(entry)
    await expect(Promise.all([store.enqueue(entry), record('store.trouble')])).rejects.toThrow()
    await record('store.recovered')
    const kept = await types()
    expect(kept.filter((type) => type === 'message.accepted')).toHaveLength(1)
    expect(kept.at(-1)).toBe('store.recovered')
  })

  test('only types that somebody wants are kept', async () => {
    const { store } = subject()
    await subscribe('app', { types: ['recipient.*'] })
    expect(await subscribe('app')).toBe(false)
    expect(await store.outbox.wantedTypes()).toEqual([
      'recipient.delivered',
      'recipient.deferred',
      'recipient.bounced',
      'recipient.expired',
      'recipient.suppressed',
    ])
    await record('recipient.bounced', 'notice.sent')
    await subscribe('second', { types: ['notice.sent'] })
    await record('notice.sent', 'recipient.expired', 'store.trouble')
    expect(await types()).toEqual(['recipient.bounced', 'recipient.expired'])
    expect(await types('second')).toEqual(['notice.sent'])
    expect(await store.outbox.unsubscribe('app')).toBe(true)
    expect(await store.outbox.unsubscribe('app')).toBe(false)
    expect(await store.outbox.pullEvents('app', 1)).toBeNull()
    expect(await store.outbox.wantedTypes()).toEqual(['notice.sent'])
    await record('recipient.bounced', 'notice.sent')
    expect(await types('second')).toEqual(['notice.sent', 'notice.sent'])
  })

  test('filters select by destination and sender', async () => {
    const { store } = subject()
    await subscribe('app', { destinations: ['*.example'], senders: ['app@*'] })
    await store.outbox.recordEvents([
      event('recipient.bounced', ['Q1', 'APP@us.example', 'ann@far.example', 'far.example']),
      event('recipient.bounced', ['Q2', 'other@us.example', 'ann@far.example', 'far.example']),
      event('recipient.bounced', ['Q3', 'app@us.example', 'ann@far.test', 'far.test']),
      event('destination.died', ['far.example']),
    ])
    const { events, through } = await pull()
    expect([events.map(({ seq }) => seq), through]).toEqual([[1], 4])
  })

  test('the position of a subscription moves by its own calls only', async () => {
    const { store, reader } = subject()
    await subscribe()
    await record('store.trouble', 'store.recovered', 'store.trouble')
    expect(await pull('app', 2)).toMatchObject({ cursor: 0, through: 2, more: true })
    const lastAnswer = { at: T0, ok: true, text: '200 OK' }
    expect(await store.outbox.saveProgress('app', 0, progressed(2, { lastAnswer }))).toBe(true)
    expect(await store.outbox.saveProgress('app', 0, progressed(3))).toBe(false)
    expect(await store.outbox.saveProgress('other', 0, progressed(3))).toBe(false)
    expect(await pull()).toMatchObject({ cursor: 2, events: [{ seq: 3 }], through: 3, more: false })
    await store.outbox.saveProgress('app', 2, progressed(2, { tries: 2, refusals: 1, dueAt: T0 + MIN, state: 'disabled', why: '410 Gone' }))
    const [view] = await reader.allSubscriptions()
    expect(view).toMatchObject({ name: 'app', owner: 'command', createdBy: 'root', behind: 1, oldestAt: T0 + 2, parked: 0, lost: [] })
    expect(view?.progress).toEqual({
      cursor: 2,
      state: 'disabled',
      why: '410 Gone',
      tries: 2,
      refusals: 1,
      dueAt: T0 + MIN,
      lastAnswer: null,
    })
    expect(view?.settings).toEqual(SETTINGS)
  })

  test('a disabled subscription is enabled by a replay, and by a new target of its table', async () => {
    const { store } = subject()
    const entry = (to: string) => ({ name: 'app', settings: { ...SETTINGS, to } })
    await store.outbox.configureSubscriptions([entry('https://old.example/')], T0)
    await record('store.trouble', 'store.recovered')
    await numbered()
    const lastAnswer = { at: T0, ok: false, text: '410 Gone' }
    const disabled = { state: 'disabled', why: '410 Gone', tries: 2, refusals: 2, dueAt: T0 + MIN, lastAnswer } as const
    let from = 0
    const disable = async (cursor: number): Promise<void> => {
      await store.outbox.saveProgress('app', from, progressed(cursor, disabled))
      from = cursor
    }
    const progress = async () => (await subject().reader.allSubscriptions())[0]?.progress
    const enabled = (cursor: number) => ({ ...newProgress(cursor), lastAnswer })
    await disable(1)
    expect(await store.outbox.replayEvents('app', { kind: 'waiting' })).toBe(1)
    expect(await progress()).toEqual(enabled(1))
    await disable(1)
    expect(await store.outbox.replayEvents('app', { kind: 'parked', at: T0 })).toBe(0)
    expect(await progress()).toEqual(enabled(1))
    await disable(2)
    expect(await store.outbox.replayEvents('app', { kind: 'since', at: 0 })).toBe(2)
    expect(await progress()).toEqual(enabled(0))
    from = 0
    await disable(2)
    await store.outbox.configureSubscriptions([entry('https://old.example/')], T0)
    expect(await progress()).toMatchObject(disabled)
    await store.outbox.configureSubscriptions([entry('https://new.example/')], T0)
    expect(await progress()).toEqual(enabled(2))
    expect(await store.outbox.replayEvents('other', { kind: 'waiting' })).toBeNull()
  })

  test('a parked event stays until it is sent, and the stream goes on', async () => {
    const { store, reader } = subject()
    await subscribe()
    await record('store.trouble', 'store.recovered')
    await numbered()
    const parked = [{ seq: 1, tries: 6, at: T0 + 1, answer: '400 Bad Request' }]
    await store.outbox.saveProgress('app', 0, { ...progressed(1), parked })
    expect((await pull()).events).toMatchObject([{ seq: 2 }])
    expect(await store.outbox.parkedDue('app', 10)).toEqual([])
    const one = { event: { seq: 1, type: 'store.trouble' }, tries: 6, parkedAt: T0 + 1, dueAt: null, answer: '400 Bad Request' }
    expect(await reader.parkedEvents('app', { after: 0, limit: 10 })).toMatchObject([one])
    expect(await store.outbox.replayEvents('app', { kind: 'parked', at: T0 + 2 })).toBe(1)
    expect(await store.outbox.parkedDue('app', 10)).toMatchObject([{ ...one, dueAt: T0 + 2 }])
    await store.outbox.settleParked('app', 1, { kind: 'refused', tries: 7, answer: '422', dueAt: null })
    expect(await store.outbox.parkedDue('app', 10)).toEqual([])
    expect(await reader.parkedEvents('app', { after: 0, limit: 10 })).toMatchObject([{ tries: 7, answer: '422' }])
    expect(await reader.allSubscriptions()).toMatchObject([{ parked: 1 }])
    await store.outbox.settleParked('app', 1, { kind: 'sent' })
    expect(await reader.parkedEvents('app', { after: 0, limit: 10 })).toEqual([])
  })

  test('one event that a subscription has had is sent again under its number', async () => {
    const { store } = subject()
    await subscribe()
    await record('store.trouble', 'store.recovered', 'store.trouble')
    await numbered()
    const parked = [{ seq: 2, tries: 6, at: T0, answer: '400' }]
    await store.outbox.saveProgress('app', 0, { ...progressed(2, { state: 'disabled', why: '410 Gone' }), parked })
    const again = (seq: number, at: number) => store.outbox.replayEvents('app', { kind: 'one', seq, at })
    expect(await again(1, T0 + 5)).toBe(1)
    expect(await again(2, T0 + 6)).toBe(1)
    expect(await again(1, T0 + 7)).toBe(1)
    expect(await again(3, T0 + 8)).toBe(0)
    expect(await again(4, T0 + 8)).toBe(0)
    expect(await store.outbox.parkedDue('app', 10)).toMatchObject([
      { event: { seq: 2 }, tries: 6, dueAt: T0 + 6, answer: '400' },
      { event: { seq: 1, type: 'store.trouble' }, tries: 0, dueAt: T0 + 7, answer: 'sent again on request' },
    ])
    expect(await pull()).toMatchObject({ cursor: 2, events: [{ seq: 3 }] })
    expect(await store.outbox.replayEvents('other', { kind: 'one', seq: 1, at: 0 })).toBeNull()
  })

  test('parked events are listed by the times at which they are due', async () => {
    const { store } = subject()
    await subscribe()
    await record('store.trouble', 'store.recovered', 'store.trouble')
    await numbered()
    const parked = [1, 2, 3].map((seq) => ({ seq, tries: 6, at: T0, answer: '400' }))
    await store.outbox.saveProgress('app', 0, { ...progressed(3), parked })
    for (const [seq, dueAt] of [
      [1, T0 + 2 * MIN],
      [3, T0 + MIN],
    ] as const) {
      await store.outbox.settleParked('app', seq, { kind: 'refused', tries: 7, answer: 'connection refused', dueAt })
    }
    expect((await store.outbox.parkedDue('app', 10)).map((one) => [one.event.seq, one.dueAt])).toEqual([
      [3, T0 + MIN],
      [1, T0 + 2 * MIN],
    ])
    expect(await store.outbox.parkedDue('app', 1)).toMatchObject([{ event: { seq: 3 } }])
  })

  test('events since a time are sent again under their numbers', async () => {
    const { store } = subject()
    await subscribe()
    await record('store.trouble', 'store.recovered', 'store.trouble')
    await numbered()
    await store.outbox.saveProgress('app', 0, { ...progressed(3), parked: [{ seq: 2, tries: 6, at: T0, answer: '400' }] })
    expect(await store.outbox.replayEvents('app', { kind: 'since', at: T0 + 1 })).toBe(2)
    expect(await pull()).toMatchObject({ cursor: 1, events: [{ seq: 2 }, { seq: 3 }] })
    expect(await store.outbox.replayEvents('app', { kind: 'since', at: T0 + MIN })).toBe(2)
    expect(await store.outbox.replayEvents('app', { kind: 'since', at: 0 })).toBe(3)
    expect(await store.outbox.replayEvents('other', { kind: 'since', at: 0 })).toBeNull()
    expect(await store.outbox.replayEvents('other', { kind: 'parked', at: 0 })).toBeNull()
  })

  test('deleted events are counted as lost for each subscription that has not had them', async () => {
    const { store, reader } = subject()
    await subscribe()
    await subscribe('bounces', { types: ['recipient.bounced'] })
    await subscribe('done')
    await subscribe('pulls', { to: '' })
    await record('recipient.bounced', 'store.trouble', 'recipient.bounced', 'store.recovered', 'recipient.bounced', 'store.trouble')
    await numbered()
    await store.outbox.saveProgress('app', 0, { ...progressed(2), parked: [{ seq: 1, tries: 6, at: T0, answer: '400' }] })
    await store.outbox.saveProgress('done', 0, progressed(6))
    expect(await store.outbox.pruneEvents(NO_LIMIT)).toEqual({ more: false })
    await store.outbox.pruneEvents({ before: 0, count: 2 })
    expect(await pull()).toMatchObject({ cursor: 4, lost: { from: 1, to: 4, count: 3 }, events: [{ seq: 5 }, { seq: 6 }] })
    expect(await pull('bounces')).toMatchObject({ cursor: 4, lost: { from: 1, to: 3, count: 2 }, events: [{ seq: 5 }], through: 6 })
    expect(await pull('done')).toMatchObject({ cursor: 6, lost: null, events: [] })
    expect((await reader.allSubscriptions()).map(({ name, lost, parked }) => [name, lost.length, parked])).toEqual([
      ['app', 1, 0],
      ['bounces', 1, 0],
      ['done', 0, 0],
      ['pulls', 0, 0],
    ])
    expect(await reader.eventsAfter({ after: 0, limit: 10, filter: ANY_EVENT })).toMatchObject({ first: 5, last: 6 })
  })

  test('a loss that was pulled does not grow; a later one follows it', async () => {
    const { store } = subject()
    await subscribe()
    await record('store.trouble', 'store.recovered', 'store.trouble', 'store.recovered', 'store.trouble')
    await numbered()
    await store.outbox.pruneEvents({ before: T0 + 1, count: 1_000 })
    await store.outbox.pruneEvents({ before: T0 + 2, count: 1_000 })
    const told = { from: 1, to: 2, count: 2 }
    expect((await pull()).lost).toEqual(told)
    await store.outbox.pruneEvents({ before: T0 + 3, count: 1_000 })
    expect(await pull()).toMatchObject({ lost: told, cursor: 3 })
    expect(await store.outbox.saveProgress('app', 3, { ...progressed(3), told })).toBe(true)
    const { lost, events } = await pull()
    expect([lost, events.map(({ seq }) => seq)]).toEqual([{ from: 3, to: 3, count: 1 }, [4, 5]])
  })

  test('the newest event stays, so that no number is used twice', async () => {
    const { store } = subject()
    await subscribe()
    await record('store.trouble', 'store.recovered')
    await numbered()
    await store.outbox.pruneEvents({ before: T0 + MIN, count: 0 })
    await record('store.trouble')
    expect((await pull()).events.map(({ seq }) => seq)).toEqual([2, 3])
  })

  test('the configuration owns its subscriptions', async () => {
    const { store, reader } = subject()
    await subscribe('taken')
    const entry = (name: string, more: Partial<SubscriptionSettings> = {}) => ({ name, settings: { ...SETTINGS, ...more } })
    expect(await store.outbox.configureSubscriptions([entry('log', { to: 'stdout' }), entry('taken'), entry('old')], T0)).toEqual(['taken'])
    await record('store.trouble')
    await numbered()
    await store.outbox.saveProgress('log', 0, progressed(1))
    expect(await subscribe('log')).toBe(false)
    expect(await store.outbox.unsubscribe('log')).toBe(false)
    expect(await store.outbox.changeSecrets('log', [])).toBe(false)
    const secrets = [{ secret: 'whsec_AA==', until: null }]
    expect(await store.outbox.changeSecrets('taken', secrets)).toBe(true)
    await store.outbox.configureSubscriptions([entry('log', { to: 'file:/log' })], T0 + 1)
    expect((await reader.allSubscriptions()).map(({ name, owner, createdBy }) => [name, owner, createdBy])).toEqual([
      ['log', 'configuration', ''],
      ['taken', 'command', 'root'],
    ])
    const [log, taken] = await store.outbox.subscriptions()
    expect(log).toMatchObject({ settings: { to: 'file:/log' }, createdAt: T0, progress: { cursor: 1 } })
    expect(taken?.settings.secrets).toEqual(secrets)
    expect(await store.outbox.configureSubscriptions([], T0)).toEqual([])
    expect((await store.outbox.subscriptions()).map(({ name }) => name)).toEqual(['taken'])
  })
}

/** Events and positions survive their owner. */
export function outboxAcrossRestarts(subject: () => Subject, replace: (next: Subject) => void): void {
  const restart = async () => {
    const { crash } = subject()
    if (crash !== undefined) replace(await crash())
  }

  test('events, positions and parked events survive a crash', async () => {
    const { store } = subject()
    await store.outbox.subscribe({ name: 'app', settings: SETTINGS, at: T0, by: 'root' })
    await store.outbox.recordEvents([event('store.trouble'), event('store.recovered'), event('store.trouble')])
    while (await store.outbox.numberEvents());
    const { epoch } = (await store.outbox.pullEvents('app', 1)) ?? {}
    await store.outbox.saveProgress('app', 0, { ...progressed(2), parked: [{ seq: 1, tries: 6, at: T0, answer: '400' }] })
    await restart()
    const next = subject().store
    await next.outbox.recordEvents([event('store.recovered')])
    while (await next.outbox.numberEvents());
    expect(await next.outbox.pullEvents('app', 10)).toMatchObject({ epoch, cursor: 2, events: [{ seq: 3 }, { seq: 4 }] })
    expect(await subject().reader.parkedEvents('app', { after: 0, limit: 10 })).toMatchObject([{ event: { seq: 1 } }])
  })

  test('a message that was in delivery too often has an event at the next start', async () => {
    const { store } = subject()
    await store.outbox.subscribe({ name: 'app', settings: { ...SETTINGS, types: ['message.quarantined'] }, at: T0, by: 'root' })
    await queue(store, { leased: true })
    for (let crashes = 0; crashes < 9 && subject().quarantined.length === 0; crashes++) {
      await restart()
      await claim(subject().store, T0)
      await subject().store.claimSuspect(T0)
    }
    while (await subject().store.outbox.numberEvents());
    const pulled = await subject().store.outbox.pullEvents('app', 10)
    expect(pulled?.events.map(({ type }) => type)).toEqual(['message.quarantined'])
  })
}
