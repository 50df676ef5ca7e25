import { afterEach, expect, test, vi } from 'vitest'
import { configFrom } from '../../src/config/load.ts'
import { messageJson } from '../../src/resources/message-json.ts'
import { recordsByName } from '../../src/presentation/recipient-status.ts'
import { jsonLine } from '../../src/presentation/text.ts'
import { ANY_MESSAGE } from '../../src/store/message-conditions.ts'
import { ApiServer, openApiSchema, validator, type Members } from '../support/api-server.ts'
import { BEGINNING } from '../../src/testkit/virtual/virtual-clock.ts'
import { DAY, HOUR, MINUTE, SECOND, type Duration } from '../../src/system/clock.ts'
import { ApiWorld } from '../support/api-world.ts'
import { MANY_STARS } from '../support/pattern-cases.ts'
import { pagesOfMovingMail } from '../support/moving-pages.ts'
import type { QueueWorld } from '../support/queue-world.ts'

let opened: ApiWorld | undefined
afterEach(async () => {
  await opened?.close()
  opened = undefined
})

async function serve(store: 'memory' | 'sqlite' = 'sqlite'): Promise<{ readonly world: QueueWorld; readonly api: ApiServer }> {
  opened = await ApiWorld.open(store)
  return { world: opened.queue, api: opened.api }
}

async function filled(): Promise<{ readonly world: QueueWorld; readonly api: ApiServer; readonly ids: readonly string[] }> {
  const served = await serve()
  const ids = [
    await served.world.accept(['ann@a.example.org', 'bob@b.example.org']),
    await served.world.accept(['carl@c.example'], { sender: '' }),
    await served.world.accept(['dora@ok.example']),
  ]
  await served.world.advance(60_000)
  return { ...served, ids }
}

test('GET /messages is a page in the order of arrival', async () => {
  const { api, ids } = await filled()
  const { status, json } = await api.get('/messages')
  expect(status).toBe(200)
  expect(json.messages.map((one) => one.queue_id)).toEqual(ids.slice(0, 2))
  expect(json.messages[0]).toMatchObject({ queue_name: 'deferred', sender: 'app@us.example', recipient_count: 2 })
  expect(json.next).toBeNull()
})

test('GET /messages as NDJSON is the listing of the command, byte for byte', async () => {
  const { api, world: queue } = await filled()
  const { text, headers } = await api.get('/messages', { headers: { accept: 'application/x-ndjson' } })
  expect(headers.get('content-type')).toBe('application/x-ndjson')
  const records = recordsByName(await queue.reader.destinationRecords())
  const listed = await queue.reader.list(ANY_MESSAGE, { after: 0, limit: 10 })
  expect(text).toBe(listed.map((one) => jsonLine(messageJson(one, records, queue.clock.wall))).join(''))
})

test('conditions of the query select messages', async () => {
  const { api, ids } = await filled()
  const listed = async (query: string) => (await api.get(`/messages?${query}`)).json.messages.map((one) => one.queue_id)
  expect(await listed('sender=%3C%3E')).toEqual([ids[1]])
  expect(await listed('destination=*.example.org&older_than=30s')).toEqual([ids[0]])
  expect(await listed('younger_than=30s')).toEqual([])
  expect(await listed('reply=busy&attempts_over=0&limit=1')).toEqual([ids[0]])
  expect(await listed('queue=hold')).toEqual([])
  expect(await listed('status=4.*')).toEqual(ids.slice(0, 2))
})

test.each([
  'limit=0',
  'limit=1e9',
  'limit=-1',
  'limit=NaN',
  'older_than=soon',
  'queue=nowhere',
  'colour=red',
  'status=4.7',
  'status=4.7.0x',
  'status=busy',
])('a query with %s is refused with a pointer', async (query) => {
  const { api } = await serve('memory')
  const { status, json } = await api.get(`/messages?${query}`)
  expect(status).toBe(422)
  expect(json.errors).toMatchObject([{ pointer: `/${query.split('=')[0]}` }])
})

test('pages list every message that stays exactly once, while others arrive and leave', async () => {
  opened = await ApiWorld.open()
  await pagesOfMovingMail(opened, { messages: 200, arriving: 29, leaving: 66, limit: 7 })
})

