import { expect, test } from 'vitest'
import { summedCauses, waitingCauses } from '../../src/queue/waiting-causes.ts'
import { openMemoryStore } from '../../src/store/memory/memory-store.ts'
import { ANY_MESSAGE } from '../../src/store/message-conditions.ts'
import { operate } from '../support/operate.ts'
import { deferred, first, queue, settleOne, T0 } from '../conformance/mail.ts'

/** A queue with one deferred recipient per reply. */
async function queueOf(replies: readonly string[]) {
  const { store, reader } = openMemoryStore()
  for (const [n, reply] of replies.entries()) {
    const id = await queue(store, { leased: true, to: [{ address: `user${n}@far.example` }] })
    const last = { status: '4.2.1', reason: `host mx said: ${reply}`, reply, stage: 'rcpt' } as const
    await settleOne(store, id, deferred(first(id), T0, { last }))
  }
  return reader
}

test.each([
  [['450 4.2.1 busy 1', '450 4.2.1 busy 2', '450 4.2.1 full']],
  [['450 4.7.1 Greylisted', '450 4.7.1 Greylisted for 300 seconds', '450 4.7.1 Greylisted for 20 seconds']],
  [['421 4.7.0 try later', '421 4.7.0 try later or never', '421 4.7.0 TRY LATER, or 7']],
  [['450 4.1.1 <a@x.example> unknown', '450 4.1.2 <b@x.example> unknown']],
  [['450', '450 1']],
  [[`450 4.2.1 it's "full" \\ 100% of 7 * 3`, `450 4.2.1 it's "full" \\ 90_ of 7`]],
  [['450 4.2.1 überfüllt 12', '450 4.2.1 später']],
])('the filter of each cause selects its recipients, and no others: %j', async (replies) => {
  const reader = await queueOf(replies)
  const causes = await waitingCauses(reader, null)
  expect(causes.reduce((sum, { recipients }) => sum + recipients, 0)).toBe(replies.length)
  for (const { filter, recipients, isExact } of causes) {
    expect(isExact).toBe(true)
    expect(await reader.list({ ...ANY_MESSAGE, ...filter }, { after: 0, limit: 99 })).toHaveLength(recipients)
  }
})

test('a filter is a short part of the reply where that is enough', async () => {
  const long = '421 4.7.0 Our system has detected an unusual rate of mail originating from your network 7'
  const causes = await waitingCauses(await queueOf([long, '450 4.2.1 busy 17']), 'far.example')
  expect(causes.map(({ filter }) => filter?.reply)).toEqual(['421 4.7.0 Our system has detected an unusual', '450 4.2.1 busy'])
  expect(causes.map(({ filter }) => filter?.destination)).toEqual(['far.example', 'far.example'])
})

test('a filter that selects other causes as well is marked', async () => {
  const causes = await waitingCauses(await queueOf(['450 1', '450 2 3']), null)
  expect(causes.map(({ cause, isExact }) => [cause, isExact])).toEqual([
    ['450 {n}', false],
    ['450 {n} {n}', true],
  ])
})

const DEAD = (n: number) => `connect to mx.dead.example[192.0.2.${n}]:25: Connection timed out`

/** Twelve dead domains, two with a full mailbox, one that is also greylisted, and mail that was not tried yet. */
async function manyDestinations() {
  const { store, reader } = openMemoryStore()
  const fail = async (address: string, reply: string) => {
    const id = await queue(store, { leased: true, to: [{ address }] })
    const last = { status: '4.2.1', reason: reply, reply, stage: 'rcpt' } as const
    await settleOne(store, id, deferred(first(id), T0, { last }))
    return id
  }
  for (let n = 0; n < 12; n++) await fail(`user@firm${n}.example`, DEAD(n))
  const held = await fail('ann@firm3.example', DEAD(3))
  await fail('bob@firm3.example', DEAD(3))
  await operate(store, held, { kind: 'hold' })
  await fail('ann@full.example', '452 4.2.2 mailbox full')
  await queue(store, { to: [{ address: 'eve@firm1.example' }] })
  await queue(store, { to: [{ address: 'eve@new.example' }] })
  return reader
}

test('causes are summed over destinations, those with the most recipients first, with mail on hold and mail not tried yet apart', async () => {
  const sums = summedCauses(await waitingCauses(await manyDestinations(), null))
  const cause = 'connect to mx.dead.example[{ip}]:{n}: Connection timed out'
  expect(sums.map((one) => [one.kind, one.isHeld, one.cause, one.recipients, one.destinations.length])).toEqual([
    ['failed', false, cause, 13, 12],
    ['untried', false, null, 2, 2],
    ['failed', false, '452 4.2.2 mailbox full', 1, 1],
    ['failed', true, cause, 1, 1],
  ])
  expect(sums[0]?.destinations[0]).toBe('firm3.example')
})

test('the filter of a sum selects its recipients at all destinations, and says when it selects mail on hold as well', async () => {
  const reader = await manyDestinations()
  const sums = summedCauses(await waitingCauses(reader, null))
  const found = await Promise.all(
    sums.map(async ({ filter, isExact }) => {
      if (filter === null) return null
      return [filter.destination, filter.queue, isExact, (await reader.list({ ...ANY_MESSAGE, ...filter }, { after: 0, limit: 99 })).length]
    }),
  )
  expect(found).toEqual([[null, null, false, 14], null, ['full.example', null, true, 1], ['firm3.example', 'hold', true, 1]])
})

test('causes beyond the hundred largest are one sum of rare causes', async () => {
  const replies = Array.from({ length: 103 }, (_, n) => `450 4.2.1 ${'x'.repeat(n + 1)}`)
  const sums = summedCauses(await waitingCauses(await queueOf([...replies, ...replies.slice(0, 100)]), null))
  expect(sums.map(({ recipients }) => recipients)).toEqual([3, ...Array.from({ length: 100 }, () => 2)])
  expect(sums[0]).toMatchObject({ kind: 'rare', cause: null, filter: null, destinations: ['far.example'] })
})
