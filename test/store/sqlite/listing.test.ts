import { expect, test } from 'vitest'
import { formatQueueId } from '../../../src/mail/queue-id.ts'
import { recipientId } from '../../../src/mail/message.ts'
import { mulberry32 } from '../../../src/system/random.ts'
import { CauseGroups } from '../../../src/store/counts/cause-groups.ts'
import { FEW } from '../../../src/store/sql/listing.ts'
import type { ListedMessage, QueueReader } from '../../../src/store/queue-reader.ts'
import { ANY_MESSAGE, type QueueFilter } from '../../../src/store/message-conditions.ts'
import { openInlineStore } from '../../../src/store/sqlite/clients/inline-store.ts'
import { deferred, queue, settleOne, T0 } from '../../conformance/mail.ts'
import { operate } from '../../support/operate.ts'

const MESSAGES = 400

/** Mail in all states for one to three of five destinations. */
async function mixedQueue() {
  const { store, reader } = await openInlineStore({ memory: true })
  const draw = mulberry32(7)
  const any = (most: number) => Math.floor(draw() * most)
  for (let n = 0; n < MESSAGES; n++) {
    const to = Array.from({ length: 1 + any(3) }, () => ({ address: `user${any(20)}@d${any(5)}.example` }))
    const sender = `app${any(3)}@us.example`
    const id = await queue(store, { at: T0 + n, leased: any(3) > 0, hold: any(8) === 0, sender, to })
    if (any(2) === 0) for (const [position] of to.entries()) await settleOne(store, id, deferred(recipientId(id, position), T0 + 1_000))
    if (any(10) === 0) await store.quarantine(id, 'unreadable')
    if (any(10) === 0) await operate(store, id, { kind: 'delete', now: T0, purge: false })
  }
  return { store, reader }
}

async function allOf(reader: QueueReader, filter: QueueFilter, limit: number, through?: number): Promise<readonly ListedMessage[]> {
  const found: ListedMessage[] = []
  for (;;) {
    const page = await reader.list(filter, { after: found.at(-1)?.message.id ?? 0, limit, through })
    found.push(...page)
    if (page.length < limit) return found
  }
}

test('an exact destination, found by its indexes, lists the same as a pattern, found by reading the queue', async () => {
  const { store, reader } = await mixedQueue()
  const others: readonly Partial<QueueFilter>[] = [
    {},
    { recipient: 'user1*' },
    { sender: 'app1@*', reply: 'busy' },
    { attemptsOver: 0 },
    { arrivedBefore: T0 + 200 },
    { arrivedAfter: T0 + 100, arrivedBefore: T0 + 200 },
    { expiresWithin: T0 + 200 },
    ...(['incoming', 'active', 'deferred', 'hold', 'corrupt', 'trash'] as const).map((name) => ({ queue: name })),
    { queueId: formatQueueId(T0 + 41, 42) },
  ]
  let found = 0
  for (const other of others) {
    for (const destination of ['d0.example', 'D3.example', 'd9.example']) {
      const exact: QueueFilter = { ...ANY_MESSAGE, ...other, destination }
      const pattern: QueueFilter = { ...exact, destination: `${destination}*` }
      for (const [limit, through] of [[7], [1_000], [7, 150]] as const) {
        const listed = await allOf(reader, exact, limit, through)
        expect(listed).toEqual(await allOf(reader, pattern, limit, through))
        found += listed.length
      }
    }
  }
  expect(found).toBeGreaterThan(1_000)
  await store.close()
})

test('the causes of a destination with many recipients, found by reading the queue, are all counted', async () => {
  const { store, reader } = await openInlineStore({ memory: true })
  const many = { sender: 'app@us.example', to: Array.from({ length: FEW }, (_, n) => ({ address: `user${n}@many.example` })) }
  await queue(store, { sender: 'app@us.example', to: [{ address: 'ann@few.example' }] })
  await queue(store, many)
  const counted = async (destination: string) => {
    const groups = new CauseGroups()
    for (let after: number | null = 0; after !== null;) {
      const slice = await reader.causes({ after, size: 7_000, destination })
      for (const group of slice.groups) groups.add(group)
      after = slice.through
    }
    return groups.all.map((group) => [group.destination, group.recipients])
  }
  expect(await counted('many.example')).toEqual([['many.example', FEW]])
  expect(await counted('few.example')).toEqual([['few.example', 1]])
  await store.close()
})
