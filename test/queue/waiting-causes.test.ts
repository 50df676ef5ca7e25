import { expect, test } from 'vitest'
import { waitingCauses } from '../../src/queue/waiting-causes.ts'
import { openMemoryStore } from '../../src/store/memory/memory-store.ts'
import { ANY_MESSAGE } from '../../src/store/message-conditions.ts'
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
