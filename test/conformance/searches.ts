/**
 * Promises of the reader about causes of failures and about mail that has left the queue.
 */
import { expect, test } from 'vitest'
import { formatQueueId } from '../../src/mail/queue-id.ts'
import type { DeliveryStatus } from '../../src/mail/smtp-reply.ts'
import { recipientId } from '../../src/mail/message.ts'
import { CauseGroups } from '../../src/store/counts/cause-groups.ts'
import type { HistoryFilter } from '../../src/store/queue-reader.ts'
import { ANY_MESSAGE, type QueueFilter } from '../../src/store/message-conditions.ts'
import { attempt, deferred, delivered, first, MIN, ownerOf, queue, settleOne, T0, UNKNOWN, type Subject } from './mail.ts'
import { operate } from '../support/operate.ts'

const said = (reply: string): DeliveryStatus => ({ status: '4.2.1', reason: `host mx said: ${reply}`, reply, stage: 'rcpt' })

const ANY: HistoryFilter = { sender: null, recipient: null, outcome: null, class: null, status: null, since: null, until: null }

export function searches(subject: () => Subject): void {
  const fail = async (address: string, at: number, reply: string) => {
    const { store } = subject()
    const id = await queue(store, { at: T0, leased: true, to: [{ address }] })
    await settleOne(store, id, deferred(first(id), T0 + 60 * MIN, { last: said(reply) }), at)
    return id
  }

  async function causes(size: number, destination: string | null = null) {
    const groups = new CauseGroups()
    for (let after: number | null = 0; after !== null;) {
      const slice = await subject().reader.causes({ after, size, destination })
      for (const group of slice.groups) groups.add(group)
      after = slice.through
    }
    return groups.all.toSorted((a, b) => `${a.destination} ${a.cause} ${a.isHeld}`.localeCompare(`${b.destination} ${b.cause} ${b.isHeld}`))
  }

  test('recipients are counted by destination and cause, in slices of any size', async () => {
    await fail('ann@far.example', T0 + 1, '450 4.2.1 busy 17')
    const late = await fail('bob@far.example', T0 + 9, '450 4.2.1 busy 18')
    await fail('eve@far.example', T0 + 5, '450 4.2.1 full')
    const untried = await queue(subject().store, { to: [{ address: 'zoe@else.example' }] })
    const trashed = await fail('dan@far.example', T0, '450 4.2.1 full')
    await operate(subject().store, trashed, { kind: 'delete', now: T0, purge: false })
    const held = await fail('pat@far.example', T0 + 7, '450 4.2.1 full')
    await operate(subject().store, held, { kind: 'hold' })
    expect(untried).toBeGreaterThan(0)
    for (const size of [1, 2, 100]) {
      expect(await causes(size)).toMatchObject([
        { destination: 'else.example', kind: 'untried', isHeld: false, cause: null, recipients: 1, since: null, last: null, example: null },
        {
          destination: 'far.example',
          cause: '450 4.2.1 busy {n}',
          recipients: 2,
          since: T0 + 1,
          last: T0 + 9,
          example: { queueId: formatQueueId(T0, late), address: 'bob@far.example', status: said('450 4.2.1 busy 18') },
        },
        { destination: 'far.example', isHeld: false, cause: '450 4.2.1 full', recipients: 1, since: T0 + 5, last: T0 + 5 },
        { destination: 'far.example', isHeld: true, cause: '450 4.2.1 full', recipients: 1, since: T0 + 7, last: T0 + 7 },
      ])
    }
    const all = await causes(100)
    for (const size of [1, 2, 100])
      for (const name of ['else.example', 'far.example', 'none.example'])
        expect(await causes(size, name)).toEqual(all.filter(({ destination }) => destination === name))
  })

  test('a cause lasts since the first attempt of a recipient, if that had the same cause', async () => {
    const { store } = subject()
    const id = await queue(store, { leased: true, to: [{ address: 'a@far.example' }, { address: 'b@far.example' }] })
    const [a, b] = [recipientId(id, 0), recipientId(id, 1)]
    const attempts = [
      attempt(a, T0 + 1, 'deferred', said('450 busy 1')),
      attempt(a, T0 + 2, 'deferred', said('450 busy 2')),
      attempt(b, T0 + 3, 'deferred', said('450 full')),
      attempt(b, T0 + 4, 'deferred', said('450 slow')),
    ]
    const recipients = [deferred(a, T0 + MIN, { last: said('450 busy 2') }), deferred(b, T0 + MIN, { last: said('450 slow') })]
    await store.settle({ owner: ownerOf(store), message: id, recipients, attempts })
    expect(await causes(100)).toMatchObject([
      { cause: '450 busy {n}', since: T0 + 1, last: T0 + 2 },
      { cause: '450 slow', since: T0 + 4, last: T0 + 4 },
    ])
  })

  test('a reply is found by a part of it, or by a pattern of the whole of it', async () => {
    await fail('ann@far.example', T0, '450 4.2.1 busy 17, 100% full')
    await fail('bob@far.example', T0, '450 4.2.1 busy 17, 100% full, "later"')
    const found = async (reply: string) => {
      const listed = await subject().reader.list({ ...ANY_MESSAGE, reply }, { after: 0, limit: 9 })
      return listed.map(({ recipients }) => recipients[0]?.address.slice(0, 3)).join()
    }
    expect(await found('BUSY 17, 100% f')).toBe('ann,bob')
    expect(await found('busy 17, 1000')).toBe('')
    expect(await found('450 4.2.1 busy *, 100% full')).toBe('ann')
    expect(await found('*, "LATER"')).toBe('bob')
    expect(await found('host mx said: *')).toBe('ann,bob')
    expect(await found('busy*')).toBe('')
  })

  test('a status is found as it is stored, and as the code behind the three digits at the begin of the reply', async () => {
    const replies: Readonly<Record<string, string>> = {
      login: '535 5.7.8 credentials rejected, see 4.3.0',
      lines: '535-5.7.8 multiple lines',
      bare: '550 5.7.8',
      late: '535 credentials rejected: 5.7.8',
      glued: '550 5.7.8: no',
      long: '550 5.7.8000 no',
      deep: '550 5.7.8.1 no',
      short: '55 5.7.8 no',
      other: '550 3.7.8 no',
      quoted: '550 "535 5.7.8 no"',
      odd: '550 5.7.x_%\\ no',
    }
    for (const [name, reply] of Object.entries(replies)) await fail(`${name}@far.example`, T0, reply)
    const all = Object.keys(replies).join()
    const found = async (status: string, more: Partial<QueueFilter> = {}) => {
      const listed = await subject().reader.list({ ...ANY_MESSAGE, ...more, status }, { after: 0, limit: 99 })
      return listed.map(({ recipients }) => recipients[0]?.address.split('@', 1)[0]).join()
    }
    for (const status of ['5.7.8', '5.7.*', '*.8', '5*', '*7*', '**5.*.8**', `${'*'.repeat(60)}8`])
      expect(await found(status), status).toBe('login,lines,bare')
    for (const status of ['4.2.1', '4.2.*', '*.1', '*']) expect(await found(status), status).toBe(all)
    const hostile = [
      '5.7',
      '5.7.',
      '.7.8',
      '5_7_8',
      '5.7.%',
      '%',
      '_____',
      '[5]*',
      '5?7*',
      '5.7.8 *',
      '535 5.7.8*',
      '*credentials*',
      '4.3.0',
    ]
    for (const status of [...hostile, '3.7.8', '5.7.8.1', '*x*', '*_*', '*\\*', '*"*', '', ' 5.7.8', `${'*5'.repeat(60)}*`])
      expect(await found(status), status).toBe('')
    expect(await found('5.7.8', { reply: 'multiple' })).toBe('lines')
    const { messages } = await subject().reader.survey(
      { ...ANY_MESSAGE, destination: 'far.example', status: '5.7.8' },
      { after: 0, through: Number.MAX_SAFE_INTEGER, size: 100, queues: null, destinations: false },
    )
    expect(messages).toBe(3)
  })

  test('mail that has left is found by sender, recipient, outcome and time, the last one first', async () => {
    const { store, reader } = subject()
    const ends: string[] = []
    for (let n = 0; n < 5; n++) {
      const id = await queue(store, {
        at: T0,
        leased: true,
        sender: n === 0 ? 'news@us.example' : 'app@us.example',
        to: [{ address: `user${n}@far.example` }, { address: 'Ann@far.example' }],
      })
      ends.push(formatQueueId(T0, id))
      const bounced = { recipient: recipientId(id, 1), state: 'bounced', at: T0 + n * MIN, attempts: 1, last: UNKNOWN } as const
      const recipients = [delivered(first(id), T0 + n * MIN), n === 4 ? bounced : delivered(recipientId(id, 1), T0 + n * MIN)]
      await store.settle({ owner: ownerOf(store), message: id, recipients, attempts: [] })
    }
    await queue(store, { sender: 'news@us.example' })
    const found = async (filter: Partial<HistoryFilter>, limit = 2) => {
      const ids: number[] = []
      for (let before: number | null | undefined; before !== null;) {
        const page = await reader.departed({ ...ANY, ...filter }, { before: before ?? null, limit })
        expect(page.messages.length).toBeLessThanOrEqual(limit)
        ids.push(...page.messages.map(({ message }) => ends.indexOf(formatQueueId(message.createdAt, message.id))))
        before = page.next
      }
      return ids
    }
    for (const limit of [1, 2, 5, 9]) expect(await found({}, limit)).toEqual([4, 3, 2, 1, 0])
    expect(await found({ sender: 'NEWS@us.example' })).toEqual([0])
    expect(await found({ recipient: 'ann@*' })).toEqual([4, 3, 2, 1, 0])
    expect(await found({ recipient: 'user3@far.example' })).toEqual([3])
    expect(await found({ recipient: 'user_@far.example' })).toEqual([])
    expect(await found({ recipient: 'ann@far.example', outcome: 'bounced' })).toEqual([4])
    expect(await found({ recipient: 'user4@*', outcome: 'bounced' })).toEqual([])
    expect(await found({ outcome: 'expired' })).toEqual([])
    expect(await found({ since: T0 + 3 * MIN })).toEqual([4, 3])
    expect(await found({ since: T0 + 9 * MIN })).toEqual([])
    for (const limit of [1, 2, 9]) expect(await found({ until: T0 + 3 * MIN }, limit)).toEqual([2, 1, 0])
    expect(await found({ since: T0 + MIN, until: T0 + 3 * MIN }, 1)).toEqual([2, 1])
    expect(await found({ since: T0 + 3 * MIN, until: T0 + 2 * MIN })).toEqual([])
    expect(await found({ until: T0 })).toEqual([])
    const [last] = (await reader.departed(ANY, { before: null, limit: 1 })).messages
    expect(last).toEqual(await reader.details(ends[4] ?? ''))
  })
}
