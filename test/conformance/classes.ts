/** Contract of the store: the class of a message, which an operation changes with the band of its recipients. */
import { expect, test } from 'vitest'
import { formatQueueId } from '../../src/mail/queue-id.ts'
import { ANY_MESSAGE } from '../../src/store/message-conditions.ts'
import { operate } from '../support/operate.ts'
import { claim, deferred, delivered, first, mail, messagesIn, queue, settleOne, T0, type Subject } from './mail.ts'

const FAST = { name: 'fast', band: 2 } as const
const BULK = { name: 'bulk', band: 5 } as const

export function classesOfMail(subject: () => Subject): void {
  const withClasses = async () => {
    const { store } = subject()
    for (const one of [FAST, BULK]) await store.records.classBands.add(one)
  }
  const classOf = async (id: number) => (await subject().reader.details(formatQueueId(T0, id)))?.message.class

  test('a reclass moves waiting mail, and mail in delivery, to the band of the class', async () => {
    await withClasses()
    const { store } = subject()
    const id = await queue(store, { ofClass: BULK, to: [{ address: 'ann@far.example' }, { address: 'bob@far.example', leased: true }] })
    const result = await operate(store, id, { kind: 'reclass', class: 'fast' })
    expect(result).toEqual({ changed: true, woken: [{ destination: 'far.example', dueAt: T0 }] })
    expect(await classOf(id)).toBe('fast')
    expect((await claim(store, T0, BULK)).requests).toEqual([])
    const [request] = (await claim(store, T0, FAST)).requests
    expect(request?.message).toMatchObject({ id, class: 'fast' })
    expect(request?.recipients.map(({ address }) => address)).toEqual(['ann@far.example'])
    await settleOne(store, id, deferred(first(id) + 1, T0 + 5), T0)
    expect((await claim(store, T0 + 5, BULK)).requests).toEqual([])
    expect(messagesIn((await claim(store, T0 + 5, FAST)).requests)).toEqual([id])
    expect((await operate(store, id, { kind: 'reclass', class: 'fast' })).changed).toBe(false)
  })

  test('mail on hold keeps its new class, mail in the trash its former one, and null takes the class away', async () => {
    await withClasses()
    const { store } = subject()
    const id = await queue(store, { ofClass: BULK, hold: true })
    expect(await operate(store, id, { kind: 'reclass', class: null })).toEqual({ changed: true, woken: [] })
    expect(await classOf(id)).toBeUndefined()
    await operate(store, id, { kind: 'release' })
    expect(messagesIn((await claim(store, T0)).requests)).toEqual([id])
    const gone = await queue(store, { ofClass: BULK })
    await operate(store, gone, { kind: 'delete', now: T0, purge: false })
    expect((await operate(store, gone, { kind: 'reclass', class: 'fast' })).changed).toBe(false)
  })

  test('listings have the class and the share of a message', async () => {
    await withClasses()
    const { store, reader } = subject()
    await queue(store, { ofClass: BULK, share: 'shop.example' })
    await queue(store)
    for (const filter of [ANY_MESSAGE, { ...ANY_MESSAGE, destination: 'far.example' }]) {
      const listed = await reader.list(filter, { after: 0, limit: 10 })
      expect(listed.map(({ message }) => [message.class, message.share])).toEqual([
        ['bulk', 'shop.example'],
        [undefined, undefined],
      ])
    }
  })

  test('a recipient that was delivered stays as it is', async () => {
    await withClasses()
    const { store } = subject()
    const entry = mail(store, { ofClass: BULK, leased: true, to: [{ address: 'ann@far.example' }, { address: 'bob@far.example' }] })
    await store.enqueue(entry)
    const { id } = entry.message
    await settleOne(store, id, delivered(first(id), T0), T0)
    await operate(store, id, { kind: 'reclass', class: 'fast' })
    await settleOne(store, id, deferred(first(id) + 1, T0), T0)
    const [request] = (await claim(store, T0, FAST)).requests
    expect(request?.recipients.map(({ address }) => address)).toEqual(['bob@far.example'])
  })

  test('the former class is kept for the undo, apart from holds and times', async () => {
    await withClasses()
    const { store } = subject()
    const { reader } = subject()
    const begin = (action: string) =>
      store.records.audit.begin({
        at: T0,
        who: 'op',
        action,
        arguments: '',
        reason: null,
        expected: null,
        undoUntil: null,
        undoes: null,
        request: null,
      })
    const id = await queue(store, { ofClass: BULK })
    const round = async (action: string) => ({ operation: await begin(action), at: T0, matched: 1 })
    const one = await round('reclass')
    await store.operate([{ message: id, operation: { kind: 'reclass', class: 'fast' } }], one)
    await store.operate([{ message: id, operation: { kind: 'hold' } }], await round('hold'))
    const placed = (operation: number) => reader.placedBy(operation, { after: 0, limit: 9 })
    expect((await placed(one.operation)).messages).toMatchObject([{ id, former: { class: 'bulk' } }])
    const two = await round('reclass')
    await store.operate([{ message: id, operation: { kind: 'reclass', class: null } }], two)
    expect((await placed(one.operation)).messages).toEqual([])
    expect((await placed(two.operation)).messages).toMatchObject([{ former: { class: 'fast' } }])
  })
}
