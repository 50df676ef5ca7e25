/** Promises of the reader about messages that are found by the index: by Message-ID, address, domain and words of the subject. */
import { expect, test } from 'vitest'
import type { Message, MessageId } from '../../src/mail/message.ts'
import { ADDRESSES_PER_ENTRY, termFor, type SearchTerm } from '../../src/store/search/search-terms.ts'
import { operate } from '../support/operate.ts'
import { delivered, first, mail, MIN, settleOne, T0, type Subject } from './mail.ts'

type Texts = Pick<Message, 'subject' | 'messageId'> & { readonly to?: readonly string[] }

const word = (text: string): SearchTerm => termFor.word(text, true)

export function foundMessages(subject: () => Subject): void {
  const enter = async ({ to = ['ann@far.example'], ...texts }: Texts): Promise<MessageId> => {
    const { store } = subject()
    const entry = mail(store, { leased: true, to: to.map((address) => ({ address })) })
    await store.enqueue({ ...entry, message: { ...entry.message, fromHeader: '', ...texts } })
    return entry.message.id
  }
  const indexed = async (): Promise<void> => {
    for (let { more } = await subject().store.upkeep.indexMail(); more;) ({ more } = await subject().store.upkeep.indexMail())
  }
  const found = async (...terms: readonly SearchTerm[]): Promise<readonly MessageId[]> =>
    (await subject().reader.search(terms, { before: null, limit: 10 })).messages.map(({ message }) => message.id)

  test.each([
    ['before they have entries', async () => undefined],
    ['by the index', indexed],
  ])('messages are found in queue and history, the newest first, %s', async (_when, index) => {
    const one = await enter({ subject: 'Spring sale: 50% off', messageId: '<1.A@shop.example>' })
    const two = await enter({ subject: 'Überraschung im Frühling', messageId: '<2@shop.example>', to: ['Bob@Sub.Else.example'] })
    const three = await enter({ subject: 'spring cleaning', to: ['"a b"@far.example', 'zoe@far.example'] })
    await settleOne(subject().store, one, delivered(first(one), T0))
    await index()
    expect(await found(word('spring'))).toEqual([three, one])
    expect(await found(word('spr'), word('SAL'))).toEqual([one])
    expect(await found(word('ring'))).toEqual([])
    expect(await found(word('uberrasch'))).toEqual([two])
    expect(await found(termFor.messageId('<1.a@shop.example>', false))).toEqual([one])
    expect(await found(termFor.messageId('1.A@shop', true))).toEqual([one])
    expect(await found(termFor.messageId('1.A@shop', false))).toEqual([])
    expect(await found(termFor.address('bob@sub.else.example', false))).toEqual([two])
    expect(await found(termFor.address('"a b"@far.example', false))).toEqual([three])
    expect(await found(termFor.domain('far.example', false))).toEqual([three, one])
    expect(await found(termFor.domain('sub.', true))).toEqual([two])
    expect(await found(termFor.address("o'hara\\@far.example", true))).toEqual([])
  })

  test('pages of a search have each message once', async () => {
    const ids: MessageId[] = []
    for (let n = 0; n < 7; n++) ids.unshift(await enter({ subject: `weekly ${n}`, to: ['ann@far.example', 'bob@far.example'] }))
    await indexed()
    ids.unshift(await enter({ subject: 'weekly without an entry' }))
    const seen: MessageId[] = []
    for (let before: MessageId | null | undefined; before !== null;) {
      const page = await subject().reader.search([word('weekly')], { before: before ?? null, limit: 3 })
      expect(page.messages.length).toBeLessThanOrEqual(3)
      seen.push(...page.messages.map(({ message }) => message.id))
      before = page.next
    }
    expect(seen).toEqual(ids)
  })

  test('each recipient of a large message is found', async () => {
    const to = Array.from({ length: ADDRESSES_PER_ENTRY + 2 }, (_, n) => `user${n}@far.example`)
    const id = await enter({ subject: 'to all', to })
    await indexed()
    for (const n of [0, ADDRESSES_PER_ENTRY - 1, ADDRESSES_PER_ENTRY, ADDRESSES_PER_ENTRY + 1])
      expect(await found(termFor.address(`user${n}@far.example`, false), word('all'))).toEqual([id])
    expect(await found(word('all'))).toEqual([id])
  })

  test('a requeued message is found with its new id, and pruned history not at all', async () => {
    const { store } = subject()
    const id = await enter({ subject: 'again', to: ['ann@far.example'] })
    await operate(store, id, { kind: 'hold' })
    await store.giveBack([first(id)], store.leaseTerms().owner)
    const newId = store.nextId()
    await operate(store, id, { kind: 'requeue', now: T0, newId, expiresAt: T0 + MIN })
    await indexed()
    expect(await found(word('again'))).toEqual([newId, id])
    await store.upkeep.prune({ historyBefore: T0 + MIN, historyCount: 0, trashBefore: 0, requestsBefore: 0 })
    await indexed()
    expect(await found(word('again'))).toEqual([newId])
  })

  test('mail without texts of its header has no entry', async () => {
    const { store } = subject()
    const entry = mail(store, { to: [{ address: 'ann@far.example' }] })
    await store.enqueue({ ...entry, message: { ...entry.message, messageId: '<3@shop.example>' } })
    await indexed()
    expect(await found(termFor.messageId('<3@shop.example>', false))).toEqual([])
  })
}
