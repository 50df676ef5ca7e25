/**
 * Contract of the reader of a store.
 */
import { beforeEach, expect, test } from 'vitest'
import type { HistoryFilter, ShareLoad } from '../../src/store/queue-reader.ts'
import { ANY_MESSAGE, type QueueFilter } from '../../src/store/message-conditions.ts'
import type { QueueName } from '../../src/mail/message.ts'
import { passedOver } from '../../src/queue/selected-messages.ts'
import { formatQueueId } from '../../src/mail/queue-id.ts'
import { claim, contentOf, deferred, delivered, first, LIFETIME, MIN, queue, settleOne, T0, type Subject } from './mail.ts'
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

  const list = (filter: Partial<QueueFilter>, after = 0, limit = 10) =>
    subject().reader.list({ ...ANY_MESSAGE, ...filter }, { after, limit })
  const found = async (filter: Partial<QueueFilter>) => (await list(filter)).map(({ message }) => message.id)

  test('each message is in one of Postfix’s queues', async () => {
    expect((await list({})).map(({ message, queue: name }) => [message.id, name])).toEqual([
      [ids.fresh, 'incoming'],
      [ids.active, 'active'],
      [ids.deferred, 'deferred'],
      [ids.held, 'hold'],
      [ids.corrupt, 'corrupt'],
    ])
    for (const name of ['incoming', 'active', 'deferred', 'hold', 'corrupt', 'trash'] as const) {
      expect((await list({ queue: name })).map((one) => one.queue)).toEqual([name])
    }
  })

  test('a corrupt message has the reason, and other mail has none', async () => {
    const why = async (id: number, at: number) => (await subject().reader.details(formatQueueId(at, id)))?.why
    expect([await why(ids.corrupt, T0 + 4), await why(ids.held, T0 + 3)]).toEqual(['unreadable', undefined])
  })

  test('deleted mail has the time of its deletion while it can be restored, and other mail has none', async () => {
    const { store, reader } = subject()
    const deleted = async (id: number, at: number) => (await reader.details(formatQueueId(at, id)))?.deletedAt
    expect([await deleted(ids.trash, T0 + 5), await deleted(ids.held, T0 + 3)]).toEqual([T0, undefined])
    // Mail in delivery is removed when its attempt has ended.
    await operate(store, ids.active, { kind: 'delete', now: T0, purge: true })
    expect(await deleted(ids.active, T0 + 1)).toBeUndefined()
  })

  test('new mail behind a destination that is dead or suspended is deferred', async () => {
    const { store, reader } = subject()
    const ordinary = { name: 'far.example', deadUntil: null, probeInterval: null, suspension: null, siteStatus: null }
    for (const shut of [{ suspension: { by: 'root', until: null, reason: null } }, { deadUntil: T0 + MIN, probeInterval: MIN }]) {
      await store.saveDestination({ ...ordinary, ...shut })
      expect(await found({ queue: 'incoming' })).toEqual([])
      expect(await found({ queue: 'deferred' })).toEqual([ids.fresh, ids.deferred])
      expect((await reader.details(formatQueueId(T0, ids.fresh)))?.queue).toBe('deferred')
      expect((await reader.counts()).map(({ queue: name }) => name)).not.toContain('incoming')
    }
    await store.saveDestination(ordinary)
    expect(await found({ queue: 'incoming' })).toEqual([ids.fresh])
  })

  test('a range of ids can be listed, and slices cover the queue', async () => {
    const { reader } = subject()
    const between = async (filter: Partial<QueueFilter>, after: number, through: number) =>
      (await reader.list({ ...ANY_MESSAGE, ...filter }, { after, through, limit: 10 })).map(({ message }) => message.id)
    expect(await between({}, ids.fresh, ids.held)).toEqual([ids.active, ids.deferred, ids.held])
    expect(await between({ destination: '*.example' }, ids.active, ids.deferred)).toEqual([ids.deferred])
    expect(await between({}, ids.held, ids.held)).toEqual([])
    const { fresh } = ids
    const queueId = formatQueueId(T0, fresh)
    expect(await between({ queueId }, 0, fresh)).toEqual([fresh])
    expect(await between({ queueId }, 0, fresh - 1)).toEqual([])
    expect(await between({ queueId }, fresh, fresh)).toEqual([])
    expect([await reader.sliceEnd(0, 2), await reader.sliceEnd(ids.active, 100), await reader.sliceEnd(ids.trash, 1)]).toEqual([
      ids.active,
      ids.trash,
      null,
    ])
  })

  test('pages are full until the last and omit nothing', async () => {
    const pages = await Promise.all([list({}, 0, 2), list({}, ids.active, 2), list({}, ids.held, 2)])
    expect(pages.map((page) => page.map(({ message }) => message.id))).toEqual([
      [ids.fresh, ids.active],
      [ids.deferred, ids.held],
      [ids.corrupt],
    ])
  })

  test('filters take wildcards, and only the asterisk is one', async () => {
    expect(await found({ recipient: '*@far.example' })).toEqual([ids.fresh, ids.active, ids.held])
    expect(await found({ recipient: 'ann+new@FAR.example' })).toEqual([ids.fresh])
    expect(await found({ recipient: 'ann?new@far.example' })).toEqual([])
    for (const text of ['[a]*', 'ann_new@far.example', 'ann%', '\\*']) expect(await found({ recipient: text })).toEqual([])
    expect(await found({ sender: 'news@*' })).toEqual([ids.active])
    expect(await found({ sender: '' })).toEqual([ids.held])
    expect(await found({ destination: '*.example' })).toHaveLength(5)
    expect(await found({ destination: 'slow.example' })).toEqual([ids.deferred])
    expect(await found({ destination: 'far.example', queue: 'active' })).toEqual([ids.active])
  })

  test('a filter folds letters of ASCII, and takes any number of asterisks', async () => {
    const { store, reader } = subject()
    const from = 'Inès.BÜLOW@us.example'
    const id = await queue(store, { sender: from, leased: true, to: [{ address: 'zoé@gone.example' }] })
    expect(await found({ sender: '*inès.b*low@*' })).toEqual([id])
    expect(await found({ sender: 'INèS.bÜlow@US.EXAMPLE' })).toEqual([id])
    expect(await found({ sender: 'inès.bülow@us.example' })).toEqual([])
    expect(await found({ recipient: '*ZOÉ*' })).toEqual([])
    const many = '*'.repeat(60)
    for (const key of ['sender', 'recipient', 'destination', 'reply'] as const) expect(await found({ [key]: `${many}~` })).toEqual([])
    expect(await found({ sender: `${'*e'.repeat(60)}*` })).toEqual([])
    expect(await found({ sender: `${many}low${many}` })).toEqual([id])
    await settleOne(store, id, delivered(first(id), T0 + 9))
    const departed = async (filter: Partial<HistoryFilter>) => {
      const page = await reader.departed(
        { sender: null, recipient: null, outcome: null, class: null, status: null, since: null, until: null, ...filter },
        { before: null, limit: 9 },
      )
      return page.messages.map(({ message }) => message.sender)
    }
    expect(await departed({ sender: 'inÈs*' })).toEqual([])
    expect(await departed({ sender: 'INèS.*ÜLOW@*', recipient: `${many}GONE${many}` })).toEqual([from])
    expect(await departed({ recipient: `${many}~` })).toEqual([])
  })

  test('addresses that an earlier version stored match filters by their normal form too, queued and departed', async () => {
    const { store, reader } = subject()
    const forms = ['"boss"@us.example', String.raw`"bo\ss"@us.example`, String.raw`"a\ b\"\\c"@us.example`, '"a b"@us.example']
    const odd = ['a..b@us.example', '.a@us.example', 'a.@us.example', 'a@b@us.example', '"a.b"@us.example', '"x@y"@us.example']
    const stored = [...forms, ...odd]
    const mail = new Map<string, number>()
    for (const form of stored) mail.set(form, await queue(store, { sender: form, leased: true, to: [{ address: form }] }))
    const select: readonly (readonly [pattern: string, ...forms: readonly string[]])[] = [
      ['boss@us.example', ...forms.slice(0, 2)],
      ['BOSS@*', ...forms.slice(0, 2)],
      [String.raw`"a b\"\\c"@us.example`, forms[2] ?? ''],
      ['"a b"@us.example', '"a b"@us.example'],
      ['"a..b"@us.example', 'a..b@us.example'],
      ['".a"@us.example', '.a@us.example'],
      ['"a."@us.example', 'a.@us.example'],
      ['"a@b"@us.example', 'a@b@us.example'],
      ['a.b@us.example', '"a.b"@us.example'],
      ['"x@y"@us.example', '"x@y"@us.example'],
      ['x@y@us.example'],
      ['bos@us.example'],
    ]
    const idsOf = (those: readonly string[]) => those.map((form) => mail.get(form))
    for (const [pattern, ...those] of select) {
      expect(await found({ sender: pattern }), `sender ${pattern}`).toEqual(idsOf(those))
      expect(await found({ recipient: pattern }), `recipient ${pattern}`).toEqual(idsOf(those))
    }
    for (const id of mail.values()) await settleOne(store, id, delivered(first(id), T0 + 9))
    const departed = async (filter: Partial<HistoryFilter>) => {
      const every = { sender: null, recipient: null, outcome: null, class: null, status: null, since: null, until: null, ...filter }
      return (await reader.departed(every, { before: null, limit: 20 })).messages.map(({ message }) => message.id).toReversed()
    }
    for (const [pattern, ...those] of select) {
      expect(await departed({ sender: pattern }), `sender ${pattern}`).toEqual(idsOf(those))
      expect(await departed({ recipient: pattern }), `recipient ${pattern}`).toEqual(idsOf(those))
    }
  })

  test('filters by age, attempts, last reply and id must all match', async () => {
    expect(await found({ arrivedBefore: T0 + 2 })).toEqual([ids.fresh, ids.active])
    expect(await found({ arrivedAfter: T0 + 2 })).toEqual([ids.deferred, ids.held, ids.corrupt])
    expect(await found({ arrivedAfter: T0 + 1, arrivedBefore: T0 + 2 })).toEqual([ids.active])
    expect(await found({ olderThan: T0 + 2 })).toEqual([ids.fresh, ids.active])
    expect(await found({ youngerThan: T0 + 1 })).toEqual([ids.deferred, ids.held, ids.corrupt])
    expect(await found({ expiresWithin: T0 + LIFETIME })).toEqual([])
    expect(await found({ expiresWithin: T0 + LIFETIME + 1 })).toEqual([ids.fresh])
    expect(await found({ expiresWithin: T0 + LIFETIME + MIN })).toEqual([ids.fresh, ids.deferred])
    expect(await found({ status: '4.2.1' })).toEqual([ids.deferred])
    expect(await found({ status: '4.2.*' })).toEqual([ids.deferred])
    expect(await found({ status: '4.2' })).toEqual([])
    expect(await found({ status: '4.2.1', reply: 'nothing of the kind' })).toEqual([])
    expect(await found({ attemptsOver: 2 })).toEqual([ids.deferred])
    expect(await found({ attemptsOver: 3 })).toEqual([])
    expect(await found({ reply: '4.2.1 bUSY' })).toEqual([ids.deferred])
    expect(await found({ reply: 'nothing of the kind' })).toEqual([])
    expect(await found({ queueId: formatQueueId(T0 + 2, ids.deferred) })).toEqual([ids.deferred])
    expect(await found({ queueId: 'nonsense' })).toEqual([])
    expect(await found({ queueId: formatQueueId(T0 + 2, ids.deferred), queue: 'hold' })).toEqual([])
    expect(await found({ sender: 'app@us.example', queue: 'deferred', reply: 'busy' })).toEqual([ids.deferred])
  })

  test('what a flush leaves unchanged is counted by the reason', async () => {
    const { reader } = subject()
    const passed = async (filter: Partial<QueueFilter>, queues: readonly QueueName[] | null = null, through = Number.MAX_SAFE_INTEGER) => {
      const selection = { kind: 'filter', filter: { ...ANY_MESSAGE, ...filter }, limit: null } as const
      return passedOver({ reader }, { operation: 'flush', purge: false, selection, queues, through })
    }
    const three = { active: 1, due: 1, hold: 1 }
    expect(await passed({})).toEqual(three)
    expect(await passed({ destination: 'far.example' })).toEqual(three)
    expect(await passed({ destination: '*far*', sender: 'news@*' })).toEqual({ active: 1 })
    expect(await passed({}, null, ids.active)).toEqual({ active: 1, due: 1 })
    expect(await passed({}, ['deferred', 'hold'])).toEqual({ hold: 1 })
    for (const filter of [{ destination: 'slow.example' }, { queue: 'hold' }, { queue: 'deferred' }] as const)
      expect(await passed(filter)).toEqual({})
    expect(await passed({}, ['hold'])).toEqual({})
  })

  test('a condition that no filter has is refused, never ignored', async () => {
    const later = { ...ANY_MESSAGE, domain: 'far.example' }
    await expect(list(later)).rejects.toThrow('a queue cannot be filtered by domain')
  })

  test('details need the full id', async () => {
    const { reader } = subject()
    expect((await reader.details(formatQueueId(T0, ids.fresh)))?.message.id).toBe(ids.fresh)
    expect(await reader.details(formatQueueId(T0 + 1, ids.fresh))).toBeUndefined()
    expect(await reader.details('nonsense')).toBeUndefined()
  })

  test('content is read chunk by chunk', async () => {
    const { store, reader } = subject()
    const message = (await list({}))[0]?.message
    if (message === undefined) throw new Error('nothing is listed')
    expect(Buffer.from((await reader.readChunk(message, 0)) ?? [])).toEqual(await contentOf(store, message.contentId))
    expect(await reader.readChunk(message, 1)).toBeUndefined()
  })

  test('recipients waiting per destination', async () => {
    const { store, reader } = subject()
    const all = [
      { destination: 'far.example', waiting: 1, leased: 1, nextDueAt: T0 },
      { destination: 'slow.example', waiting: 1, leased: 0, nextDueAt: T0 + 60 * MIN },
    ]
    expect(await reader.destinationLoads({ after: '', limit: 10 })).toEqual(all)
    expect(await reader.destinationLoads({ after: '', limit: 1 })).toEqual(all.slice(0, 1))
    expect(await reader.destinationLoads({ after: 'far.example', limit: 10 })).toEqual(all.slice(1))
    expect(await reader.destinationNames({ after: '', limit: 10 })).toEqual(['far.example', 'slow.example'])
    expect(await reader.destinationNames({ after: 'far.example', limit: 1 })).toEqual(['slow.example'])
    await claim(store, T0 + 60 * MIN, { destination: 'slow.example' })
    expect(await reader.destinationLoads({ after: 'far.example', limit: 10 })).toEqual([
      { destination: 'slow.example', waiting: 0, leased: 1, nextDueAt: null },
    ])
  })

  test('live recipients with their ages, by queue', async () => {
    const { reader } = subject()
    const ages = (queues: Parameters<typeof reader.ages>[0]['queues'], after = 0, limit = 10) => reader.ages({ after, limit, queues })
    expect(await ages(['incoming', 'deferred'])).toEqual([
      { cursor: first(ids.fresh), sender: 'app@us.example', address: 'Ann+new@far.example', arrivedAt: T0, message: ids.fresh },
      { cursor: first(ids.deferred), sender: 'app@us.example', address: 'eve@slow.example', arrivedAt: T0 + 2, message: ids.deferred },
    ])
    expect(await ages(['hold', 'active', 'incoming'], first(ids.fresh), 1)).toMatchObject([{ message: ids.active }])
  })

  test('messages and recipients are counted by queue', async () => {
    const counts = await subject().reader.counts()
    expect(counts.toSorted((a, b) => a.oldestArrival - b.oldestArrival)).toEqual(
      (['incoming', 'active', 'deferred', 'hold', 'corrupt'] as const).map((name, n) => ({
        queue: name,
        messages: 1,
        recipients: 1,
        oldestArrival: T0 + n,
      })),
    )
  })

  test('recipients of queued mail are counted by class and share, a slice of messages at a time', async () => {
    const { reader, store } = subject()
    const slow = { name: 'counted', band: 31 }
    await store.records.classBands.add(slow)
    const shop = await queue(store, { at: T0 + 6, share: 'shop', to: [{ address: 'a@x.example' }, { address: 'b@y.example' }] })
    await queue(store, { at: T0 + 7, share: 'shop', hold: true })
    const last = await queue(store, { at: T0 + 8, share: 'shop', ofClass: slow })
    expect(await reader.shareLoads({ after: 0, size: 2 })).toEqual({
      last: ids.active,
      loads: [{ class: null, share: null, recipients: 2 }],
    })
    const all = await reader.shareLoads({ after: 0, size: 100 })
    const byName = (a: ShareLoad, b: ShareLoad): number => String([a.class, a.share]).localeCompare(String([b.class, b.share]))
    expect({ ...all, loads: all.loads.toSorted(byName) }).toEqual({
      last,
      loads: [
        { class: null, share: null, recipients: 3 },
        { class: null, share: 'shop', recipients: 2 },
        { class: 'counted', share: 'shop', recipients: 1 },
      ],
    })
    expect(await reader.shareLoads({ after: shop - 1, size: 1 })).toEqual({
      last: shop,
      loads: [{ class: null, share: 'shop', recipients: 2 }],
    })
    expect(await reader.shareLoads({ after: last, size: 5 })).toEqual({ last: null, loads: [] })
  })

  test('a page by ids, and messages by name, in the trash too', async () => {
    const { reader } = subject()
    expect(await reader.find({ ...ANY_MESSAGE, recipient: '*@far.example' }, { after: ids.fresh, limit: 1 })).toEqual([
      { id: ids.active, createdAt: T0 + 1, queue: 'active' },
    ])
    const names = [formatQueueId(T0 + 5, ids.trash), 'nonsense', formatQueueId(T0 + 1, ids.fresh), formatQueueId(T0, ids.fresh)]
    expect(await reader.named(names)).toEqual([
      { id: ids.trash, createdAt: T0 + 5, queue: 'trash' },
      undefined,
      undefined,
      { id: ids.fresh, createdAt: T0, queue: 'incoming' },
    ])
  })

  test('the load of one destination', async () => {
    const { reader } = subject()
    expect(await reader.destinationLoad('far.example')).toEqual({ destination: 'far.example', waiting: 1, leased: 1, nextDueAt: T0 })
    expect(await reader.destinationLoad('nowhere.example')).toEqual({
      destination: 'nowhere.example',
      waiting: 0,
      leased: 0,
      nextDueAt: null,
    })
  })
}
