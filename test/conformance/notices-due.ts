/**
 * Contract of the store: due notices.
 */
import { expect, test } from 'vitest'
import { formatQueueId } from '../../src/mail/queue-id.ts'
import { recipientId } from '../../src/mail/message.ts'
import { bounced, claim, deferred, delivered, first, mail, MIN, queue, settleOne, T0, UNKNOWN, ownerOf, type Subject } from './mail.ts'
import { operate } from '../support/operate.ts'
import { ANY_MESSAGE } from '../../src/store/message-conditions.ts'

export function noticesDue(subject: () => Subject): void {
  const bouncedMail = async () => {
    const { store } = subject()
    const id = await queue(store, { leased: true })
    const result = await settleOne(store, id, bounced(first(id), T0 + 1))
    return { id, result, ann: first(id) }
  }

  test('a notice becomes due in the transaction of its outcome, and keeps the message', async () => {
    const { store } = subject()
    const { id, result, ann } = await bouncedMail()
    expect(result).toEqual({ removed: false, noticeDue: true })
    const owed = await store.noticesDueOf(id)
    expect(owed).toMatchObject({
      message: { id },
      warnings: 0,
      recipients: [{ id: ann, state: 'bounced', settledAt: T0 + 1, noticeDue: 'failure', last: UNKNOWN }],
    })
    expect(await store.messagesWithNoticesDue(0, 10)).toEqual([owed])
    expect(await store.messagesWithNoticesDue(id, 10)).toEqual([])
  })

  test('a notice is cleared in the transaction that queues it, and then the message leaves', async () => {
    const { store, reader } = subject()
    const { id, ann } = await bouncedMail()
    const notice = mail(store, { sender: '', to: [{ address: 'app@us.example' }] })
    expect(
      await store.report({
        message: id,
        noticesSettled: [{ recipient: ann, noticeDue: 'failure' }],
        notices: [notice],
        late: [],
        warnings: 0,
        warnAt: null,
      }),
    ).toEqual({ removed: true, entered: true })
    expect(await store.noticesDueOf(id)).toBeUndefined()
    expect(await store.messagesWithNoticesDue(0, 10)).toEqual([])
    expect(await reader.list(ANY_MESSAGE, { after: 0, limit: 10 })).toMatchObject([{ message: { id: notice.message.id, sender: '' } }])
    expect(await reader.details(formatQueueId(T0, id))).toMatchObject({ queue: 'gone', recipients: [{ state: 'bounced' }] })
    expect((await reader.details(formatQueueId(T0, id)))?.recipients[0]?.noticeDue).toBeUndefined()
  })

  test('a repeated report queues no second notice', async () => {
    const { store, reader } = subject()
    const id = await queue(store, { leased: true, to: [{ address: 'ann@far.example' }, { address: 'bob@far.example' }] })
    await settleOne(store, id, bounced(first(id), T0))
    const report = {
      message: id,
      noticesSettled: [{ recipient: first(id), noticeDue: 'failure' as const }],
      late: [],
      warnings: 0,
      warnAt: null,
    }
    expect(await store.report({ ...report, notices: [mail(store, { sender: '' })] })).toEqual({ removed: false, entered: true })
    expect(await store.report({ ...report, notices: [mail(store, { sender: '' })] })).toEqual({ removed: false, entered: false })
    expect(await reader.list({ ...ANY_MESSAGE, sender: '' }, { after: 0, limit: 10 })).toHaveLength(1)
  })

  test('a report that became outdated while its notices were written changes nothing', async () => {
    const { store, reader } = subject()
    const id = await queue(store, { leased: true, to: [{ address: 'ann@far.example' }, { address: 'bob@far.example' }] })
    const [ann, bob] = [recipientId(id, 0), recipientId(id, 1)]
    await settleOne(store, id, deferred(ann, T0 + MIN))
    await store.markDelayNoticeDue(id, [ann])
    const noticesSettled = [{ recipient: ann, noticeDue: 'delay' as const }]
    const warning = { message: id, noticesSettled, late: [], warnings: 1, warnAt: T0 + 60 * MIN }
    await settleOne(store, id, delivered(bob, T0 + 1))
    expect(await store.report({ ...warning, late: [ann, bob], notices: [mail(store, { sender: '' })] })).toEqual({
      removed: false,
      entered: false,
    })
    await claim(store, T0 + MIN)
    await settleOne(store, id, bounced(ann, T0 + MIN))
    for (const owed of [noticesSettled, [...noticesSettled, { recipient: ann, noticeDue: 'failure' as const }]]) {
      const report = { ...warning, noticesSettled: owed, notices: [mail(store, { sender: '' })] }
      expect(await store.report(report)).toEqual({ removed: false, entered: false })
    }
    expect(await store.noticesDueOf(id)).toMatchObject({ warnings: 0, recipients: [{ id: ann, noticeDue: 'failure' }] })
    expect(await reader.list({ ...ANY_MESSAGE, sender: '' }, { after: 0, limit: 10 })).toEqual([])
  })

  test('a notice that cannot be queued stays due', async () => {
    const { store } = subject()
    const { id, ann } = await bouncedMail()
    const notice = mail(store, { sender: '' })
    const clash = { ...notice, message: { ...notice.message, id } }
    await expect(
      store.report({
        message: id,
        noticesSettled: [{ recipient: ann, noticeDue: 'failure' }],
        notices: [clash],
        late: [],
        warnings: 0,
        warnAt: null,
      }),
    ).rejects.toThrow()
    expect(await store.noticesDueOf(id)).toBeDefined()
  })

  test('exactly the reported notices are cleared', async () => {
    const { store } = subject()
    const id = await queue(store, { leased: true, to: [{ address: 'ann@far.example' }, { address: 'bob@far.example' }] })
    const [ann, bob] = [recipientId(id, 0), recipientId(id, 1)]
    await store.settle({
      owner: ownerOf(store),
      message: id,
      recipients: [bounced(ann, T0), { ...delivered(bob, T0), noticeDue: 'success' }],
      attempts: [],
    })
    await store.report({
      message: id,
      noticesSettled: [{ recipient: ann, noticeDue: 'failure' }],
      notices: [],
      late: [],
      warnings: 0,
      warnAt: null,
    })
    expect((await store.noticesDueOf(id))?.recipients).toMatchObject([{ id: bob, noticeDue: 'success' }])
    expect(
      await store.report({
        message: id,
        noticesSettled: [{ recipient: bob, noticeDue: 'success' }],
        notices: [],
        late: [],
        warnings: 0,
        warnAt: null,
      }),
    ).toEqual({ removed: true, entered: true })
  })

  test('messages with notices due are listed by id, in pages', async () => {
    const { store } = subject()
    const ids = [(await bouncedMail()).id, await queue(store), (await bouncedMail()).id, (await bouncedMail()).id]
    const page = (after: number) => store.messagesWithNoticesDue(after, 2).then((found) => found.map(({ message }) => message.id))
    expect(await page(0)).toEqual([ids[0], ids[2]])
    expect(await page(ids[2] ?? 0)).toEqual([ids[3]])
  })

  test('a delay notice becomes due, is marked, reported and counted', async () => {
    const { store } = subject()
    const id = await queue(store, { leased: true })
    expect((await store.nextDeadlines()).warnAt).toBeNull()
    await store.settle({
      owner: ownerOf(store),
      message: id,
      recipients: [deferred(first(id), T0 + 5 * MIN)],
      attempts: [],
      warnAt: T0 + 60 * MIN,
    })
    expect((await store.nextDeadlines()).warnAt).toBe(T0 + 60 * MIN)
    expect(await store.claimWarnings(T0 + 60 * MIN - 1, 10)).toEqual([])
    expect(await store.claimWarnings(T0 + 60 * MIN, 10)).toMatchObject([
      { message: { id }, warnings: 0, recipients: [{ id: first(id), state: 'waiting' }] },
    ])
    await store.markDelayNoticeDue(id, [first(id)])
    expect(await store.noticesDueOf(id)).toMatchObject({ recipients: [{ noticeDue: 'delay', state: 'waiting' }] })
    await store.report({
      message: id,
      noticesSettled: [{ recipient: first(id), noticeDue: 'delay' }],
      notices: [],
      late: [],
      warnings: 1,
      warnAt: T0 + 120 * MIN,
    })
    expect(await store.noticesDueOf(id)).toBeUndefined()
    expect((await store.nextDeadlines()).warnAt).toBe(T0 + 120 * MIN)
    expect((await claim(store, T0 + 5 * MIN)).requests[0]?.recipients[0]?.warnings).toBe(1)
  })

  test('a delay notice lists the other live recipients, a failure notice does not', async () => {
    const { store } = subject()
    const to = ['ann@far.example', 'bob@far.example', 'cat@far.example'].map((address) => ({ address }))
    const id = await queue(store, { leased: true, to })
    const [ann, bob, cat] = [recipientId(id, 0), recipientId(id, 1), recipientId(id, 2)]
    await settleOne(store, id, bounced(cat, T0))
    expect((await store.noticesDueOf(id))?.recipients).toMatchObject([{ id: cat }])
    await settleOne(store, id, deferred(ann, T0 + 2))
    await store.markDelayNoticeDue(id, [bob])
    expect((await store.noticesDueOf(id))?.recipients).toMatchObject([
      { id: ann, state: 'waiting' },
      { id: bob, state: 'leased', noticeDue: 'delay' },
      { id: cat, state: 'bounced', noticeDue: 'failure' },
    ])
    expect((await store.noticesDueOf(id))?.recipients[0]?.noticeDue).toBeUndefined()
  })

  test('a delay notice can be postponed, and is not due while mail is held', async () => {
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

  test('a settlement without a warning time leaves it unchanged', async () => {
    const { store } = subject()
    const id = await queue(store, { leased: true })
    await store.postponeWarning(id, T0 + MIN)
    await settleOne(store, id, deferred(first(id), T0 + 2))
    expect((await store.nextDeadlines()).warnAt).toBe(T0 + MIN)
    await claim(store, T0 + 2)
    await store.settle({ owner: ownerOf(store), message: id, recipients: [deferred(first(id), T0 + 3)], attempts: [], warnAt: null })
    expect((await store.nextDeadlines()).warnAt).toBeNull()
  })

  test('a delay notice is due for live recipients only, survives a retry and ends with the recipient', async () => {
    const { store } = subject()
    const id = await queue(store, { leased: true, to: [{ address: 'ann@far.example' }, { address: 'bob@far.example' }] })
    const [ann, bob] = [recipientId(id, 0), recipientId(id, 1)]
    await settleOne(store, id, delivered(ann, T0))
    await store.markDelayNoticeDue(id, [ann, bob])
    await settleOne(store, id, deferred(bob, T0 + 1))
    expect((await store.noticesDueOf(id))?.recipients).toMatchObject([{ id: bob, noticeDue: 'delay' }])
    await claim(store, T0 + 1)
    expect(await settleOne(store, id, delivered(bob, T0 + 2))).toEqual({ removed: true, noticeDue: false })
  })
}
