import { afterEach, expect, test } from 'vitest'
import { configFrom } from '../../src/config/load.ts'
import type { Reply } from '../support/api-server.ts'
import { ApiWorld } from '../support/api-world.ts'

let world: ApiWorld | undefined
afterEach(async () => {
  await world?.close()
  world = undefined
})

const HELD = { smtpd_future_release_limit: '7d' }
const opened = async (): Promise<ApiWorld> => (world = await ApiWorld.open('sqlite', configFrom(HELD, 'deferd.example'), HELD))

/** Members of a message in the way of `POST /messages`. */
const mail = (more: object): object => ({ from: 'app@us.example', to: 'ann@a.example.org', subject: 'hi', text: 'hi', ...more })
const submit = (one: ApiWorld, more: object, as = 'sender'): Promise<Reply> => one.api.post('/messages', mail(more), { as })
const cancel = (one: ApiWorld, path: string, as = 'sender'): Promise<Reply> => one.api.ask('DELETE', path, { as })

test('a scheduled message is cancelled by its token, once and for all', async () => {
  const one = await opened()
  const { queue_id: id } = (await submit(one, { not_before: '1h' })).json
  expect((await one.api.get(`/messages/${id}`)).json).toMatchObject({
    queue_name: 'deferred',
    scheduled: true,
    waits_for: 'schedule',
    recipients: [{ state: 'scheduled' }],
  })
  expect((await one.api.get('/messages?queue=scheduled')).json.messages).toHaveLength(1)
  expect(await cancel(one, `/messages/${id}`, 'other')).toMatchObject({ status: 404 })
  const answer = { status: 200, json: { cancelled: [{ queue_id: id, recipient: 'ann@a.example.org' }], too_late: [] } }
  expect(await cancel(one, `/messages/${id}`)).toMatchObject(answer)
  expect(await cancel(one, `/messages/${id}`)).toMatchObject(answer)
  expect((await one.api.get('/history')).json.messages).toMatchObject([
    { recipients: [{ outcome: 'cancelled', reason: 'cancelled by token:sender' }] },
  ])
  await one.queue.advance(7_200_000)
  expect(one.queue.tried('a.example.org')).toEqual([])
})

test('a message with a limit of its own is returned at the limit, by member and by parameter', async () => {
  const one = await opened()
  for (const wrong of [0, 1.5, 'many']) expect(await submit(one, { maximum_attempts: wrong })).toMatchObject({ status: 422 })
  const { queue_id: id } = (await submit(one, { maximum_attempts: 2 })).json
  await one.queue.rest()
  const waiting = (await one.api.get(`/messages/${id}`)).json
  expect(waiting).toMatchObject({ maximum_attempts: 2, rule: 'last attempt: maximum_attempts = 2 of the message' })
  expect(waiting.future).toMatchObject([{ planned: 1, limit: 'maximum_attempts = 2' }])
  await one.queue.advance(3_600_000)
  expect(one.queue.tried('a.example.org')).toEqual([0, 300])
  const returned = { rule: 'maximum_attempts = 2', recipients: [{ state: 'expired', rule: 'maximum_attempts = 2' }] }
  expect((await one.api.get(`/messages/${id}`)).json).toMatchObject(returned)
  const type = { as: 'sender', headers: { 'content-type': 'message/rfc822' } }
  const path = '/messages?from=app@us.example&to=eve@a.example.org&maximum_attempts='
  const send = (limit: string) => one.api.post(`${path}${limit}`, 'Subject: hi\r\n\r\nhi\r\n', type)
  for (const wrong of ['', '0', '1.5', '0x10', '%201']) expect([wrong, (await send(wrong)).status]).toEqual([wrong, 422])
  expect(await send('1')).toMatchObject({ status: 202 })
  await one.queue.advance(3_600_000)
  expect(one.queue.tried('a.example.org')).toHaveLength(3)
})

test('delivered mail is too late, and an unknown message is unknown', async () => {
  const one = await opened()
  const { queue_id: id } = (await submit(one, { to: 'ann@ok.example' })).json
  await one.queue.rest()
  expect(await cancel(one, `/messages/${id}`)).toMatchObject({ status: 409, json: { type: '/problems/too-late' } })
  expect(await cancel(one, '/messages/4SVLCh0sf8z7Qhl')).toMatchObject({ status: 404 })
})

