/**
 * Promises of the store about words owed to senders.
 */
import { expect, test } from 'vitest'
import { formatQueueId } from '../../src/mail/queue-id.ts'
import { recipientId } from '../../src/queue/message.ts'
import { bounced, claim, deferred, delivered, first, mail, MIN, queue, settleOne, T0, UNKNOWN, type Subject } from './mail.ts'
import { operate } from '../support/operate.ts'

export function debts(subject: () => Subject): void {
  const bouncedMail = async () => {
    const { store } = subject()
    const id = await queue(store, { leased: true })
    const result = await settleOne(store, id, bounced(first(id), T0 + 1))
    return { id, result, ann: first(id) }
  }

  test('a debt is written with the outcome that causes it, and keeps the message', async () => {
    const { store } = subject()
    const { id, result, ann } = await bouncedMail()
    expect(result).toEqual({ removed: false, indebted: true })
    const owed = await store.debtsOf(id)
    expect(owed).toMatchObject({
      message: { id },
      warnings: 0,
      recipients: [{ id: ann, state: 'bounced', settledAt: T0 + 1, debt: 'failure', last: UNKNOWN }],
    })
    expect(await store.indebted(0, 10)).toEqual([owed])
    expect(await store.indebted(id, 10)).toEqual([])
  })

  test('a debt is paid in the transaction that queues the notice, and then the message leaves', async () => {
    const { store, reader } = subject()
    const { id, ann } = await bouncedMail()
    const notice = mail(store, { sender: '', to: [{ address: 'app@us.example' }] })
    expect(
      await store.report({
        message: id,
        paid: [{ recipient: ann, debt: 'failure' }],
        notices: [notice],
        late: [],
        warnings: 0,
        warnAt: null,
      }),
    ).toEqual({ removed: true, entered: true })
    expect(await store.debtsOf(id)).toBeUndefined()
    expect(await store.indebted(0, 10)).toEqual([])
    expect(reader.list({}, { after: 0, limit: 10, now: T0 })).toMatchObject([{ message: { id: notice.message.id, sender: '' } }])
    expect(reader.story(formatQueueId(T0, id), T0)).toMatchObject({ queue: 'gone', recipients: [{ state: 'bounced' }] })
    expect(reader.story(formatQueueId(T0, id), T0)?.recipients[0]?.debt).toBeUndefined()
  })

  test('a report that is repeated queues no second notice', async () => {
    const { store, reader } = subject()
    const id = await queue(store, { leased: true, to: [{ address: 'ann@far.example' }, { address: 'bob@far.example' }] })
    await settleOne(store, id, bounced(first(id), T0))
    const report = { message: id, paid: [{ recipient: first(id), debt: 'failure' as const }], late: [], warnings: 0, warnAt: null }
    expect(await store.report({ ...report, notices: [mail(store, { sender: '' })] })).toEqual({ removed: false, entered: true })
    expect(await store.report({ ...report, notices: [mail(store, { sender: '' })] })).toEqual({ removed: false, entered: false })
    expect(reader.list({ sender: '' }, { after: 0, limit: 10, now: T0 })).toHaveLength(1)
  })

  test('a report that has become untrue while its notices were written changes nothing', async () => {
    const { store, reader } = subject()
    const id = await queue(store, { leased: true, to: [{ address: 'ann@far.example' }, { address: 'bob@far.example' }] })
    const [ann, bob] = [recipientId(id, 0), recipientId(id, 1)]
    await settleOne(store, id, deferred(ann, T0 + MIN))
    await store.oweDelay(id, [ann])
    const paid = [{ recipient: ann, debt: 'delay' as const }]
    const warning = { message: id, paid, late: [], warnings: 1, warnAt: T0 + 60 * MIN }
    await settleOne(store, id, delivered(bob, T0 + 1))
    expect(await store.report({ ...warning, late: [ann, bob], notices: [mail(store, { sender: '' })] })).toEqual({
      removed: false,
      entered: false,
    })
    await claim(store, T0 + MIN)
    await settleOne(store, id, bounced(ann, T0 + MIN))
    for (const owed of [paid, [...paid, { recipient: ann, debt: 'failure' as const }]]) {
      const report = { ...warning, paid: owed, notices: [mail(store, { sender: '' })] }
      expect(await store.report(report)).toEqual({ removed: false, entered: false })
    }
    expect(await store.debtsOf(id)).toMatchObject({ warnings: 0, recipients: [{ id: ann, debt: 'failure' }] })
    expect(reader.list({ sender: '' }, { after: 0, limit: 10, now: T0 })).toEqual([])
  })

  test('a notice that cannot be queued leaves the debt standing', async () => {
    const { store } = subject()
    const { id, ann } = await bouncedMail()
    const notice = mail(store, { sender: '' })
    const clash = { ...notice, message: { ...notice.message, id } }
    await expect(
      store.report({ message: id, paid: [{ recipient: ann, debt: 'failure' }], notices: [clash], late: [], warnings: 0, warnAt: null }),
    ).rejects.toThrow()
    expect(await store.debtsOf(id)).toBeDefined()
  })

  test('exactly the debts that were paid are cleared', async () => {
    const { store } = subject()
    const id = await queue(store, { leased: true, to: [{ address: 'ann@far.example' }, { address: 'bob@far.example' }] })
    const [ann, bob] = [recipientId(id, 0), recipientId(id, 1)]
    await store.settle({ message: id, recipients: [bounced(ann, T0), { ...delivered(bob, T0), debt: 'success' }], attempts: [] })
    await store.report({ message: id, paid: [{ recipient: ann, debt: 'failure' }], notices: [], late: [], warnings: 0, warnAt: null })
    expect((await store.debtsOf(id))?.recipients).toMatchObject([{ id: bob, debt: 'success' }])
    expect(
      await store.report({ message: id, paid: [{ recipient: bob, debt: 'success' }], notices: [], late: [], warnings: 0, warnAt: null }),
    ).toEqual({ removed: true, entered: true })
  })

  test('the indebted come in the order of their ids, a page at a time', async () => {
    const { store } = subject()
    const ids = [(await bouncedMail()).id, await queue(store), (await bouncedMail()).id, (await bouncedMail()).id]
    const page = (after: number) => store.indebted(after, 2).then((found) => found.map(({ message }) => message.id))
    expect(await page(0)).toEqual([ids[0], ids[2]])
    expect(await page(ids[2] ?? 0)).toEqual([ids[3]])
  })

  test('a delay warning comes due, is owed, reported and counted', async () => {
    const { store } = subject()
    const id = await queue(store, { leased: true })
    expect((await store.nextDeadlines()).warnAt).toBeNull()
    await store.settle({ message: id, recipients: [deferred(first(id), T0 + 5 * MIN)], attempts: [], warnAt: T0 + 60 * MIN })
    expect((await store.nextDeadlines()).warnAt).toBe(T0 + 60 * MIN)
    expect(await store.claimWarnings(T0 + 60 * MIN - 1, 10)).toEqual([])
    expect(await store.claimWarnings(T0 + 60 * MIN, 10)).toMatchObject([
      { message: { id }, warnings: 0, recipients: [{ id: first(id), state: 'waiting' }] },
    ])
    await store.oweDelay(id, [first(id)])
    expect(await store.debtsOf(id)).toMatchObject({ recipients: [{ debt: 'delay', state: 'waiting' }] })
    await store.report({
      message: id,
      paid: [{ recipient: first(id), debt: 'delay' }],
      notices: [],
      late: [],
      warnings: 1,
      warnAt: T0 + 120 * MIN,
    })
    expect(await store.debtsOf(id)).toBeUndefined()
    expect((await store.nextDeadlines()).warnAt).toBe(T0 + 120 * MIN)
    expect((await claim(store, T0 + 5 * MIN)).requests[0]?.recipients[0]?.warnings).toBe(1)
  })

  test('a warning brings the other live recipients with it, a failure does not', async () => {
    const { store } = subject()
    const to = ['ann@far.example', 'bob@far.example', 'cat@far.example'].map((address) => ({ address }))
    const id = await queue(store, { leased: true, to })
    const [ann, bob, cat] = [recipientId(id, 0), recipientId(id, 1), recipientId(id, 2)]
    await settleOne(store, id, bounced(cat, T0))
    expect((await store.debtsOf(id))?.recipients).toMatchObject([{ id: cat }])
    await settleOne(store, id, deferred(ann, T0 + 2))
    await store.oweDelay(id, [bob])
    expect((await store.debtsOf(id))?.recipients).toMatchObject([
      { id: ann, state: 'waiting' },
      { id: bob, state: 'leased', debt: 'delay' },
      { id: cat, state: 'bounced', debt: 'failure' },
    ])
    expect((await store.debtsOf(id))?.recipients[0]?.debt).toBeUndefined()
  })

  test('a warning can be postponed, and is not due while mail is held', async () => {
    const { store } = subject()
    const id = await queue(store)
    await store.postponeWarning(id, T0 + MIN)
    expect((await store.nextDeadlines()).warnAt).toBe(T0 + MIN)
    await operate(store, id, { kind: 'hold' })
    expect((await store.nextDeadlines()).warnAt).toBeNull()
    expect(await store.claimWarnings(T0 + MIN, 10)).toEqual([])
    await operate(store, id, { kind: 'release' })
    expect(await store.claimWarnings(T0 + MIN, 10)).toHaveLength(1)
    await store.postponeWarning(id, null)
    expect(await store.claimWarnings(T0 + MIN, 10)).toEqual([])
  })

  test('a settlement leaves the warning time alone unless it speaks of it', async () => {
    const { store } = subject()
    const id = await queue(store, { leased: true })
    await store.postponeWarning(id, T0 + MIN)
    await settleOne(store, id, deferred(first(id), T0 + 2))
    expect((await store.nextDeadlines()).warnAt).toBe(T0 + MIN)
    await claim(store, T0 + 2)
    await store.settle({ message: id, recipients: [deferred(first(id), T0 + 3)], attempts: [], warnAt: null })
    expect((await store.nextDeadlines()).warnAt).toBeNull()
  })

  test('a delay is owed for live recipients only, survives a retry and ends with the recipient', async () => {
    const { store } = subject()
    const id = await queue(store, { leased: true, to: [{ address: 'ann@far.example' }, { address: 'bob@far.example' }] })
    const [ann, bob] = [recipientId(id, 0), recipientId(id, 1)]
    await settleOne(store, id, delivered(ann, T0))
    await store.oweDelay(id, [ann, bob])
    await settleOne(store, id, deferred(bob, T0 + 1))
    expect((await store.debtsOf(id))?.recipients).toMatchObject([{ id: bob, debt: 'delay' }])
    await claim(store, T0 + 1)
    expect(await settleOne(store, id, delivered(bob, T0 + 2))).toEqual({ removed: true, indebted: false })
  })
}
