/** Contract of the reader of a store: listings with the newest message first, bounded recipients, and counts of a filter. Reads only. */
import { beforeAll, expect, test } from 'vitest'
import { recipientId } from '../../src/mail/message.ts'
import { recordsByName } from '../../src/presentation/recipient-status.ts'
import { messageJson } from '../../src/resources/message-json.ts'
import { ANY_MESSAGE, type QueueFilter } from '../../src/store/message-conditions.ts'
import type { ListedMessage } from '../../src/store/queue-reader.ts'
import { freshRecord } from '../../src/store/queue-store.ts'
import { WallView } from '../../src/system/wall-view.ts'
import { operate } from '../support/operate.ts'
import { deferred, delivered, LIFETIME, MIN, ownerOf, queue, T0, type Subject } from './mail.ts'

const WALL = new WallView(() => 0)

/** Filters of which the engines find the messages in different ways. */
const FILTERS: readonly Partial<QueueFilter>[] = [
  {},
  { sender: 'app@*' },
  { recipient: 'ann@*' },
  { destination: 'far.example' },
  { destination: 'far.example', sender: 'app@*' },
  { destination: '*.example', attemptsOver: 0 },
  { arrivedAfter: T0 + 2 },
  ...(['incoming', 'active', 'deferred', 'hold', 'trash'] as const).map((name) => ({ queue: name })),
  { queue: 'hold', destination: 'far.example' },
  { queue: 'deferred', destination: 'far.example' },
]

