/**
 * Promises of the reader that belongs to a store.
 */
import { beforeEach, expect, test } from 'vitest'
import type { QueueFilter } from '../../src/queue/reader.ts'
import { formatQueueId } from '../../src/mail/queue-id.ts'
import { claim, contentOf, deferred, first, MIN, queue, settleOne, T0, type Subject } from './mail.ts'
import { operate } from '../support/operate.ts'

export function looking(subject: () => Subject): void {
  let ids: { fresh: number; active: number; deferred: number; held: number; corrupt: number; trash: number }

  beforeEach(async () => {
    const { store } = subject()
    const to = (address: string) => [{ address }]
    ids = {
      fresh: await queue(store, { at: T0, to: to('Ann+new@far.example') }),
      active: await queue(store, { at: T0 + 1, leased: true, sender: 'news@us.example', to: to('bob@far.example') }),
      deferred: await queue(store, { at: T0 + 2, leased: true, to: to('eve@slow.example') }),
      held: await queue(store, { at: T0 + 3, hold: true, sender: '' }),
      corrupt: await queue(store, { at: T0 + 4, to: to('x@y.example') }),
      trash: await queue(store, { at: T0 + 5 }),
    }
    await settleOne(store, ids.deferred, deferred(first(ids.deferred), T0 + 60 * MIN, { attempts: 3 }))
    await store.quarantine(ids.corrupt, 'unreadable')
    await operate(store, ids.trash, { kind: 'delete', now: T0, purge: false })
  })

  const list = (filter: QueueFilter, after = 0, limit = 10) => subject().reader.list(filter, { after, limit, now: T0 + MIN })
  const found = (filter: QueueFilter) => list(filter).map(({ message }) => message.id)

  test('each message is in the queue that Postfix’s words name', () => {
    expect(list({}).map(({ message, queue: name }) => [message.id, name])).toEqual([
      [ids.fresh, 'incoming'],
      [ids.active, 'active'],
      [ids.deferred, 'deferred'],
      [ids.held, 'hold'],
      [ids.corrupt, 'corrupt'],
    ])
    for (const name of ['incoming', 'active', 'deferred', 'hold', 'corrupt', 'trash'] as const) {
      expect(list({ queue: name }).map((one) => one.queue)).toEqual([name])
    }
  })

  test('new mail behind a destination that is dead or suspended is deferred', async () => {
    const { store, reader } = subject()
    const ordinary = { name: 'far.example', deadUntil: null, probeInterval: null, suspendedBy: null, reason: null }
    for (const shut of [{ suspendedBy: 'root' }, { deadUntil: T0 + MIN, probeInterval: MIN }]) {
      await store.saveDestination({ ...ordinary, ...shut })
      expect(found({ queue: 'incoming' })).toEqual([])
      expect(found({ queue: 'deferred' })).toEqual([ids.fresh, ids.deferred])
      expect(reader.story(formatQueueId(T0, ids.fresh), T0 + MIN)?.queue).toBe('deferred')
      expect(reader.counts(T0 + MIN).map(({ queue: name }) => name)).not.toContain('incoming')
    }
    await store.saveDestination(ordinary)
    expect(found({ queue: 'incoming' })).toEqual([ids.fresh])
  })

  test('a range of ids can be listed by itself, and slices cover the queue', () => {
    const { reader } = subject()
    const between = (filter: QueueFilter, after: number, through: number) =>
      reader.list(filter, { after, through, limit: 10, now: T0 + MIN }).map(({ message }) => message.id)
    expect(between({}, ids.fresh, ids.held)).toEqual([ids.active, ids.deferred, ids.held])
    expect(between({ destination: '*.example' }, ids.active, ids.deferred)).toEqual([ids.deferred])
    expect(between({}, ids.held, ids.held)).toEqual([])
    const { fresh } = ids
    const queueId = formatQueueId(T0, fresh)
    expect([between({ queueId }, 0, fresh), between({ queueId }, 0, fresh - 1), between({ queueId }, fresh, fresh)]).toEqual([
      [fresh],
      [],
      [],
    ])
    expect([reader.sliceEnd(0, 2), reader.sliceEnd(ids.active, 100), reader.sliceEnd(ids.trash, 1)]).toEqual([ids.active, ids.trash, null])
  })

  test('pages are full until the last and leave nothing out', () => {
    const pages = [list({}, 0, 2), list({}, ids.active, 2), list({}, ids.held, 2)]
    expect(pages.map((page) => page.map(({ message }) => message.id))).toEqual([
      [ids.fresh, ids.active],
      [ids.deferred, ids.held],
      [ids.corrupt],
    ])
  })

  test('filters take wildcards, and nothing but the star is one', () => {
    expect(found({ recipient: '*@far.example' })).toEqual([ids.fresh, ids.active, ids.held])
    expect(found({ recipient: 'ann+new@FAR.example' })).toEqual([ids.fresh])
    expect(found({ recipient: 'ann?new@far.example' })).toEqual([])
    for (const text of ['[a]*', 'ann_new@far.example', 'ann%', '\\*']) expect(found({ recipient: text })).toEqual([])
    expect(found({ sender: 'news@*' })).toEqual([ids.active])
    expect(found({ sender: '' })).toEqual([ids.held])
    expect(found({ destination: '*.example' })).toHaveLength(5)
    expect(found({ destination: 'slow.example' })).toEqual([ids.deferred])
  })

  test('filters look at age, attempts, last reply and id, and all parts must hold', () => {
    expect(found({ arrivedBefore: T0 + 2 })).toEqual([ids.fresh, ids.active])
    expect(found({ attemptsOver: 2 })).toEqual([ids.deferred])
    expect(found({ attemptsOver: 3 })).toEqual([])
    expect(found({ reply: '4.2.1 bUSY' })).toEqual([ids.deferred])
    expect(found({ reply: 'nothing of the kind' })).toEqual([])
    expect(found({ queueId: formatQueueId(T0 + 2, ids.deferred) })).toEqual([ids.deferred])
    expect(found({ queueId: 'nonsense' })).toEqual([])
    expect(found({ queueId: formatQueueId(T0 + 2, ids.deferred), queue: 'hold' })).toEqual([])
    expect(found({ sender: 'app@us.example', queue: 'deferred', reply: 'busy' })).toEqual([ids.deferred])
  })

  test('a story is told by the full id only', () => {
    const { reader } = subject()
    expect(reader.story(formatQueueId(T0, ids.fresh), T0)?.message.id).toBe(ids.fresh)
    expect(reader.story(formatQueueId(T0 + 1, ids.fresh), T0)).toBeUndefined()
    expect(reader.story('nonsense', T0)).toBeUndefined()
  })

  test('a content is read part by part', async () => {
    const { store, reader } = subject()
    const message = list({})[0]?.message
    if (message === undefined) throw new Error('nothing is listed')
    expect(Buffer.from(reader.readBody(message, 0) ?? [])).toEqual(await contentOf(store, message.body))
    expect(reader.readBody(message, 1)).toBeUndefined()
  })

  test('how much waits where', async () => {
    const { store, reader } = subject()
    const all = [
      { destination: 'far.example', waiting: 1, leased: 1, nextDueAt: T0 },
      { destination: 'slow.example', waiting: 1, leased: 0, nextDueAt: T0 + 60 * MIN },
    ]
    expect(reader.destinationLoads({ after: '', limit: 10 })).toEqual(all)
    expect(reader.destinationLoads({ after: '', limit: 1 })).toEqual(all.slice(0, 1))
    expect(reader.destinationLoads({ after: 'far.example', limit: 10 })).toEqual(all.slice(1))
    await claim(store, T0 + 60 * MIN, { destination: 'slow.example' })
    expect(reader.destinationLoads({ after: 'far.example', limit: 10 })).toEqual([
      { destination: 'slow.example', waiting: 0, leased: 1, nextDueAt: null },
    ])
  })

  test('live recipients with their ages, by queue', () => {
    const { reader } = subject()
    const ages = (queues: Parameters<typeof reader.ages>[0]['queues'], after = 0, limit = 10) =>
      reader.ages({ after, limit, queues, now: T0 + MIN })
    expect(ages(['incoming', 'deferred'])).toEqual([
      { cursor: first(ids.fresh), sender: 'app@us.example', address: 'Ann+new@far.example', arrivedAt: T0, message: ids.fresh },
      { cursor: first(ids.deferred), sender: 'app@us.example', address: 'eve@slow.example', arrivedAt: T0 + 2, message: ids.deferred },
    ])
    expect(ages(['hold', 'active', 'incoming'], first(ids.fresh), 1)).toMatchObject([{ message: ids.active }])
  })

  test('messages and recipients are counted by queue', () => {
    const counts = subject().reader.counts(T0 + MIN)
    expect(counts.toSorted((a, b) => b.oldest - a.oldest)).toEqual(
      (['incoming', 'active', 'deferred', 'hold', 'corrupt'] as const).map((name, n) => ({
        queue: name,
        messages: 1,
        recipients: 1,
        oldest: MIN - n,
      })),
    )
  })
}