test('with order=newest, pages list the newest message first', async () => {
  const { api, world: queue } = await serve()
  const ids: string[] = []
  for (let n = 0; n < 25; n++) ids.push(await queue.accept([`user${n}@a.example.org`]))
  await queue.rest()
  const seen: string[] = []
  for (let path: string | null = '/messages?order=newest&limit=7'; path !== null;) {
    const { json, headers } = await api.get(path)
    seen.push(...json.messages.map((one) => one.queue_id))
    await queue.accept(['late@a.example.org'])
    path = json.next === null ? null : `/messages${/^<(\?[^>]*)>/.exec(headers.get('link') ?? '')?.[1] ?? ''}`
  }
  expect(seen).toEqual(ids.toReversed())
})

test('a message with many recipients is listed with 20 of them, and their number', async () => {
  const { api, world: queue } = await serve()
  await queue.accept(Array.from({ length: 30 }, (_, n) => `user${n}@a.example.org`))
  await queue.rest()
  const [message] = (await api.get('/messages')).json.messages
  expect(message?.recipients).toHaveLength(20)
  expect(message).toMatchObject({ recipient_count: 30 })
})

test('a cursor of other conditions is refused', async () => {
  const { api } = await filled()
  const { json } = await api.get('/messages?limit=1')
  expect((await api.get(`/messages?limit=5&after=${String(json.next)}`)).status).toBe(200)
  for (const query of [
    `sender=a@b.example&after=${String(json.next)}`,
    'after=nonsense',
    `after=${Buffer.from('[1]').toString('base64url')}`,
  ]) {
    const refused = await api.get(`/messages?${query}`)
    expect(refused.status).toBe(400)
    expect(refused.json.type).toMatch(/\/problems\/cursor$/)
  }
})

test('GET /messages/count counts', async () => {
  const { api } = await filled()
  expect((await api.get('/messages/count')).json).toEqual({ count: 2, at_least: false })
  expect((await api.get('/messages/count?recipient=carl@*')).json).toEqual({ count: 1, at_least: false })
})

test('claimed mail without a slot is not said to be in delivery', async () => {
  await serve()
  const ids = (await opened?.fill(6, 'slow.example')) ?? []
  const shown = async (n: number) => (await opened?.api.get(`/messages/${ids[n]}`))?.json
  expect(await shown(0)).toMatchObject({ queue_name: 'active', waits_for: 'delivery' })
  expect(await shown(5)).toMatchObject({ queue_name: 'active', waits_for: 'slot', rule: '5 of at most 5 deliveries are in flight' })
  const { json } = (await opened?.api.get('/destinations/slow.example')) ?? {}
  expect(json).toMatchObject({ in_flight: 5, probed: false, blocked_by: '5 of at most 5 deliveries are in flight' })
  expect((await opened?.api.get('/now'))?.json).toMatchObject({ deliveries: { in_flight: 5, limit: 100, connecting: [] } })
})

test('a message has its attempts and its rule, also when it has left the queue', async () => {
  const { api, ids } = await filled()
  const waiting = (await api.get(`/messages/${ids[0]}`)).json
  expect(waiting).toMatchObject({ queue_name: 'deferred', waits_for: 'due-time' })
  expect(waiting.history.map((one) => one.reply)).toEqual(['450 4.2.1 busy, try later', '450 4.2.1 busy, try later'])
  expect((await api.get(`/messages/${ids[2]}`)).json).toMatchObject({ queue_name: 'gone', waits_for: 'nothing' })
  expect((await api.get('/messages/4SVLCh0sf8z7Qhl')).status).toBe(404)
  expect((await api.get('/messages/%1b%5b2J')).json.detail).not.toContain('\u001b')
})

