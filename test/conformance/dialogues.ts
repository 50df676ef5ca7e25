/** Contract of the store: dialogues of attempts, which are kept with the settlement that refers to them. */
import { expect, test } from 'vitest'
import { formatQueueId } from '../../src/mail/queue-id.ts'
import type { QueueStore } from '../../src/store/queue-store.ts'
import type { StoredSession } from '../../src/store/records/stored-session.ts'
import { attempt, BUSY, claim, deferred, delivered, first, MIN, ownerOf, queue, T0, type Subject } from './mail.ts'

const stored = (id: string, more: Partial<StoredSession> = {}): StoredSession => ({
  id,
  at: T0,
  destination: 'far.example',
  source: '192.0.2.9',
  host: 'mx.far.example[192.0.2.1]:25',
  bytes: Uint8Array.of(0, 1, 2, 255),
  ...more,
})

async function settleWith(store: QueueStore, sessions: readonly StoredSession[]): Promise<number> {
  const message = await queue(store, { leased: true })
  const attempts = [{ ...attempt(first(message), T0), session: sessions[0]?.id }]
  await store.settle({ owner: ownerOf(store), message, recipients: [deferred(first(message), T0 + MIN)], attempts, sessions })
  return message
}

export function dialogues(subject: () => Subject): void {
  test('the attempt names its dialogue, in the queue, at the next claim and in the history', async () => {
    const { store, reader } = subject()
    const id = await settleWith(store, [stored('a'), stored('b', { source: null })])
    const { sessions } = reader.records
    const [a, b] = [await sessions.of('a'), await sessions.of('b')]
    expect({ ...a, bytes: [...(a?.bytes ?? [])] }).toEqual({ ...stored('a'), bytes: [0, 1, 2, 255] })
    expect(b?.source).toBeNull()
    expect(await sessions.of('c')).toBeUndefined()
    const queueId = formatQueueId(T0, id)
    expect((await reader.details(queueId))?.history).toEqual([{ ...attempt(first(id), T0), session: 'a' }])
    await claim(store, T0 + MIN)
    const attempts = [attempt(first(id), T0 + MIN, 'delivered')]
    await store.settle({ owner: ownerOf(store), message: id, recipients: [delivered(first(id), T0 + MIN)], attempts })
    const gone = await reader.details(queueId)
    expect(gone?.queue).toBe('gone')
    expect(gone?.history.map(({ session }) => session)).toEqual(['a', undefined])
  })

  test('one that is there already stays as it is', async () => {
    const { store, reader } = subject()
    await settleWith(store, [stored('a')])
    await settleWith(store, [stored('a', { host: 'another' })])
    expect((await reader.records.sessions.of('a'))?.host).toBe(stored('a').host)
    expect(await reader.records.sessions.use()).toEqual({ count: 1, bytes: 4 })
  })

  test('a settlement of another owner, and one of unknown mail, keep none', async () => {
    const { store, reader } = subject()
    await store.settle({ owner: ownerOf(store), message: 4711, recipients: [], attempts: [], sessions: [] })
    const message = await queue(store, { leased: true })
    const recipients = [{ ...deferred(first(message), T0 + MIN), last: BUSY }]
    await store.settle({ owner: ownerOf(store) + 1, message, recipients, attempts: [], sessions: [stored('a')] })
    expect(await reader.records.sessions.use()).toEqual({ count: 0, bytes: 0 })
  })

  test('the old ones are pruned, and the oldest beyond the limit', async () => {
    const { store, reader } = subject()
    const { prune } = store.records.sessions
    await settleWith(
      store,
      Array.from({ length: 10 }, (_, n) => stored(`s${n}`, { at: T0 + n })),
    )
    const kept = async () => {
      const all = await Promise.all(Array.from({ length: 10 }, (_, n) => reader.records.sessions.of(`s${n}`)))
      return all.flatMap((one) => one?.id ?? [])
    }
    expect(await prune({ before: T0, limit: 40 })).toBe(false)
    expect(await prune({ before: T0 + 2, limit: 40 })).toBe(true)
    expect(await kept()).toEqual(['s2', 's3', 's4', 's5', 's6', 's7', 's8', 's9'])
    expect(await prune({ before: T0, limit: 13 })).toBe(true)
    expect(await kept()).toEqual(['s7', 's8', 's9'])
    expect(await prune({ before: T0, limit: 12 })).toBe(false)
    expect(await prune({ before: T0, limit: 0 })).toBe(true)
    expect(await kept()).toEqual([])
  })
}
