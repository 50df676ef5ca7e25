/** Contract of the counts of shares: they equal a scan of the queue, whatever adds mail to it or removes it. */
import { setTimeout as pause } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { queueIdOf, recipientId, type MessageId } from '../../src/mail/message.ts'
import { ANY_MESSAGE } from '../../src/store/message-conditions.ts'
import { NO_SHARE, sumsOf, type ShareCount } from '../../src/store/share-counts.ts'
import type { QueueReader } from '../../src/store/queue-reader.ts'
import type { QueueStore } from '../../src/store/queue-store.ts'
import { operate } from '../support/operate.ts'
import { claim, deferred, delivered, first, LIFETIME, mail, MIN, ownerOf, settleOne, T0, type Subject } from './mail.ts'

/** The counts of an owner, as they are told. */
export function watchShares(store: QueueStore): () => Promise<readonly ShareCount[]> {
  const own = new Map<string, ShareCount>()
  store.shares.onShares(({ all, counts }) => {
    if (all) own.clear()
    for (const one of counts) own.set(one.share, one)
  })
  return async () => sorted(sumsOf([...own.values(), ...(await store.shares.sharesElsewhere())]).values())
}

const sorted = (counts: Iterable<ShareCount>): readonly ShareCount[] =>
  [...counts].filter(({ messages }) => messages > 0).toSorted((a, b) => (a.share < b.share ? -1 : 1))

export async function scanShares(reader: QueueReader): Promise<readonly ShareCount[]> {
  const found: ShareCount[] = []
  for (const { message, queue } of await reader.list(ANY_MESSAGE, { after: 0, limit: 1_000 })) {
    const details = await reader.details(queueIdOf(message))
    if (details !== undefined && queue !== 'corrupt' && queue !== 'trash')
      found.push({ share: details.message.share ?? NO_SHARE, messages: 1, bytes: details.message.size })
  }
  return sorted(sumsOf(found).values())
}

export async function countAll(store: QueueStore): Promise<void> {
  while (!(await store.shares.countShares(true))) await pause(5)
}

export function shareCounting(subject: () => Subject): void {
  const enter = async (share: string | undefined, options: Parameters<typeof mail>[1] = {}): Promise<MessageId> => {
    const { store } = subject()
    const entry = mail(store, options)
    await store.enqueue({ ...entry, message: { ...entry.message, share } })
    return entry.message.id
  }

  test('the counts equal a scan after everything that adds or removes mail', async () => {
    const { store, reader, moves } = subject()
    const told = watchShares(store)
    const before = [await enter('a'), await enter(undefined), await enter('b', { hold: true })]
    await operate(store, before[0] ?? 0, { kind: 'delete', now: T0, purge: false })
    expect(await told()).toEqual([])
    await countAll(store)
    const equal = async (expected: number) => {
      const counts = await told()
      expect(counts).toEqual(await scanShares(reader))
      expect(counts.reduce((sum, { messages }) => sum + messages, 0)).toBe(expected)
    }
    await equal(2)
    await operate(store, before[0] ?? 0, { kind: 'restore' })
    await equal(3)
    const leased = await enter('a', { leased: true, content: [Buffer.from('Subject: hi\r\n\r\nhello\r\n')] })
    const several = await enter('b', { leased: true, to: [{ address: 'ann@far.example' }, { address: 'bob@far.example' }] })
    await equal(5)
    await settleOne(store, leased, delivered(first(leased), T0))
    await settleOne(store, several, delivered(first(several), T0))
    await equal(4)
    await settleOne(store, several, deferred(recipientId(several, 1), T0 + MIN))
    await claim(store, T0 + MIN, { limit: 1 })
    await equal(4)
    const held = await enter('c')
    await operate(store, held, { kind: 'hold' })
    await equal(5)
    const newId = store.nextId()
    await operate(store, held, { kind: 'requeue', now: T0, newId, expiresAt: T0 + LIFETIME })
    await equal(5)
    await store.quarantine(newId, 'cannot be read')
    await equal(4)
    await operate(store, newId, { kind: 'delete', now: T0, purge: true })
    await operate(store, before[1] ?? 0, { kind: 'delete', now: T0, purge: false })
    await operate(store, before[1] ?? 0, { kind: 'delete', now: T0, purge: true })
    await equal(3)
    if (moves !== undefined) {
      const target = { kind: 'directory', name: '/tmp/other' } as never
      const moved = await enter('moved')
      await equal(4)
      const { messages } = await moves.beginMove({ target, after: moved - 1, through: moved, limit: 9, withNoticesDue: false })
      expect(messages).toHaveLength(1)
      await equal(3)
      await moves.undoMove([moved])
      await equal(4)
    }
    await store.shares.countShares(false)
    await enter('a')
    expect(await told()).toEqual([])
    await countAll(store)
    expect(await told()).toEqual(await scanShares(reader))
    expect(ownerOf(store)).toBeGreaterThan(0)
  })
}

export function sharesAcrossRestarts(subject: () => Subject, replace: (next: Subject) => void): void {
  test('the counts go on after a crash, and a count that was interrupted begins anew', async () => {
    const { store } = subject()
    const entry = (share: string) => {
      const one = mail(subject().store, { leased: true })
      return { ...one, message: { ...one.message, share } }
    }
    await countAll(store)
    const entries = ['a', 'a', 'b'].map(entry)
    for (const one of entries) await store.enqueue(one)
    const [gone] = entries
    if (gone !== undefined) await settleOne(store, gone.message.id, delivered(first(gone.message.id), T0))
    const { crash } = subject()
    if (crash === undefined) throw new Error('the store dies with its owner')
    const next = await crash()
    replace(next)
    const told = watchShares(next.store)
    await countAll(next.store)
    expect(await told()).toEqual([
      { share: 'a', messages: 1, bytes: gone?.message.size },
      { share: 'b', messages: 1, bytes: gone?.message.size },
    ])
    expect(await told()).toEqual(await scanShares(next.reader))
  })
}