test('a message has its client, the operations on it, and the attempts that it gets while it stays deferred', async () => {
  const { api, world } = await serve()
  const sent = { from: 'app@us.example', to: ['ann@a.example.org', 'bob@c.example'], text: 'hi' }
  const { queue_id: id } = (await api.post('/messages', sent, { as: 'sender' })).json
  await world.advance(60_000)
  const before = (await api.get(`/messages/${id}`)).json
  expect(before).toMatchObject({ client: 'unknown[127.0.0.1]', sasl_username: 'token:sender', message_id: expect.stringMatching(/^<.+>$/) })
  expect(before).toMatchObject({ operations: [], future: [{ recipient: 'ann@a.example.org' }, { recipient: 'bob@c.example' }] })
  const { attempts, expire_time: end } = before.future[0] ?? { attempts: [], expire_time: 0 }
  expect(attempts.length).toBeGreaterThan(40)
  const made = world.attempts('a.example.org').length
  await world.advance((end + 60) * 1_000 - world.clock.now())
  const later = world.attempts('a.example.org').slice(made)
  expect(later.map(({ at }) => (BEGINNING + at) / 1_000)).toEqual(attempts)
  expect((await api.get(`/messages/${id}`)).json).toMatchObject({ queue_name: 'gone', future: [] })
})

test('a limited token sees its own operations on a message, and the future of its recipients', async () => {
  const { api, ids } = await filled()
  const hold = (as: string, operation: string) => api.post('/operations', { operation, selection: { kind: 'ids', ids: [ids[0]] } }, { as })
  await hold('operator', 'hold')
  expect((await api.get(`/messages/${ids[0]}`)).json).toMatchObject({
    operations: [{ operation: 'hold', who: 'token:operator (127.0.0.1)' }],
    future: [],
  })
  await hold('limited', 'release')
  const own = (await api.get(`/messages/${ids[0]}`, { as: 'limited' })).json
  expect(own).toMatchObject({ operations: [{ operation: 'release', who: 'token:limited (127.0.0.1)' }], future: [{}, {}] })
})

test('the content is sent as text, to those with the right only', async () => {
  const { api, ids, world: queue } = await filled()
  expect((await api.get(`/messages/${ids[0]}/content`)).status).toBe(403)
  const reply = await api.get(`/messages/${ids[0]}/content`, { as: 'reader' })
  expect(reply.text).toBe('Subject: hi\r\n\r\nhi\r\n')
  expect(reply.headers.get('content-type')).toBe('text/plain; charset=utf-8')
  expect(reply.headers.get('content-disposition')).toMatch(/^attachment; /)
  expect((await api.get(`/messages/${ids[0]}/content?part=header`, { as: 'reader' })).text).toBe('Subject: hi\r\n\r\n')
  await queue.operate('delete', [ids[0] ?? ''])
  expect((await api.get(`/messages/${ids[2]}/content`, { as: 'reader' })).json).toMatchObject({ status: 410 })
})

test('the parts of a content are read by those with the right only, of a large one the first megabyte', async () => {
  const { api, ids, world: queue } = await filled()
  expect((await api.get(`/messages/${ids[0]}/parts`)).status).toBe(403)
  expect((await api.get(`/messages/${ids[0]}/parts`, { as: 'reader' })).json).toEqual({
    headers: [{ name: 'subject', value: 'hi' }],
    text: 'hi\n',
    html: null,
    attachments: [],
    whole: true,
  })
  const file = Buffer.alloc(1_500_000, 'x').toString('base64').replaceAll(/.{76}/g, '$&\r\n')
  const mail = [
    'Subject: =?utf-8?q?gr=C3=BC=C3=9Fe?=',
    'Content-Type: multipart/mixed; boundary=b',
    '',
    '--b',
    'Content-Type: text/html',
    '',
    '<b>hi</b>',
    '--b',
    'Content-Type: application/pdf; name="a.pdf"',
    'Content-Transfer-Encoding: base64',
    '',
  ].join('\r\n')
  const large = await queue.accept(['ann@a.example.org'], { content: `${mail}\r\n${file}\r\n--b--\r\n` })
  const { json, text } = await api.get(`/messages/${large}/parts`, { as: 'reader' })
  expect(json).toMatchObject({
    text: null,
    html: '<b>hi</b>',
    attachments: [{ part: 2, name: 'a.pdf', type: 'application/pdf' }],
    whole: false,
  })
  expect(text).toContain('"value":"grüße"')
  await queue.operate('delete', [ids[0] ?? ''])
  expect((await api.get(`/messages/${ids[2]}/parts`, { as: 'reader' })).json).toMatchObject({ status: 410 })
})