test('all mail of an envelope id is cancelled, but not that of others', async () => {
  const one = await opened()
  const ids = []
  for (const to of ['ann@a.example.org', 'bob@a.example.org'])
    ids.push((await submit(one, { to, envid: 'c-7', not_before: '1h' })).json.queue_id)
  const other = (await submit(one, { envid: 'c-7', not_before: '1h' }, 'other')).json.queue_id
  expect(await cancel(one, '/messages?envid=c-7')).toMatchObject({
    status: 200,
    json: { cancelled: ids.map((id) => ({ queue_id: id })), too_late: [] },
  })
  expect(await cancel(one, '/messages?envid=c-7')).toMatchObject({ status: 404 })
  expect(await cancel(one, '/messages?envid=c-7', 'admin')).toMatchObject({ status: 200, json: { cancelled: [{ queue_id: other }] } })
  expect(await cancel(one, '/messages')).toMatchObject({ status: 422 })
})

test('a scheduled message gets other times, until it is sent', async () => {
  const one = await opened()
  const { queue_id: id } = (await submit(one, { not_before: '1h', expires: '3h' })).json
  const patch = (body: object, as = 'sender') => one.api.ask('PATCH', `/messages/${id}`, { as, body })
  expect(await patch({ not_before: '2h' }, 'other')).toMatchObject({ status: 404 })
  expect(await patch({ not_before: '8d' })).toMatchObject({ status: 422, json: { type: '/problems/invalid-time' } })
  expect(await patch({ not_before: '4h' })).toMatchObject({ status: 422, json: { errors: [{ pointer: '/expires' }] } })
  expect(await patch({ not_before: '2h', expires: null })).toMatchObject({ status: 200, json: { expires: null } })
  await one.queue.advance(3_600_000)
  expect(one.queue.tried('a.example.org')).toEqual([])
  await one.queue.advance(3_600_000)
  expect(one.queue.tried('a.example.org')).toEqual([7_200])
  expect(await patch({ not_before: '2h' })).toMatchObject({ status: 409, json: { type: '/problems/too-late' } })
})

test('more held messages than the limit are refused', async () => {
  const limited = { ...HELD, smtpd_future_release_message_limit: '1' }
  const one = (world = await ApiWorld.open('sqlite', configFrom(limited, 'deferd.example'), limited))
  expect(await submit(one, { not_before: '1h' })).toMatchObject({ status: 202 })
  expect(await submit(one, { not_before: '1h' })).toMatchObject({ status: 429, json: { type: '/problems/too-many-held' } })
  expect(await submit(one, { not_before: '1h' }, 'other')).toMatchObject({ status: 202 })
  expect(await submit(one, {})).toMatchObject({ status: 202 })
})

test('a message with BY shows its time, and gets no time after it', async () => {
  const one = await opened()
  const { acceptor } = one.queue.relay
  const now = one.queue.clock.now()
  const receiver = acceptor.open({
    envelope: {
      sender: 'app@us.example',
      recipients: [{ address: 'ann@a.example.org' }],
      release: { kind: 'span', span: 3_600_000 },
      deliverBy: { at: now + 7_200_000, mode: 'RT' },
    },
    client: { name: 'x', address: '127.0.0.1', helo: 'x', protocol: 'ESMTPA', saslUsername: 'sender', local: true, own: true },
  })
  await receiver.write([Buffer.from('Subject: hi\r\n\r\nhi\r\n')])
  const { queueId: id } = (await receiver.end()) as { readonly queueId: string }
  const at = now / 1_000 + 7_200
  expect((await one.api.get(`/messages/${id}`)).json).toMatchObject({ by_mode: 'RT', deliver_by: at, expires: at, not_before: at - 3_600 })
  const patch = (body: object) => one.api.ask('PATCH', `/messages/${id}`, { as: 'sender', body })
  expect(await patch({ not_before: '3h', expires: '4h' })).toMatchObject({ status: 422, json: { errors: [{ pointer: '/not_before' }] } })
  expect(await patch({ expires: null })).toMatchObject({ status: 422, json: { errors: [{ pointer: '/expires' }] } })
  expect(await patch({ expires: '3h' })).toMatchObject({ status: 422, json: { errors: [{ pointer: '/expires' }] } })
  expect(await patch({ not_before: '90m' })).toMatchObject({ status: 200 })
})

test.each([
  [{ not_before: 'soon' }, 'invalid'],
  [{ not_before: '8d' }, 'invalid-time'],
  [{ not_before: 1_000_000_000 }, 'invalid-time'],
  [{ expires: '2020-01-01T00:00:00Z' }, 'invalid-time'],
  [{ not_before: '2h', expires: '1h' }, 'invalid-time'],
  [{ envid: 'a b' }, 'invalid'],
  [{ envid: 'a', envelope: { from: 'a@us.example', to: ['ann@a.example.org'] } }, 'invalid'],
])('a message with %j is refused as %s', async (more, problem) => {
  expect(await submit(await opened(), more)).toMatchObject({ status: 422, json: { type: `/problems/${problem}` } })
})
