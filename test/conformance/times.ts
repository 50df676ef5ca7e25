/**
 * Contract of the store: times that clients name for their messages, and the cancellation of messages.
 */
import { expect, test } from 'vitest'
import { formatQueueId } from '../../src/mail/queue-id.ts'
import { recipientId } from '../../src/mail/message.ts'
import { ANY_MESSAGE } from '../../src/store/message-conditions.ts'
import type { Former } from '../../src/store/former-times.ts'
import { completeTally } from '../../src/store/counts/queue-tally.ts'
import { operate } from '../support/operate.ts'
import { claim, delivered, first, LIFETIME, mail, messagesIn, MIN, ownerOf, settleOne, T0, type Mail, type Subject } from './mail.ts'

const TIMES = {
  notBefore: T0 + 60 * MIN,
  scheduled: true,
  holdRequest: 'for;3600',
  expires: T0 + 120 * MIN,
  deliverBy: T0 + 120 * MIN,
  byMode: 'RT',
} as const

const { deliverBy: _at, byMode: _mode, ...LISTED } = TIMES

const timesIn = (former: Former | undefined) => (former !== undefined && 'times' in former ? former.times : [])

async function scheduled({ store }: Subject, options: Mail = {}) {
  const to = [{ address: 'ann@far.example' }, { address: 'bob@far.example' }].map((one) => ({
    ...one,
    dueAt: TIMES.notBefore,
    expiresAt: TIMES.expires,
  }))
  const entry = mail(store, { to, ...options })
  const message = { ...entry.message, ...TIMES }
  await store.enqueue({ ...entry, message })
  return message
}

const listed = async ({ reader }: Subject, queue: 'scheduled' | 'incoming' | 'hold') =>
  (await reader.list({ ...ANY_MESSAGE, queue }, { after: 0, limit: 9 })).map(({ message }) => message.id)