test('a limited token reads the content of messages that only have recipients at its destinations', async () => {
  const { api, world: queue } = await serve()
  const read = (id: string, part: string) => api.get(`/messages/${id}/content?part=${part}`, { as: 'limited' })
  const own = await queue.accept(['ann@a.example.org', 'bob@b.example.org'])
  const mixed = await queue.accept(['ann@a.example.org', 'carl@c.example'])
  const delivered = await queue.accept(['ann@a.example.org', 'dora@ok.example'])
  const foreign = await queue.accept(['carl@c.example'])
  await queue.rest()
  expect((await read(own, 'all')).text).toBe('Subject: hi\r\n\r\nhi\r\n')
  for (const part of ['all', 'header', 'body']) {
    // The recipient elsewhere still waits in one message, and has its mail in the other.
    for (const id of [mixed, delivered]) {
      const { status, json } = await read(id, part)
      expect(status).toBe(403)
      expect(json.detail).toBe('the token is limited to the destinations *.example.org, and the message has others too')
    }
    expect((await read(foreign, part)).status).toBe(404)
  }
})

test('destinations are listed by their waiting mail, or by name, in pages', async () => {
  const { api, world: queue } = await filled()
  await queue.accept(['eve@c.example'])
  await queue.rest()
  const names = (json: Members) => json.destinations.map((one) => one.destination)
  const first = (await api.get('/destinations?limit=1')).json
  expect(names(first)).toEqual(['c.example'])
  expect(first.destinations[0]).toMatchObject({ waiting: 2, state: 'open', node: null })
  const second = (await api.get(`/destinations?limit=10&after=${String(first.next)}`)).json
  expect(names(second)).toEqual(expect.arrayContaining(['a.example.org', 'b.example.org']))
  expect(names((await api.get('/destinations?order=name&name=*.org')).json)).toEqual(['a.example.org', 'b.example.org'])
  expect(names((await api.get('/destinations?order=name&name=*.EXAMPLE.o*g')).json)).toEqual(['a.example.org', 'b.example.org'])
  for (const order of ['name', 'waiting'])
    expect(names((await api.get(`/destinations?order=${order}&name=${MANY_STARS}`)).json)).toEqual([])
})

test('a destination has its last outcomes, its settings and its causes', async () => {
  const { api } = await filled()
  const { json } = await api.get('/destinations/C.example')
  expect(json).toMatchObject({ destination: 'c.example', waiting: 1, last_outcomes: ['deferred'] })
  expect(json.settings.values).toMatchObject({ minimal_backoff_time: '300s' })
  const { causes } = (await api.get('/destinations/c.example/causes')).json
  expect(causes).toMatchObject([{ recipients: 1, cause: '450 4.2.1 busy, try later', filter: { destination: 'c.example' } }])
  expect((await api.get('/destinations/nowhere.example')).status).toBe(404)
})

test('a destination has the values of its table, also of one whose heading has capital letters', async () => {
  const tables = { destination: { 'Far.Example': { minimal_backoff_time: '10m' } } }
  opened = await ApiWorld.open('memory', configFrom(tables, 'relay.example'), tables)
  await opened.queue.accept(['ann@far.example'])
  await opened.queue.advance(MINUTE)
  const { settings } = (await opened.api.get('/destinations/far.example')).json
  expect(settings.values).toMatchObject({ minimal_backoff_time: '10m' })
  expect(settings.origins).toEqual({ minimal_backoff_time: '[destination."far.example"]' })
})

test('causes are summed over the destinations that a token may see, or listed by destination', async () => {
  const { api } = await filled()
  const busy = { cause: '450 4.2.1 busy, try later', kind: 'failed', on_hold: false }
  const names = ['a.example.org', 'b.example.org', 'c.example']
  const { causes } = (await api.get('/causes')).json
  expect(causes).toMatchObject([
    {
      ...busy,
      recipients: 3,
      destinations: 3,
      largest_destinations: names,
      filter: { destination: null, reply: expect.any(String) as string },
    },
  ])
  const apart = (await api.get('/causes?by=destination')).json
  expect(apart.causes).toMatchObject(names.map((destination) => ({ ...busy, destination, recipients: 1 })))
  const limited = (await api.get('/causes', { as: 'limited' })).json
  expect(limited.causes).toMatchObject([{ recipients: 2, largest_destinations: names.slice(0, 2) }])
})

