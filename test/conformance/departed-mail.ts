/** Contract of the store: contents that stay after a message has left, and mail that is sent again. */
import { describe, expect, test } from 'vitest'
import { parseQueueId } from '../../src/mail/queue-id.ts'
import { queueIdOf, recipientId, type MessageId } from '../../src/mail/message.ts'
import { pseudonymOf } from '../../src/mail/pseudonym.ts'
import type { ErasureStep, ErasureTerms } from '../../src/store/returned-mail.ts'
import type { Resending } from '../../src/store/returned-mail.ts'
import { begin } from './audit.ts'
import { claim, delivered, first, mail, MIN, ownerOf, queue, T0, UNKNOWN, type Mail, type Subject } from './mail.ts'

const DAY = 24 * 60 * MIN
const UNTIL = T0 + 7 * DAY
const EVERYTHING = { until: T0, bytes: Number.MAX_SAFE_INTEGER }
const TWO = [{ address: 'ann@far.example' }, { address: 'bob@far.example' }]

export function departedMail(subject: () => Subject): void {
  /** Queues a message whose first recipient gets it and whose others are refused. Returns its id when it has left. */
  const returned = async (keepUntil: number | null = UNTIL, options: Mail = { to: TWO }): Promise<MessageId> => {
    const { store } = subject()
    const id = await queue(store, { leased: true, ...options })
    const others = (options.to ?? TWO).slice(1).map((_, n) => recipientId(id, n + 1))
    const refused = others.map((recipient) => ({ recipient, state: 'bounced' as const, at: T0 + 1, attempts: 1, last: UNKNOWN }))
    const settled = [delivered(first(id), T0 + 1), ...refused]
    const settlement = {
      owner: ownerOf(store),
      message: id,
      recipients: settled,
      attempts: [],
      ...(keepUntil === null ? {} : { keepUntil }),
    }
    expect(await store.settle(settlement)).toMatchObject({ removed: true })
    return id
  }
  const order = (message: MessageId, more: Partial<Omit<Resending, 'entry'>> = {}): Resending => {
    const entry = mail(subject().store, { to: [{ address: 'bob@far.example' }], contentId: message, content: [], at: T0 + MIN })
    return { message, recipients: [recipientId(message, 1)], again: false, entry, ...more }
  }
  const operation = () => subject().store.records.audit.begin(begin('resend'))
  const resent = async (...orders: readonly Resending[]) =>
    subject().store.departed.resend(orders, { operation: await operation(), at: T0 + MIN, matched: orders.length })
  const contentOf = (content: number) =>
    subject()
      .store.readChunk(content, 0)
      .catch(() => undefined)

  test('the content of a message with a failed recipient stays until its time, and others go', async () => {
    const { store, reader } = subject()
    const id = await returned()
    const gone = await returned(null)
    const reached = await queue(store, { leased: true })
    await store.settle({
      owner: ownerOf(store),
      message: reached,
      recipients: [delivered(first(reached), T0)],
      attempts: [],
      keepUntil: UNTIL,
    })
    expect(await contentOf(id)).toBeDefined()
    expect(await contentOf(gone)).toBeUndefined()
    expect(await contentOf(reached)).toBeUndefined()
    expect(await reader.records.keptContents.of(id)).toEqual({ message: id, contentId: id, until: UNTIL, size: 19, headers: null })
    expect(await store.departed.dropKept({ ...EVERYTHING, until: UNTIL - 1 })).toEqual({ bytes: 19, more: false })
    expect(await contentOf(id)).toBeDefined()
    expect(await store.departed.dropKept({ ...EVERYTHING, until: UNTIL })).toMatchObject({ bytes: 0 })
    expect(await contentOf(id)).toBeUndefined()
    expect(await reader.records.keptContents.of(id)).toBeUndefined()
  })

  test('the oldest contents go first when all have more bytes than the limit', async () => {
    const { store } = subject()
    const [last, firstOut] = [await returned(UNTIL + 1), await returned(UNTIL)]
    expect(await store.departed.dropKept({ until: T0, bytes: 30 })).toEqual({ bytes: 19, more: false })
    expect(await contentOf(firstOut)).toBeUndefined()
    expect(await contentOf(last)).toBeDefined()
  })

  test('mail that is sent again has the content, and the history tells the new id', async () => {
    const { store, reader } = subject()
    const id = await returned()
    const one = order(id)
    expect(await resent(one)).toEqual([true])
    const { message } = one.entry
    const gone = await reader.details(queueIdOf({ id, createdAt: T0 }))
    expect(gone?.recipients.map(({ state, resentAs }) => [state, resentAs])).toEqual([
      ['delivered', undefined],
      ['bounced', queueIdOf(message)],
    ])
    expect((await claim(store, T0 + MIN)).requests).toMatchObject([
      { message: { id: message.id }, recipients: [{ address: 'bob@far.example', steps: 0 }] },
    ])
    // The content stays for the message in the queue, also when the record of it is dropped.
    await store.departed.dropKept({ until: UNTIL, bytes: 0 })
    expect(await contentOf(id)).toBeDefined()
    await store.settle({ owner: ownerOf(store), message: message.id, recipients: [delivered(first(message.id), T0)], attempts: [] })
    expect(await contentOf(id)).toBeUndefined()
  })

  test('the content stays when the mail that was sent again has left', async () => {
    const { store } = subject()
    const id = await returned()
    const one = order(id)
    await resent(one)
    await claim(store, T0 + MIN)
    await store.settle({
      owner: ownerOf(store),
      message: one.entry.message.id,
      recipients: [delivered(first(one.entry.message.id), T0)],
      attempts: [],
    })
    expect(await contentOf(id)).toBeDefined()
    expect(await resent(order(id, { again: true }))).toEqual([true])
  })

  test('a recipient is sent again once, a delivered one never, and nothing after the end of the operation', async () => {
    const { store, reader } = subject()
    const id = await returned()
    const run = await operation()
    const [one, two] = [order(id), order(id)]
    expect(await store.departed.resend([one, two], { operation: run, at: T0 + MIN, matched: 2 })).toEqual([true, false])
    expect(await reader.records.audit.one(run)).toMatchObject({ changed: 1, matched: 2 })
    expect(await resent(order(id))).toEqual([false])
    expect(await resent(order(id, { recipients: [first(id)], again: true }))).toEqual([false])
    expect(await resent(order(id, { recipients: [recipientId(id, 2)], again: true }))).toEqual([false])
    expect(await reader.lastId()).toBe(one.entry.message.id)
    await store.records.audit.end(run, { state: 'cancelled', at: T0 + MIN, error: 'cancelled by root' })
    const another = await returned()
    expect(await store.departed.resend([order(another)], { operation: run, at: T0 + MIN, matched: 3 })).toBeNull()
    expect(parseQueueId((await reader.details(queueIdOf({ id: another, createdAt: T0 })))?.recipients[1]?.resentAs ?? '')).toBeUndefined()
  })

  test('mail without its content is not sent again', async () => {
    const { store } = subject()
    const [dropped, never] = [await returned(), await returned(null)]
    await store.departed.dropKept({ until: UNTIL, bytes: 0 })
    expect(await resent(order(dropped))).toEqual([false])
    expect(await resent(order(never))).toEqual([false])
  })

  test('the content is kept too when the message leaves with its notice', async () => {
    const { store } = subject()
    const id = await queue(store, { leased: true })
    const refused = {
      recipient: first(id),
      state: 'bounced' as const,
      at: T0 + 1,
      attempts: 1,
      last: UNKNOWN,
      noticeDue: 'failure' as const,
    }
    await store.settle({ owner: ownerOf(store), message: id, recipients: [refused], attempts: [], keepUntil: UNTIL })
    const noticesSettled = [{ recipient: first(id), noticeDue: 'failure' as const }]
    const report = { message: id, noticesSettled, late: [], notices: [mail(store)], warnings: 0, warnAt: null, keepUntil: UNTIL }
    expect(await store.report(report)).toEqual({ removed: true, entered: true })
    expect(await contentOf(id)).toBeDefined()
    expect(await resent(order(id, { recipients: [first(id)] }))).toEqual([true])
  })

  describe('an erasure', () => {
    const TERMS = { side: 'recipient', pattern: 'bob@far.example', before: T0 + 7 * DAY } as const
    const BOB = pseudonymOf('key', 'bob@far.example')
    /** Carries out all slices. Returns the changed rows by table. */
    const erased = async (of: number | null, terms: ErasureTerms = TERMS): Promise<Readonly<Record<string, number>>> => {
      const rows: Record<string, number> = {}
      const slice = { terms, key: 'key', until: T0 + DAY }
      for (let place: ErasureStep['next'] = { stage: '', after: null }, isFirst = true; place !== null; isFirst = false) {
        const round = of === null ? null : { operation: of, at: T0 + DAY, matched: 0 }
        const step: ErasureStep | null = await subject().store.departed.erase({
          ...slice,
          ...place,
          ...(isFirst ? { stage: null } : {}),
          round,
        })
        if (step === null) throw new Error('the operation has ended')
        if (step.rows > 0) rows[step.of] = (rows[step.of] ?? 0) + step.rows
        place = step.next
      }
      return rows
    }
    const erasing = async () => {
      const { store } = subject()
      const id = await store.records.audit.begin(begin('erase'))
      await store.records.erasures.add({ ...TERMS, operation: id, stage: null, after: null, until: 0 })
      return id
    }

    test('replaces the address in the history, its index and the audit log, and deletes its content', async () => {
      const { store, reader } = subject()
      const id = await returned()
      const other = await returned(UNTIL, { to: [{ address: 'ann@far.example' }, { address: 'eve@far.example' }] })
      for (let more = true; more;) ({ more } = await store.upkeep.indexMail())
      await store.records.audit.add({ at: T0, who: 'root', action: 'hold', arguments: '--recipient=bob@far.example', changed: 1 })
      const plan = await erased(null)
      expect(plan).toMatchObject({ kept_content: 1, history: 1, audit: 1 })
      expect((await reader.details(queueIdOf({ id, createdAt: T0 })))?.recipients[1]?.address).toBe('bob@far.example')
      const erasure = await erasing()
      expect(await erased(erasure)).toEqual(plan)
      for (let more = true; more;) ({ more } = await store.upkeep.indexMail())
      const gone = await reader.details(queueIdOf({ id, createdAt: T0 }))
      expect(gone?.recipients.map(({ address, state }) => [address, state])).toEqual([
        ['ann@far.example', 'delivered'],
        [BOB, 'bounced'],
      ])
      expect(await contentOf(id)).toBeUndefined()
      expect(await contentOf(other)).toBeDefined()
      const [entry] = await reader.records.audit.after({ after: 0, limit: 1 })
      expect(entry?.arguments).toBe(`--recipient=${BOB}`)
      expect(await reader.records.audit.one(erasure)).toMatchObject({ changed: 1, state: 'running' })
      expect(await erased(null)).toEqual({})
    })

    test('leaves mail in the queue, the other side, and what is of a later time', async () => {
      const { store, reader } = subject()
      const live = await queue(store, { to: [{ address: 'bob@far.example' }] })
      const id = await returned(null)
      const erasure = await erasing()
      expect(await erased(erasure, { ...TERMS, side: 'sender' })).toEqual({})
      expect(await erased(erasure, { ...TERMS, before: T0 })).toEqual({})
      expect(await erased(erasure)).toEqual({ history: 1 })
      expect((await reader.details(queueIdOf({ id: live, createdAt: T0 })))?.recipients[0]?.address).toBe('bob@far.example')
      expect((await reader.details(queueIdOf({ id, createdAt: T0 })))?.recipients[1]?.address).toBe(BOB)
    })

    test('has no effect after the end of its operation, and one node at a time carries it out', async () => {
      const { store } = subject()
      const erasure = await erasing()
      const { erasures } = store.records
      expect(await erasures.take({ operation: erasure, now: T0, until: T0 + 1 })).toBe(true)
      expect(await erasures.take({ operation: erasure, now: T0, until: T0 + 1 })).toBe(false)
      await store.records.audit.end(erasure, { state: 'cancelled', at: T0, error: null })
      await expect(erased(erasure)).rejects.toThrow('the operation has ended')
      await erasures.end(erasure)
      expect(await erasures.all()).toEqual([])
    })
  })
}
