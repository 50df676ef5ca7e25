/** Searches in the queue and in the history together, by the kind of the text. */
import { afterEach, expect, test } from 'vitest'
import { alternativesOf } from '../../src/queries/messages/search.ts'
import { formatQueueId } from '../../src/mail/queue-id.ts'
import { delivered, first, mail, settleOne } from '../conformance/mail.ts'
import { ApiWorld } from '../support/api-world.ts'

let opened: ApiWorld | undefined
afterEach(async () => {
  await opened?.close()
  opened = undefined
})

async function filled(
  count: number,
  store: 'memory' | 'sqlite' = 'sqlite',
): Promise<{ readonly world: ApiWorld; readonly ids: readonly string[] }> {
  opened = await ApiWorld.open(store)
  const { store: queue, clock } = opened.queue
  const ids: string[] = []
  for (let n = 0; n < count; n++) {
    const at = clock.now()
    const entry = mail(queue, { at, leased: true, sender: 'news@shop.example', to: [{ address: `user${n}@a.example.org` }] })
    const texts = { subject: `Offer ${n} of the week`, fromHeader: '', messageId: `<${n}.q@shop.example>` }
    await queue.enqueue({ ...entry, message: { ...entry.message, ...texts } })
    // Each other message leaves the queue.
    if (n % 2 === 1) await settleOne(queue, entry.message.id, delivered(first(entry.message.id), at))
    ids.push(formatQueueId(at, entry.message.id))
  }
  await queue.upkeep.indexMail()
  return { world: opened, ids }
}

const search = async ({ api }: ApiWorld, q: string, token = 'reader', more = '') =>
  (await api.get(`/search?q=${encodeURIComponent(q)}${more}`, { headers: { authorization: `Bearer ${token}` } })).json

const idsOf = (json: Awaited<ReturnType<typeof search>>) => json.messages.map((one) => one.queue_id)

test('the kind of the text decides by which member messages are searched', () => {
  const members = (text: string, content = true) => alternativesOf(text, content).map(({ member }) => member)
  expect(members('<1.q@shop.example>')).toEqual(['message_id'])
  expect(members('1.q@shop.example')).toEqual(['address', 'message_id'])
  expect(members('@shop.example')).toEqual(['domain'])
  expect(members('shop.example')).toEqual(['address', 'domain', 'subject'])
  expect(members('two words')).toEqual(['subject'])
  expect(members('two words', false)).toEqual([])
  expect(members('*')).toEqual([])
})

test('queue and history are searched together, the newest message first', async () => {
  const { world, ids } = await filled(4)
  const newest = ids.toReversed()
  expect(idsOf(await search(world, 'news@shop.example'))).toEqual(newest)
  expect(idsOf(await search(world, '@a.example.org'))).toEqual(newest)
  expect(idsOf(await search(world, 'week off'))).toEqual(newest)
  expect(idsOf(await search(world, '<2.q@shop.example>'))).toEqual([ids[2]])
  expect(idsOf(await search(world, '2.q@shop'))).toEqual([ids[2]])
  expect(idsOf(await search(world, ids[1] ?? ''))).toEqual([ids[1]])
  const found = await search(world, 'user3@a.example.org')
  expect(found).toMatchObject({ searched: ['address', 'message_id'], progress: null, next: null })
  expect(found.messages).toMatchObject([{ queue_name: 'gone', subject: 'Offer 3 of the week', recipient_count: 1 }])
})

test('a subject is searched and shown with the right content only, and messages of other destinations are not found', async () => {
  const { world, ids } = await filled(2)
  expect(await search(world, 'offer week', 'viewer')).toMatchObject({ searched: [], messages: [] })
  const [seen] = (await search(world, 'user0@a.example.org', 'viewer')).messages
  expect(seen).not.toHaveProperty('subject')
  expect(idsOf(await search(world, 'offer week', 'limited'))).toEqual(ids.toReversed())
  const hidden = mail(world.queue.store, { to: [{ address: 'eve@other.example' }] })
  await world.queue.store.enqueue({ ...hidden, message: { ...hidden.message, fromHeader: '', subject: 'offer' } })
  expect(idsOf(await search(world, 'eve@other.example', 'limited'))).toEqual([])
  const hiddenId = formatQueueId(hidden.message.createdAt, hidden.message.id)
  expect(await search(world, hiddenId, 'limited')).toEqual({
    ...(await search(world, formatQueueId(hidden.message.createdAt + 1, hidden.message.id), 'limited')),
    as_of: expect.any(Number) as number,
  })
})