test('the history lists mail that has left, the last one first', async () => {
  const { api, ids, world: queue } = await filled()
  const last = await queue.accept(['fay@ok.example'])
  await queue.rest()
  const { json } = await api.get('/history?limit=1')
  expect(json.messages).toMatchObject([{ queue_id: last, recipients: [{ address: 'fay@ok.example', outcome: 'delivered' }] }])
  const next = (await api.get(`/history?limit=1&before=${String(json.next)}`)).json
  expect(next.messages).toMatchObject([{ queue_id: ids[2] }])
  expect((await api.get('/history?recipient=dora@*')).json.messages).toHaveLength(1)
  const lines = await api.get('/history?recipient=dora@*', { headers: { accept: 'application/x-ndjson' } })
  expect(JSON.parse(lines.text)).toEqual(next.messages[0])
})

test('a range of arrivals whose end is not after its begin is refused', async () => {
  const { api } = await filled()
  const range = 'arrived_after=1800000000&arrived_before=1800000000'
  for (const path of ['/messages', '/messages/count', '/senders']) {
    const refused = await api.get(`${path}?${range}`)
    expect([path, refused.status, refused.json.errors]).toMatchObject([path, 422, [{ pointer: '/arrived_before' }]])
  }
  const filter = { arrived_after: 1_800_000_001, arrived_before: 1_800_000_000 }
  expect(
    (await api.post('/operations', { operation: 'hold', selection: { kind: 'filter', filter }, dry_run: true }, { as: 'operator' })).status,
  ).toBe(422)
})

test('the history is limited to a range of times, in seconds or RFC 3339', async () => {
  const { api, ids, world: queue } = await filled()
  await queue.advance(60_000)
  const last = await queue.accept(['fay@ok.example'])
  await queue.rest()
  const [{ recipients } = { recipients: [] }] = (await api.get('/history?limit=1')).json.messages as readonly {
    recipients: readonly { time: number }[]
  }[]
  const at = recipients[0]?.time ?? Number.NaN
  const found = async (query: string) =>
    ((await api.get(`/history?${query}`)).json.messages as readonly { queue_id: string }[]).map(({ queue_id: id }) => id)
  expect(await found(`left_after=${at}`)).toEqual([last])
  expect(await found(`left_before=${at}`)).toEqual([ids[2]])
  expect(await found(`left_before=${new Date(at * 1_000).toISOString()}`)).toEqual([ids[2]])
  expect(await found(`left_after=${at}&since=1s`)).toEqual([last])
  expect(await found(`left_after=0&left_before=${at + 1}`)).toEqual([last, ids[2]])
  for (const [query, pointer] of [
    ['left_after=2h', '/left_after'],
    ['left_before=yesterday', '/left_before'],
    [`left_after=${at}&left_before=${at}`, '/left_before'],
  ] as const) {
    const refused = await api.get(`/history?${query}`)
    expect(refused.status, query).toBe(422)
    expect(refused.json.errors, query).toMatchObject([{ pointer }])
  }
})

test('GET /now has the state of the queue', async () => {
  const { api, ids } = await filled()
  const { json } = await api.get('/now')
  expect(json).toMatchObject({
    running: true,
    oldest: { queue_id: ids[0] },
    attention: [],
    queues: [{ queue_name: 'deferred', messages: 2, recipients: 3 }],
    last_hour: { accepted: 4, delivered: 1, deferred: 3 },
    balance: { accepted: 4, delivered: 1, waiting: 3, difference: 0 },
  })
  expect(json.largest_destinations).toHaveLength(3)
})

test('GET /destinations does not read the saved states of providers where no destination has one', async () => {
  const { world: queue, api } = await filled()
  const { reader } = queue
  const read = vi.spyOn(reader.records.providers, 'all')
  expect((await api.get('/destinations')).json.destinations).toHaveLength(4)
  expect(read).not.toHaveBeenCalled()
})