export function newestFirst(subject: () => Subject): void {
  let last = 0

  /** Forty messages in all queues. Some have several recipients, at one or at two destinations; some have left. */
  beforeAll(async () => {
    const { store } = subject()
    await store.saveDestination({ ...freshRecord('shut.example'), deadUntil: T0 + 5 * MIN, probeInterval: MIN })
    for (let n = 0; n < 40; n++) {
      const to = [
        { address: `ann@${n % 3 === 0 ? 'far' : 'near'}.example` },
        { address: 'bob@far.example' },
        { address: `eve@${n % 4 === 2 ? 'shut' : 'far'}.example` },
      ]
      const leased = n % 5 < 3
      const id = await queue(store, { at: T0 + n, to: to.slice(0, 1 + (n % 3)), leased, sender: n % 4 === 0 ? 'app@us.example' : '' })
      last = id
      const [first, second] = [recipientId(id, 0), recipientId(id, 1)]
      const settled = { owner: ownerOf(store), message: id, attempts: [] }
      if (n % 5 === 1) await store.settle({ ...settled, recipients: [deferred(first, T0 + MIN), deferred(second, T0 + MIN)] })
      if (n % 5 === 2) await store.settle({ ...settled, recipients: [delivered(first, T0)] })
      if (n % 5 === 3) await operate(store, id, { kind: 'hold' })
      if (n % 10 === 4) await operate(store, id, { kind: 'delete', now: T0, purge: false })
    }
  })

  const idsOf = async (filter: Partial<QueueFilter>) =>
    (await subject().reader.list({ ...ANY_MESSAGE, ...filter }, { after: 0, limit: 100 })).map(({ message }) => message.id)

  test.each(FILTERS)('pages backwards show each message once: %j', async (filter) => {
    const forwards = await idsOf(filter)
    const backwards: number[] = []
    for (let through: number | undefined; ;) {
      const page = await subject().reader.list({ ...ANY_MESSAGE, ...filter }, { after: 0, through, limit: 3, newestFirst: true })
      backwards.push(...page.map(({ message }) => message.id))
      if (page.length < 3) break
      through = (page.at(-1)?.message.id ?? 0) - 1
    }
    expect(forwards.length).toBeGreaterThan(0)
    expect(backwards).toEqual(forwards.toReversed())
  })

  test('a page backwards ends above an id', async () => {
    const { reader } = subject()
    const page = { after: last - 2, through: last - 1, limit: 10, newestFirst: true }
    expect((await reader.find(ANY_MESSAGE, page)).map(({ id }) => id)).toEqual((await idsOf({})).filter((id) => id === last - 1))
    expect(await reader.find(ANY_MESSAGE, { ...page, after: last })).toEqual([])
  })

  test.each(FILTERS)('a page with few recipients per message differs in nothing else: %j', async (filter) => {
    const { reader } = subject()
    const wanted = { ...ANY_MESSAGE, ...filter }
    const all = await reader.list(wanted, { after: 0, limit: 100 })
    const short = await reader.list(wanted, { after: 0, limit: 100, recipients: 1 })
    expect(short.map((one) => ({ ...one, groups: undefined }))).toEqual(
      all.map((one) => ({ ...one, recipients: one.recipients.slice(0, 1) })),
    )
    const records = recordsByName(await reader.destinationRecords())
    const shown = (one: ListedMessage) => ({ ...messageJson(one, records, WALL), recipients: null })
    expect(short.map(shown)).toEqual(all.map(shown))
    for (const { recipients, recipientCount } of all) expect(recipientCount).toBe(recipients.length)
  })

  test.each(FILTERS)('the count of a filter is that of its listing: %j', async (filter) => {
    const { reader } = subject()
    const wanted = { ...ANY_MESSAGE, ...filter }
    const listed = await reader.list(wanted, { after: 0, limit: 100 })
    const counted = { messages: 0, bytes: 0 }
    const destinations = new Map<string, number>()
    const senders = new Map<string, number>()
    const arrivals = listed.map(({ message }) => message.arrivedAt)
    const bounds = [0, ...arrivals, Math.max(0, ...arrivals) + 1]
    const earlier = bounds.map(() => 0)
    let oldest = Infinity
    for (let after: number | null = 0; after !== null;) {
      const page = { after, through: last, size: 7, queues: null, destinations: true, senders: true, bounds }
      const survey: Awaited<ReturnType<typeof reader.survey>> = await reader.survey(wanted, page)
      for (const key of ['messages', 'bytes'] as const) counted[key] += survey[key]
      for (const { sender, messages } of survey.senders) senders.set(sender, (senders.get(sender) ?? 0) + messages)
      for (const { destination, recipients } of survey.destinations)
        destinations.set(destination, (destinations.get(destination) ?? 0) + recipients)
      oldest = Math.min(oldest, survey.oldestArrival ?? Infinity)
      for (const [n, count] of survey.arrivedBefore.entries()) earlier[n] = (earlier[n] ?? 0) + count
      after = survey.last
    }
    const recipients = listed.flatMap((one) => one.recipients)
    expect(counted).toEqual({
      messages: listed.length,
      bytes: listed.reduce((sum, { message }) => sum + message.size, 0),
    })
    for (const [sender, count] of senders) expect(count).toBe(listed.filter(({ message }) => message.sender === sender).length)
    expect([...senders.values()].reduce((sum, count) => sum + count, 0)).toBe(listed.length)
    expect(oldest).toBe(Math.min(...arrivals))
    expect(earlier).toEqual(bounds.map((bound) => arrivals.filter((at) => at < bound).length))
    for (const [destination, count] of destinations) expect(count).toBe(recipients.filter((one) => one.destination === destination).length)
    expect([...destinations.values()].reduce((sum, count) => sum + count, 0)).toBe(recipients.length)
  })

  test('only the messages of given queues are counted', async () => {
    const { reader } = subject()
    const all = await reader.list(ANY_MESSAGE, { after: 0, limit: 100 })
    for (const queues of [['hold'], ['active', 'hold'], ['incoming', 'active', 'deferred', 'hold']] as const) {
      const { messages, last: end } = await reader.survey(ANY_MESSAGE, { after: 0, through: last, size: 100, queues, destinations: false })
      expect(messages).toBe(all.filter((one) => queues.some((name) => name === one.queue)).length)
      expect(end).toBeNull()
    }
  })

  test('the highest id is that of the last message in the queue or the trash', async () => {
    const { store, reader } = subject()
    expect(await reader.lastId()).toBe(last)
    store.nextId()
    expect(await reader.lastId()).toBe(last)
    const id = await queue(store)
    await operate(store, id, { kind: 'delete', now: T0, purge: false })
    expect(await reader.lastId()).toBe(id)
    await operate(store, id, { kind: 'delete', now: T0, purge: true })
    expect(await reader.lastId()).toBe(last)
  })

  test('recipients whose lifetime ends soon are counted up to a limit', async () => {
    const { reader } = subject()
    expect(await reader.expiring(T0 + LIFETIME, 100)).toBe(0)
    const all = await reader.expiring(T0 + 2 * LIFETIME, 100)
    expect(all).toBeGreaterThan(5)
    expect(await reader.expiring(T0 + 2 * LIFETIME, 5)).toBe(5)
    expect(await reader.expiring(T0 + LIFETIME + 20, 100)).toBeLessThan(all)
  })
}