export function timesOfMessages(subject: () => Subject): void {
  test('times are kept with the message, and a scheduled message is listed and counted apart', async () => {
    const { store, reader } = subject()
    const message = await scheduled(subject())
    expect((await reader.details(formatQueueId(T0, message.id)))?.message).toMatchObject(TIMES)
    const [one] = await reader.list(ANY_MESSAGE, { after: 0, limit: 9 })
    expect(one).toMatchObject({ queue: 'scheduled', message: LISTED })
    expect(await reader.list(ANY_MESSAGE, { after: 0, limit: 9, recipients: 1 })).toMatchObject([{ queue: 'scheduled', message: LISTED }])
    expect(await listed(subject(), 'scheduled')).toEqual([message.id])
    expect(await listed(subject(), 'incoming')).toEqual([])
    expect(await reader.counts()).toMatchObject([{ queue: 'scheduled', messages: 1, recipients: 2 }])
    expect((await completeTally(() => store.tally(9))).queues).toMatchObject([{ queue: 'scheduled', messages: 1, recipients: 2 }])
  })

  test('recipients of scheduled mail are counted by destination, but not what is on hold or due', async () => {
    const { store, reader } = subject()
    const { id, notBefore } = await scheduled(subject())
    await scheduled(subject(), { hold: true })
    await store.enqueue(mail(store, { to: [{ address: 'eve@far.example' }] }))
    expect(await reader.destinationLoad('far.example')).toMatchObject({ waiting: 3 })
    expect([await reader.scheduledAt('far.example'), await reader.scheduledAt('near.example')]).toEqual([2, 0])
    expect((await store.endSchedules(notBefore)).ended).toContain(id)
    expect(await reader.scheduledAt('far.example')).toBe(0)
  })

  test('the state ends when the time has come', async () => {
    const { store } = subject()
    const { id, notBefore } = await scheduled(subject())
    expect(await store.endSchedules(notBefore - 1)).toEqual({ ended: [], next: notBefore })
    expect((await claim(store, notBefore - 1)).requests).toEqual([])
    expect(await store.endSchedules(notBefore)).toEqual({ ended: [id], next: null })
    expect(await listed(subject(), 'incoming')).toEqual([id])
    expect((await completeTally(() => store.tally(9))).queues).toMatchObject([{ queue: 'incoming' }])
    expect((await claim(store, notBefore)).requests).toMatchObject([{ message: { id, notBefore }, recipients: [{ dueAt: notBefore }, {}] }])
  })

  test('scheduled mail is counted by its origin, but not what is in the trash, due or sent', async () => {
    const { store } = subject()
    const of = async (sender: string, saslUsername?: string) => {
      const entry = mail(store, { to: [{ address: 'ann@far.example', dueAt: TIMES.notBefore, expiresAt: TIMES.expires }] })
      await store.enqueue({ ...entry, message: { ...entry.message, ...TIMES, sender, saslUsername } })
      return entry.message.id
    }
    const counted = async (now = T0) =>
      (await store.scheduledMail(now)).map(({ sender, saslUsername, messages }) => `${sender} ${saslUsername} ${messages}`).toSorted()
    const held = await of('a@us.example', 'app')
    await of('a@us.example', 'app')
    await of('b@us.example')
    await store.enqueue(mail(store))
    expect(await counted()).toEqual(['a@us.example app 2', 'b@us.example null 1'])
    await operate(store, held, { kind: 'hold' })
    expect(await counted()).toHaveLength(2)
    await operate(store, held, { kind: 'delete', now: T0, purge: false })
    expect(await counted()).toEqual(['a@us.example app 1', 'b@us.example null 1'])
    expect(await counted(TIMES.notBefore)).toEqual([])
    await store.endSchedules(TIMES.notBefore)
    expect(await counted()).toEqual([])
  })

  test('a flush passes a scheduled message over, and a requeue keeps its times', async () => {
    const { store } = subject()
    const { id, notBefore } = await scheduled(subject())
    expect((await operate(store, id, { kind: 'flush', now: T0 })).changed).toBe(false)
    const newId = store.nextId()
    await operate(store, id, { kind: 'requeue', now: T0 + MIN, newId, expiresAt: TIMES.expires })
    expect((await claim(store, notBefore - 1)).requests).toEqual([])
    expect(await listed(subject(), 'scheduled')).toEqual([newId])
    expect((await claim(store, notBefore)).requests).toMatchObject([{ message: { id: newId, ...TIMES } }])
  })

  test('a hold wins over the time, and a release keeps it', async () => {
    const { store } = subject()
    const { id, notBefore } = await scheduled(subject())
    await operate(store, id, { kind: 'hold' })
    expect(await listed(subject(), 'hold')).toEqual([id])
    expect((await claim(store, notBefore)).requests).toEqual([])
    expect((await operate(store, id, { kind: 'release' })).woken).toEqual([{ destination: 'far.example', dueAt: notBefore }])
    expect(await listed(subject(), 'scheduled')).toEqual([id])
  })

  test('a scheduled message gets other times, other mail does not', async () => {
    const { store, reader } = subject()
    const { id } = await scheduled(subject())
    const times = [{ destination: 'far.example', dueAt: T0 + MIN, expiresAt: T0 + LIFETIME }]
    const earlier = { kind: 'reschedule', notBefore: T0 + MIN, scheduled: true, expires: undefined, times, anyWaiting: false } as const
    expect(await operate(store, id, earlier)).toEqual({ changed: true, woken: [{ destination: 'far.example', dueAt: T0 + MIN }] })
    const story = await reader.details(formatQueueId(T0, id))
    expect(story?.message).toMatchObject({ notBefore: T0 + MIN, scheduled: true, holdRequest: 'for;3600' })
    expect(story?.message.expires).toBeUndefined()
    expect(story?.recipients).toMatchObject([{ dueAt: T0 + MIN, expiresAt: T0 + LIFETIME }, {}])
    await store.endSchedules(T0 + MIN)
    expect((await operate(store, id, earlier)).changed).toBe(false)
    expect(messagesIn((await claim(store, T0 + MIN)).requests)).toEqual([id])
  })

  test('other mail becomes scheduled when the operation says so, and its former times are kept for the undo', async () => {
    const { store, reader } = subject()
    const entry = mail(store, { to: [{ address: 'ann@far.example' }, { address: 'bob@near.example' }] })
    await store.enqueue(entry)
    const { id } = entry.message
    const ends = ['far.example', 'near.example'].map((destination) => ({
      destination,
      dueAt: T0 + 9 * MIN,
      expiresAt: T0 + LIFETIME + 9 * MIN,
    }))
    const later = {
      notBefore: T0 + 9 * MIN,
      scheduled: true,
      expires: undefined,
      holdRequest: 'for;540',
      times: ends,
      anyWaiting: true,
    } as const
    const begin = (action: string) =>
      store.records.audit.begin({
        at: T0,
        who: 'op',
        action,
        arguments: '',
        reason: null,
        expected: null,
        undoUntil: null,
        undoes: null,
        request: null,
      })
    const rescheduling = await begin('reschedule')
    const operations = [{ message: id, operation: { kind: 'reschedule', ...later } }] as const
    const round = { operation: rescheduling, at: T0, matched: 1 }
    expect((await store.operate(operations, round))?.map(({ changed }) => changed)).toEqual([true])
    expect(await listed(subject(), 'scheduled')).toEqual([id])
    expect(await store.endSchedules(T0)).toEqual({ ended: [], next: T0 + 9 * MIN })
    const [placed] = (await reader.placedBy(rescheduling, { after: 0, limit: 9 })).messages
    const times = entry.recipients.map(({ destination, dueAt, expiresAt }) => ({ destination, dueAt, expiresAt }))
    const former = { ...placed?.former, times: timesIn(placed?.former).toSorted((a, b) => (a.destination < b.destination ? -1 : 1)) }
    expect(former).toEqual({ times })
    // A later hold is undone apart from it, a later reschedule before it.
    await store.operate([{ message: id, operation: { kind: 'hold' } }], { operation: await begin('hold'), at: T0, matched: 1 })
    expect((await reader.placedBy(rescheduling, { after: 0, limit: 9 })).messages).toHaveLength(1)
    const second = await begin('reschedule')
    const again = { kind: 'reschedule', ...later, notBefore: T0 + 8 * MIN } as const
    await store.operate([{ message: id, operation: again }], { operation: second, at: T0, matched: 1 })
    expect((await reader.placedBy(rescheduling, { after: 0, limit: 9 })).messages).toEqual([])
    const [last] = (await reader.placedBy(second, { after: 0, limit: 9 })).messages
    expect(last?.former).toMatchObject({ notBefore: T0 + 9 * MIN, scheduled: true, holdRequest: 'for;540' })
    await operate(store, id, { kind: 'release' })
    const back = {
      kind: 'reschedule',
      notBefore: undefined,
      scheduled: undefined,
      expires: undefined,
      holdRequest: null,
      times,
      anyWaiting: false,
    } as const
    expect((await operate(store, id, back)).changed).toBe(true)
    const story = await reader.details(formatQueueId(T0, id))
    expect([story?.message.notBefore, story?.message.scheduled, story?.message.holdRequest]).toEqual([undefined, undefined, undefined])
    expect((await claim(store, T0)).requests.map(({ message }) => message.id)).toContain(id)
    expect((await operate(store, id, { kind: 'reschedule', ...later })).changed).toBe(false)
  })

  test('a cancelled recipient is removed, and one in delivery is left to its outcome', async () => {
    const { store, reader } = subject()
    const entry = mail(store, { to: [{ address: 'ann@far.example' }, { address: 'bob@far.example' }] })
    await store.enqueue(entry)
    const { id } = entry.message
    await claim(store, T0, { limit: 1 })
    const cancel = { kind: 'cancel', now: T0, by: 'app' } as const
    expect(await operate(store, id, cancel)).toEqual({ changed: true, woken: [] })
    expect((await operate(store, id, cancel)).changed).toBe(false)
    expect((await claim(store, T0 + LIFETIME)).requests).toEqual([])
    await settleOne(store, id, delivered(first(id), T0))
    const story = await reader.details(formatQueueId(T0, id))
    const last = { reason: 'cancelled by app', stage: 'cancel' }
    expect(story).toMatchObject({ queue: 'gone', recipients: [{ state: 'delivered' }, { id: recipientId(id, 1), state: 'removed', last }] })
    expect(ownerOf(store)).toBeGreaterThan(0)
  })

  test('a cancelled message leaves the queue at once, also from hold', async () => {
    const { store, reader } = subject()
    const { id } = await scheduled(subject(), { hold: true })
    expect((await operate(store, id, { kind: 'cancel', now: T0, by: 'app' })).changed).toBe(true)
    expect((await reader.details(formatQueueId(T0, id)))?.queue).toBe('gone')
    expect((await completeTally(() => store.tally(9))).queues).toEqual([])
  })
}
