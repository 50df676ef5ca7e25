/**
 * Contract of the store: queueing of mail.
 */
import { expect, test } from 'vitest'
import { formatQueueId } from '../../src/mail/queue-id.ts'
import { queueIdOf, recipientId } from '../../src/mail/message.ts'
import {
  BUSY,
  claim,
  contentOf,
  deferred,
  delivered,
  first,
  LIFETIME,
  mail,
  MIN,
  ownerOf,
  queue,
  settleOne,
  T0,
  type Subject,
} from './mail.ts'
import { operate } from '../support/operate.ts'
import { ANY_MESSAGE } from '../../src/store/message-conditions.ts'

export function comingIn(subject: () => Subject): void {
  test('the client, its login, its limit of attempts and the texts of the header are kept with the message, also after a requeue and in the history', async () => {
    const { store, reader } = subject()
    const entry = mail(store, { leased: true, to: [{ address: 'ann@far.example' }, { address: 'bob@far.example' }] })
    const texts = { subject: 'Déjà vu 日本', fromHeader: 'Ann <ann@us.example>' }
    const origin = { client: 'mx.example[192.0.2.1]', saslUsername: 'app', share: 'app', maxAttempts: 3, ...texts }
    await store.enqueue({ ...entry, message: { ...entry.message, ...origin } })
    const { id } = entry.message
    await settleOne(store, id, delivered(first(id), T0))
    await settleOne(store, id, deferred(recipientId(id, 1), T0 + MIN))
    expect((await reader.details(formatQueueId(T0, id)))?.message).toMatchObject(origin)
    const newId = store.nextId()
    await operate(store, id, { kind: 'requeue', now: T0, newId, expiresAt: T0 + MIN })
    expect((await reader.details(formatQueueId(T0, id)))?.message).toMatchObject(origin)
    expect((await claim(store, T0)).requests).toMatchObject([{ message: { id: newId, ...origin } }])
  })

  test('ids are unique and ascending', async () => {
    const { store } = subject()
    const ids = [store.nextId(), await queue(store), store.nextId()]
    expect(ids).toEqual([...new Set(ids)].toSorted((a, b) => a - b))
  })

  test('a queued message is read back with all its attributes', async () => {
    const { store, reader } = subject()
    const entry = mail(store, {
      to: [
        { address: 'ann@far.example', notify: ['success', 'delay'], orcpt: 'rfc822;Ann@far.example' },
        { address: 'bob@far.example', notify: 'never' },
      ],
    })
    const message = {
      ...entry.message,
      ret: 'hdrs',
      envid: 'QQ314159',
      smtputf8: true,
      bodyType: '8bitmime',
      messageId: '<1@us.example>',
    } as const
    await store.enqueue({ ...entry, message })
    const story = await reader.details(queueIdOf(message))
    expect(story).toMatchObject({ message, queue: 'incoming', forcedExpire: false, warnings: 0, history: [] })
    expect(story?.recipients).toMatchObject([
      {
        id: first(message.id),
        address: 'ann@far.example',
        notify: ['success', 'delay'],
        orcpt: 'rfc822;Ann@far.example',
        state: 'waiting',
      },
      {
        address: 'bob@far.example',
        notify: 'never',
        dueAt: T0,
        expiresAt: T0 + LIFETIME,
        steps: 0,
        attempts: 0,
        deliveryStarts: 0,
        last: null,
      },
    ])
  })

  test('a maildrop file is queued once, until it is forgotten', async () => {
    const { store, reader } = subject()
    const fromFile = () => ({ ...mail(store), maildropFile: 'a 1 2' })
    const entry = fromFile()
    await store.enqueue(entry)
    const again = fromFile()
    await expect(store.enqueue(again)).rejects.toThrow()
    expect(await reader.details(queueIdOf(again.message))).toBeUndefined()
    expect(await store.maildropFiles()).toEqual(['a 1 2'])
    await store.forgetMaildropFiles(['a 1 2', 'unknown'])
    expect(await store.maildropFiles()).toEqual([])
    await store.enqueue(fromFile())
    expect(await reader.details(queueIdOf(entry.message))).toBeDefined()
  })

  test('mail of another system keeps the attempts and delay warnings that it has had', async () => {
    const { store, reader } = subject()
    const tried = { steps: 3, attempts: 5, last: BUSY }
    const to = [{ address: 'ann@far.example', tried, dueAt: T0 + MIN }, { address: 'bob@far.example' }]
    const queued = { ...mail(store, { to }), warnings: 1 }
    const held = { ...mail(store, { to, hold: true }), warnings: 2 }
    await store.enqueue(queued)
    await store.enqueue(held)
    const story = await reader.details(queueIdOf(queued.message))
    expect(story).toMatchObject({ queue: 'deferred', warnings: 1 })
    expect(story?.recipients).toMatchObject([
      { ...tried, dueAt: T0 + MIN, state: 'waiting', deliveryStarts: 0 },
      { steps: 0, attempts: 0, last: null },
    ])
    expect(await reader.details(queueIdOf(held.message))).toMatchObject({ queue: 'hold', warnings: 2 })
    const { requests } = await claim(store, T0 + MIN)
    expect(requests.flatMap(({ recipients }) => recipients)).toMatchObject([
      { address: 'bob@far.example', steps: 0, warnings: 1 },
      { address: 'ann@far.example', steps: 3, attempts: 5, last: BUSY, warnings: 1 },
    ])
  })

  test('prepended header fields stay with the message through claims and requeues, and leave with it', async () => {
    const { store, reader } = subject()
    const entry = mail(store)
    const message = { ...entry.message, prependedHeaders: 'X-First: 1\r\nX-Second: ä\r\n' }
    await store.enqueue({ ...entry, message })
    expect((await claim(store, T0)).requests).toMatchObject([{ message }])
    await store.giveBack([first(message.id)], ownerOf(store))
    const newId = store.nextId()
    await operate(store, message.id, { kind: 'requeue', now: T0 + MIN, newId, expiresAt: T0 + LIFETIME })
    const requeued = { ...message, id: newId, createdAt: T0 + MIN }
    expect((await reader.details(queueIdOf(requeued)))?.message).toEqual(requeued)
    const { prependedHeaders: _, ...gone } = message
    expect(await reader.details(queueIdOf(message))).toMatchObject({ queue: 'gone' })
    expect((await reader.details(queueIdOf(message)))?.message).toEqual(gone)
    expect((await claim(store, T0 + MIN)).requests).toMatchObject([{ message: requeued }])
    await settleOne(store, newId, delivered(first(newId), T0 + MIN))
    expect((await reader.details(queueIdOf(requeued)))?.message).toEqual({ ...gone, id: newId, createdAt: T0 + MIN })
  })

  test('content is read back byte for byte, in chunks of 64 kB', async () => {
    const { store } = subject()
    const content = [Buffer.alloc(10, 'a'), Buffer.alloc(100_000, 'b'), Buffer.alloc(0), Buffer.alloc(65_536 * 2, 'c')]
    const id = await queue(store, { content })
    expect((await store.readChunk(id, 0))?.byteLength).toBe(65_536)
    expect((await contentOf(store, id)).equals(Buffer.concat(content))).toBe(true)
    expect(await store.readChunk(id, 4)).toBeUndefined()
  })

  test('parts of many contents that are read at once are each those that were asked for', async () => {
    const { store } = subject()
    const sizes = Array.from({ length: 50 }, (_, n) => (n % 10 === 0 ? 100_000 + n : 1_000 + n))
    const ids = await Promise.all(sizes.map((size, n) => queue(store, { content: [Buffer.alloc(size, n)] })))
    const read = async (id: number, index: number) => {
      const part = await store.readChunk(id, index)
      return part === undefined ? 'none' : { size: part.byteLength, byte: part[0] }
    }
    const parts = await Promise.all(ids.flatMap((id) => [read(id, 1), read(id, 0), read(id, 0)]))
    const expected = sizes.flatMap((size, byte) => {
      const begin = { size: Math.min(size, 65_536), byte }
      return [size > 65_536 ? { size: size - 65_536, byte } : 'none', begin, begin]
    })
    expect(parts).toEqual(expected)
  })

  test('content that the caller keeps is not changed', async () => {
    const { store } = subject()
    const entry = mail(store, { content: [new Uint8Array(100_000).fill(7)] })
    await store.enqueue(entry)
    expect(entry.content.map((chunk) => chunk.byteLength)).toEqual([65_536, 34_464])
    expect((await contentOf(store, entry.message.id)).equals(Buffer.concat(entry.content))).toBe(true)
  })

  test('content given to the store is stored complete', async () => {
    const { store } = subject()
    const entry = { ...mail(store, { content: [new Uint8Array(100_000).fill(7)] }), givesContent: true }
    await store.enqueue(entry)
    expect((await contentOf(store, entry.message.id)).equals(Buffer.alloc(100_000, 7))).toBe(true)
  })

  test('a chunk that is short of 64 kB and not the last is refused', async () => {
    const { store } = subject()
    const entry = mail(store)
    const content = [Buffer.from('too short'), Buffer.from('the rest')]
    await expect(store.enqueue({ ...entry, content })).rejects.toThrow('chunk 0 of 2 has 9 bytes')
    expect(await store.destinationsDue()).toEqual([])
    await expect(store.stage(entry.message.id, 0, content)).rejects.toThrow('chunk 0 of 2 has 9 bytes')
  })

  test('long content is staged before its message, which adds the rest', async () => {
    const { store } = subject()
    const parts = [1, 2, 3, 4].map((n) => new Uint8Array(65_536).fill(n))
    const body = store.nextId()
    const expected = Buffer.concat([...parts, Buffer.from('the rest')])
    await store.stage(body, 0, parts.slice(0, 2))
    await store.stage(body, 2, parts.slice(2), true)
    const rest = new Uint8Array(Buffer.from('the rest'))
    const id = await queue(store, { contentId: body, content: [rest] })
    // The caller frees what it has kept.
    for (const { buffer } of [...parts.slice(2), rest]) buffer.transfer(0)
    expect(id).not.toBe(body)
    expect((await contentOf(store, body)).equals(expected)).toBe(true)
  })

  test('staged content is removed when its message is abandoned', async () => {
    const { store } = subject()
    const body = store.nextId()
    await store.stage(body, 0, [Buffer.from('half')])
    await store.unstage(body)
    const id = await queue(store, { contentId: body, content: [Buffer.from('other')] })
    await store.unstage(body)
    expect((await contentOf(store, body)).toString()).toBe('other')
    expect(id).toBeGreaterThan(body)
  })

  test('mail enqueued with a lease cannot be claimed', async () => {
    const { store, reader } = subject()
    const id = await queue(store, { leased: true })
    expect(await claim(store, T0)).toEqual({ requests: [], nextDueAt: null })
    expect(await store.claimExpired(T0 + LIFETIME, 10)).toEqual([])
    expect(await store.destinationsDue()).toEqual([])
    const [listed] = await reader.list(ANY_MESSAGE, { after: 0, limit: 10 })
    expect(listed).toMatchObject({ queue: 'active', recipients: [{ state: 'leased' }], message: { id } })
    expect((await reader.details(formatQueueId(T0, id)))?.recipients).toMatchObject([{ state: 'leased', deliveryStarts: 1 }])
  })

  test('mail enqueued on hold waits for its release', async () => {
    const { store } = subject()
    const id = await queue(store, { hold: true, leased: true })
    expect((await claim(store, T0 + MIN)).requests).toEqual([])
    expect(await operate(store, id, { kind: 'release' })).toEqual({
      changed: true,
      woken: [{ destination: 'far.example', dueAt: T0 }],
    })
    expect((await claim(store, T0 + MIN)).requests).toHaveLength(1)
  })

  test('an entry that cannot be stored leaves nothing behind and does not affect others of its batch', async () => {
    const { store, reader } = subject()
    const [good, twin, other] = [mail(store), mail(store), mail(store)]
    const clash = { ...twin, message: { ...twin.message, id: good.message.id } }
    const results = await Promise.allSettled([store.enqueue(good), store.enqueue(clash), store.enqueue(other)])
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    const listed = await reader.list(ANY_MESSAGE, { after: 0, limit: 10 })
    expect(listed.map(({ message }) => message.id)).toEqual([good.message.id, other.message.id])
    await expect(store.enqueue({ ...mail(store), recipients: [] })).rejects.toThrow('without recipients')
  })

  test('nothing is left of an entry that fails at its content, alone and in a batch', async () => {
    const { store, reader } = subject()
    const broken = () => ({ ...mail(store), content: [Buffer.from('too short'), Buffer.from('x')] })
    const good = mail(store)
    const results = await Promise.allSettled([store.enqueue(broken()), store.enqueue(good), store.enqueue(broken())])
    expect(results.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'rejected'])
    await expect(store.enqueue(broken())).rejects.toThrow('make chunks with Chunker')
    const listed = await reader.list(ANY_MESSAGE, { after: 0, limit: 10 })
    expect(listed.map(({ message }) => message.id)).toEqual([good.message.id])
  })
}