test('a domain beyond ASCII is found by its letters and by its A-labels', async () => {
  const { world } = await filled(1)
  const { store } = world.queue
  const to = [{ address: 'ann@xn--tda.example', destination: 'xn--tda.example' }]
  const entry = mail(store, { sender: 'app@xn--bcher-kva.example', to })
  await store.enqueue({ ...entry, message: { ...entry.message, fromHeader: '' } })
  await store.upkeep.indexMail()
  const id = formatQueueId(entry.message.createdAt, entry.message.id)
  for (const domain of ['ü.example', 'Ü.exa', 'xn--tda.example', 'xn--tda.exa', 'bücher.example']) {
    for (const q of [domain, `@${domain}`]) expect([q, idsOf(await search(world, q))]).toEqual([q, [id]])
  }
  for (const q of ['ann@ü.example', 'ann@ü.exa', '*@ü.example', 'app@bücher.example']) {
    expect([q, idsOf(await search(world, q))]).toEqual([q, [id]])
  }
  const asked = async (path: string, query: Readonly<Record<string, string>>) =>
    (await world.api.get(`${path}?${new URLSearchParams(query).toString()}`)).json
  for (const query of [
    { recipient: 'ann@ü.example' },
    { recipient: '*@ü.example' },
    { sender: 'app@bücher.example' },
    { destination: 'Ü.example' },
  ]) {
    expect([query, idsOf(await asked('/messages', query))]).toEqual([query, [id]])
  }
  expect((await asked('/destinations', { name: 'ü.*' })).destinations).toMatchObject([{ destination: 'xn--tda.example' }])
  expect((await asked('/destinations', { name: '*ü.example' })).destinations).toEqual([])
})

test('a limited token finds a message by its visible recipients alone', async () => {
  const { world } = await filled(0)
  const { store } = world.queue
  const mixed = mail(store, {
    sender: 'app@shop.example',
    to: [{ address: 'ann@a.example.org' }, { address: 'eve@secret.example', destination: 'secret.example' }],
  })
  await store.enqueue({ ...mixed, message: { ...mixed.message, fromHeader: '' } })
  await store.upkeep.indexMail()
  const id = formatQueueId(mixed.message.createdAt, mixed.message.id)
  for (const q of ['eve@secret.example', '@secret.example', 'secret', '*eve*secret*']) {
    expect([q, idsOf(await search(world, q))]).toEqual([q, [id]])
    expect([q, idsOf(await search(world, q, 'limited'))]).toEqual([q, []])
  }
  for (const q of ['ann@a.example.org', 'app@shop.example', '*ann*example*', '*app*shop*'])
    expect([q, idsOf(await search(world, q, 'limited'))]).toEqual([q, [id]])
})

test.each(['sqlite', 'memory'] as const)('pages have each message once, of the index and of a part of an address: %s', async (store) => {
  const { world, ids } = await filled(9, store)
  for (const q of ['shop.example', 'offer', '*ser*@a.example*', '*ws@shop*']) {
    const seen: string[] = []
    let cursor = ''
    let progress = 0
    do {
      const page = await search(world, q, 'reader', `&limit=2${cursor}`)
      expect(page.messages.length).toBeLessThanOrEqual(2)
      seen.push(...page.messages.map((one) => one.queue_id))
      const read = page.progress ?? 0
      expect(read).toBeGreaterThanOrEqual(progress)
      progress = read
      cursor = page.next === null ? '' : `&after=${page.next}`
    } while (cursor !== '')
    expect(seen.toSorted(), q).toEqual(ids.toSorted())
    expect(progress).toBe(q.includes('*') ? 1 : 0)
  }
})

test('a cursor of another text is refused', async () => {
  const { world } = await filled(3)
  const { next } = await search(world, 'offer', 'reader', '&limit=1')
  const answer = await world.api.get(`/search?q=week&after=${next}`, { headers: { authorization: 'Bearer reader' } })
  expect(answer.status).toBe(400)
})