test('GET /now has the messages by age, as the command counts them', async () => {
  const { api, world: queue } = await filled()
  const agesAfter = async (ms: number) => {
    await queue.advance(ms)
    await api.get('/now')
    await queue.advance(1_000)
    return (await api.get('/now')).json.ages
  }
  const limits = [5, 10, 20, 40, 80, 160, 320, 640, 1280, null]
  expect(await agesAfter(0)).toMatchObject({ limits, counts: [2, 0, 0, 0, 0, 0, 0, 0, 0, 0] })
  expect(await agesAfter(12 * 60_000)).toMatchObject({ counts: [0, 0, 2, 0, 0, 0, 0, 0, 0, 0] })
  expect(await agesAfter(24 * 3_600_000)).toMatchObject({ counts: [0, 0, 0, 0, 0, 0, 0, 0, 0, 2] })
  expect((await api.get('/now', { as: 'limited' })).json.ages).toBeNull()
})

test('GET /now/stream sends the state as events, from one tick for all clients', async () => {
  const { api, world: queue } = await filled()
  const read = async () => {
    const response = await fetch(`${api.base}/now/stream`, { headers: { authorization: 'Bearer viewer' } })
    expect(response.headers.get('content-type')).toBe('text/event-stream')
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
    return { next: async () => (await reader?.read())?.value ?? '', end: () => reader?.cancel() }
  }
  const clients = [await read(), await read()]
  await queue.advance(1_000)
  const end = (await api.get('/now')).json.time
  const last = async ({ next }: Awaited<ReturnType<typeof read>>): Promise<string> => {
    for (let text = ''; ; text += await next()) {
      const event = text.split('\n\n').find((one) => one.includes(`"time":${String(end)},`))
      if (event !== undefined) return event
    }
  }
  const [first, second] = await Promise.all(clients.map(last))
  expect(first).toBe(second)
  expect(JSON.parse(first?.replace(/^event: now\ndata: /, '') ?? '')).toMatchObject({ running: true, time: end })
  await Promise.all(clients.map(async (one) => one.end()))
})

test('GET /series has the recipients of each interval, from the first mail of the queue', async () => {
  const { api, world } = await filled()
  await world.advance(2 * MINUTE)
  const { json } = await api.get('/series?since=1h')
  expect(json).toMatchObject({ metric: 'flow', step: 60 })
  const sum = (values: readonly (number | null)[] | undefined): number => (values ?? []).reduce<number>((all, one) => all + (one ?? 0), 0)
  const [whole] = json.series
  expect([whole?.name, whole?.values['accepted']?.length]).toEqual([null, 60])
  expect(whole?.values['accepted']?.slice(0, -4).every((one) => one === null)).toBe(true)
  expect(['accepted', 'delivered', 'deferred'].map((kind) => sum(whole?.values[kind]))).toEqual([4, 1, 3])
  const split = (await api.get('/series?since=2h&split_by=destination')).json
  expect(split.series.reduce((all, { values }) => all + sum(values['accepted']), 0)).toBe(4)
  const causes = (await api.get('/series?metric=causes&since=1h')).json
  expect(sum(causes.series[0]?.values['deferred'])).toBe(3)
  // The same intervals are unknown in each series of counts.
  const unknown = (values: readonly (number | null)[] = []): number => values.findIndex((one) => one !== null)
  for (const query of ['split_by=destination', 'destination=slow.example', 'destination=none.example', 'metric=delay', 'metric=causes'])
    for (const range of ['since=12h&step=1h', 'since=3d&step=1h']) {
      const [series] = (await api.get(`/series?${query}&${range}`)).json.series
      const [all] = (await api.get(`/series?${range}`)).json.series
      expect(unknown(all?.values['accepted'])).toBeGreaterThan(0)
      const [counts] = ['delivered', 'deferred'].flatMap((kind) => series?.values[kind] ?? [])
      expect([query, range, counts]).toEqual([query, range, null])
      expect([query, unknown(series?.values['delivered'] ?? series?.values['deferred'])]).toEqual([query, unknown(all?.values['accepted'])])
    }
})

