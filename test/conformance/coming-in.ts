/**
 * Promises of the store about mail that comes in.
 */
import { expect, test } from 'vitest'
import { formatQueueId } from '../../src/mail/queue-id.ts'
import { queueIdOf } from '../../src/queue/message.ts'
import { claim, contentOf, first, LIFETIME, mail, MIN, queue, T0, type Subject } from './mail.ts'
import { operate } from '../support/operate.ts'

export function comingIn(subject: () => Subject): void {
  test('an id is never given out twice and rises', async () => {
    const { store } = subject()
    const ids = [store.nextId(), await queue(store), store.nextId()]
    expect(ids).toEqual([...new Set(ids)].toSorted((a, b) => a - b))
  })

  test('a queued message is found with everything that was said of it', async () => {
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
    const story = reader.story(queueIdOf(message), T0)
    expect(story).toMatchObject({ message, queue: 'incoming', forcedExpire: false, warnings: 0, history: [] })
    expect(story?.recipients).toMatchObject([
      {
        id: first(message.id),
        address: 'ann@far.example',
        notify: ['success', 'delay'],
        orcpt: 'rfc822;Ann@far.example',
        state: 'waiting',
      },
      { address: 'bob@far.example', notify: 'never', dueAt: T0, expiresAt: T0 + LIFETIME, steps: 0, attempts: 0, starts: 0, last: null },
    ])
  })

  test('a content comes back byte for byte, in parts of 64 kB', async () => {
    const { store } = subject()
    const content = [Buffer.alloc(10, 'a'), Buffer.alloc(100_000, 'b'), Buffer.alloc(0), Buffer.alloc(65_536 * 2, 'c')]
    const id = await queue(store, { content })
    expect((await store.readBody(id, 0))?.byteLength).toBe(65_536)
    expect((await contentOf(store, id)).equals(Buffer.concat(content))).toBe(true)
    expect(await store.readBody(id, 4)).toBeUndefined()
  })

  test('the caller keeps its buffers', async () => {
    const { store } = subject()
    const content = new Uint8Array(100_000).fill(7)
    await queue(store, { content: [content] })
    expect(content.byteLength).toBe(100_000)
  })

  test('a long content is staged before its message and continued by it', async () => {
    const { store } = subject()
    const parts = [1, 2, 3, 4].map((n) => new Uint8Array(65_536).fill(n))
    const body = store.nextId()
    await store.stage(body, 0, parts.slice(0, 2))
    await store.stage(body, 2, parts.slice(2))
    const id = await queue(store, { body, content: [Buffer.from('the rest')] })
    expect(id).not.toBe(body)
    expect((await contentOf(store, body)).equals(Buffer.concat([...parts, Buffer.from('the rest')]))).toBe(true)
  })

  test('a staged content is forgotten when its message was given up', async () => {
    const { store } = subject()
    const body = store.nextId()
    await store.stage(body, 0, [Buffer.from('half')])
    await store.unstage(body)
    const id = await queue(store, { body, content: [Buffer.from('other')] })
    await store.unstage(body)
    expect((await contentOf(store, body)).toString()).toBe('other')
    expect(id).toBeGreaterThan(body)
  })

  test('mail born with a lease is nobody else’s to claim', async () => {
    const { store, reader } = subject()
    const id = await queue(store, { leased: true })
    expect(await claim(store, T0)).toEqual({ requests: [], nextDueAt: null })
    expect(await store.claimExpired(T0 + LIFETIME, 10)).toEqual([])
    expect(await store.destinationsDue()).toEqual([])
    const [listed] = reader.list({}, { after: 0, limit: 10, now: T0 })
    expect(listed).toMatchObject({ queue: 'active', recipients: [{ state: 'leased' }], message: { id } })
    expect(reader.story(formatQueueId(T0, id), T0)?.recipients).toMatchObject([{ state: 'leased', starts: 1 }])
  })

  test('mail on hold from the start waits for its release', async () => {
    const { store } = subject()
    const id = await queue(store, { hold: true, leased: true })
    expect((await claim(store, T0 + MIN)).requests).toEqual([])
    expect(await operate(store, id, { kind: 'release' })).toEqual({
      changed: true,
      woken: [{ destination: 'far.example', dueAt: T0 }],
    })
    expect((await claim(store, T0 + MIN)).requests).toHaveLength(1)
  })

  test('an entry that cannot be kept leaves nothing and does not disturb those beside it', async () => {
    const { store, reader } = subject()
    const [good, twin, other] = [mail(store), mail(store), mail(store)]
    const clash = { ...twin, message: { ...twin.message, id: good.message.id } }
    const results = await Promise.allSettled([store.enqueue(good), store.enqueue(clash), store.enqueue(other)])
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    const listed = reader.list({}, { after: 0, limit: 10, now: T0 })
    expect(listed.map(({ message }) => message.id)).toEqual([good.message.id, other.message.id])
    await expect(store.enqueue({ ...mail(store), recipients: [] })).rejects.toThrow('without recipients')
  })
}