test('GET /series covers the range also in hours, and has the backlog of one moment of each', async () => {
  const { api, world } = await filled()
  await world.advance(90 * MINUTE)
  const hour = Math.floor(world.clock.now() / HOUR) * HOUR
  const sample = { incoming: 0, active: 0, deferred: 0, hold: 0, scheduled: 0, oldest: 0 }
  const { backlogs } = world.store.records
  await backlogs.add({ ...sample, at: hour - 50 * MINUTE, active: 100, oldest: 9 * MINUTE })
  await backlogs.add({ ...sample, at: hour - 40 * MINUTE, deferred: 90, hold: 5, oldest: 19 * MINUTE })
  await backlogs.add({ ...sample, at: hour + MINUTE, deferred: 70 })
  await backlogs.add({ ...sample, at: hour + 2 * MINUTE, deferred: 30 })
  const { json } = await api.get('/series?metric=backlog&since=1h&step=1h')
  expect(json).toMatchObject({ from: (hour - HOUR) / SECOND, to: (hour + HOUR) / SECOND })
  expect(json.series[0]?.values).toMatchObject({ active: [100, 0], deferred: [0, 30], hold: [0, 0], oldest: [19 * 60, 0] })
  expect((await api.get('/now')).json).toMatchObject({ waited: { time: (hour + 2 * MINUTE) / SECOND, recipients: 70 } })
})

test('GET /series ends with the last count of the backlog, and has others at the end of their minute', async () => {
  const { api, world } = await filled()
  await world.advance(90 * MINUTE)
  const minute = Math.floor(world.clock.now() / MINUTE) * MINUTE
  const sample = { incoming: 0, active: 0, deferred: 0, hold: 0, scheduled: 0, oldest: 0 }
  for (const [ago, deferred] of [90, 30, 10].entries())
    await world.store.records.backlogs.add({ ...sample, at: minute - (3 - ago) * MINUTE, deferred })
  const series = async (query: string) => (await api.get(`/series?metric=backlog&${query}`)).json
  const minutes = await series('since=4m')
  expect(minutes).toMatchObject({ to: minute / SECOND, known_since: (minute - 2 * MINUTE) / SECOND })
  expect(minutes.series[0]?.values['deferred']?.slice(-3)).toEqual([90, 30, 10])
  expect(await series('since=3m')).toMatchObject({ known_since: null })
  expect((await series('since=10m&step=5m')).series[0]?.values['deferred']?.at(-1)).toBe(10)
})

test('GET /series has whole intervals of any range of the last 400 days, and none before', async () => {
  const { api, world } = await filled()
  await world.advance(90 * SECOND)
  const span = async (query: string, step: number): Promise<number | undefined> => {
    const { json } = await api.get(`/series?${query}`)
    expect(json).toMatchObject({ step })
    return json.series[0]?.values['accepted']?.length
  }
  expect(await span('since=400d', DAY / SECOND)).toBe(401)
  expect(await span('since=400d&step=14d', (14 * DAY) / SECOND)).toBe(29)
  const before = (time: Duration): number => (world.clock.now() - time) / SECOND
  expect((await api.get(`/series?from=${before(450 * DAY)}&to=${before(420 * DAY)}`)).status).toBe(422)
  // The minute that the last second belongs to goes on: the last one that has ended is shown.
  expect(await span('since=1s', 60)).toBe(1)
  expect(await span(`from=${before(80 * SECOND)}&to=${before(75 * SECOND)}`, 60)).toBe(1)
})

test('GET /series refuses what cannot be combined, and has CSV', async () => {
  const { api } = await filled()
  for (const query of [
    'metric=delay&split_by=destination',
    'since=1h&from=0',
    'step=90s',
    'since=30d&step=1m',
    'split_by=node&node=mx1',
    'since=0',
  ])
    expect([query, (await api.get(`/series?${query}`)).status]).toEqual([query, 422])
  for (const query of ['split_by=provider', 'metric=causes'])
    expect([query, (await api.get(`/series?${query}`, { as: 'limited' })).status]).toEqual([query, 403])
  const { text } = await api.get('/series?since=1h&split_by=destination&format=csv')
  expect(text.split('\r\n')[0]).toBe('time,name,accepted,delivered,deferred,bounced,expired')
})

test('a limited token sees its destinations only', async () => {
  const { api, ids } = await filled()
  const asked = { as: 'limited' }
  const { messages } = (await api.get('/messages', asked)).json
  expect(messages.map((one) => one.queue_id)).toEqual([ids[0]])
  expect((await api.get('/messages?destination=c.example', asked)).status).toBe(403)
  expect((await api.get(`/messages/${ids[1]}`, asked)).status).toBe(404)
  expect((await api.get('/destinations', asked)).json.destinations).toHaveLength(2)
  expect((await api.get('/destinations/c.example', asked)).status).toBe(403)
  expect((await api.get('/history', asked)).json.messages).toEqual([])
  expect((await api.get('/now', asked)).json.largest_destinations.map((one) => one.destination).toSorted()).toEqual([
    'a.example.org',
    'b.example.org',
  ])
  expect((await api.get('/settings', asked)).status).toBe(403)
})

test('GET /config and GET /settings have the parameters, POST /plans plans policies', async () => {
  const { api } = await serve('memory')
  const configuration = (await api.get('/config')).json
  expect((await api.get('/settings')).json).toEqual({ ...configuration, between_nodes: null })
  const { parameters } = configuration
  expect(parameters.find((one) => one.name === 'minimal_backoff_time')).toMatchObject({ value: '300s', given: false })
  const { plans } = (await api.post('/plans', { policies: ['doubling', 'fixed(10m)'] })).json
  expect(plans).toMatchObject([{ policy: 'doubling' }, { policy: 'fixed(10m)' }])
  expect(plans[1]?.attempts.slice(0, 3)).toEqual([0, 600, 1200])
  const refused = await api.post('/plans', { policies: ['doubling', 'thrice'] })
  expect(refused.status).toBe(422)
  expect(refused.json.errors).toMatchObject([{ pointer: '/policies/1' }])
  expect((await api.post('/plans', { colour: 'red' })).json.errors).toMatchObject([
    { pointer: '/colour', detail: expect.stringMatching(/^unknown member; known: policies, /) },
  ])
  expect((await api.post('/plans', { policies: ['fixed(1s)'], minimal_backoff_time: 1 })).status).toBe(422)
})

test('an API without an open queue answers 503', async () => {
  const { world: queue } = await serve('memory')
  const closed = await new ApiServer({ clock: queue.clock, parts: () => null }).start()
  try {
    const { status, headers } = await closed.get('/messages')
    expect(status).toBe(503)
    expect(headers.get('retry-after')).toBe('5')
  } finally {
    await closed.close()
  }
})

test('a body that is not JSON, or of another type, is refused as the OpenAPI document says, on every route', async () => {
  const { api } = await serve('memory')
  const routes = api.api.routes.filter(({ body }) => body !== undefined)
  expect(routes.length).toBeGreaterThan(4)
  for (const { method, path } of routes) {
    const to = path.replace('/api/v1', '').replace(':name', 'a.example.org')
    expect((await api.ask(method, to, { as: 'admin', body: '{' })).status, to).toBe(400)
    const type = { headers: { 'content-type': 'text/plain' } }
    expect((await api.ask(method, to, { as: 'admin', body: '{}', ...type })).status, to).toBe(415)
  }
  expect((await api.post('/plans', JSON.stringify({ policies: ['x'.repeat(100_000)] }))).status).toBe(413)
})

test('the OpenAPI document is valid', async () => {
  const { api } = await serve('memory')
  const { json } = await api.get('/openapi.json', { as: 'sender' })
  const validate = validator().compile(openApiSchema())
  expect(validate(json) ? [] : validate.errors).toEqual([])
  const ids = Object.values(json.paths).flatMap((path) => Object.values(path).map(({ operationId }) => operationId))
  expect(new Set(ids).size).toBe(ids.length)
  for (const [path, operations] of Object.entries(json.paths))
    for (const operation of Object.values(operations)) expect(operation, path).toMatchObject({ tags: [path.split(/[/.]/)[3]] })
  const schema = { $ref: '#/components/schemas/WebhookBody' }
  expect(json).toMatchObject({ webhooks: { event: { post: { requestBody: { content: { 'application/json': { schema } } } } } } })
  expect(json).toMatchObject({ components: { schemas: { WebhookBody: { required: ['type', 'timestamp', 'data'] } } } })
})
