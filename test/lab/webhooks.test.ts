/** Webhooks of a world over HTTP: recorded, and posted to an application, for which the clock of the world stands. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Webhook } from 'standardwebhooks'
import { expect, test } from 'vitest'
import { ForwardingNet, type DialOptions, type Lookup } from '../../src/system/net.ts'
import { systemClock } from '../../src/system/system-clock.ts'
import { systemNet } from '../../src/system/system-net.ts'
import { TestLab, type LabClient } from '../support/lab-client.ts'
import { WebhookApplication, type AppRequest } from '../support/webhook-application.ts'

const NO_REQUEST: AppRequest = { headers: {}, body: '' }
const TYPES = ['recipient.delivered']

const statuses = async (world: LabClient): Promise<readonly (readonly [number, number | null])[]> =>
  (await world.get('/webhooks/app/requests')).requests.map(({ at, status }) => [at, status] as const)

test('requests are recorded, and answered as the script says', async () => {
  await using lab = await TestLab.open()
  const world = await lab.world()
  const { secret } = await world.post('/webhooks', { name: 'app', types: TYPES })
  await world.post('/webhooks/app/script', { replies: 500, first: 1 })
  await world.send('ann@x.example')
  await world.post('/clock/settle', { after: { accepted: 1, requests: { app: 1 } } })
  expect(await statuses(world)).toEqual([[0, 500]])
  await world.post('/clock/advance', { by: '1m' })
  const { requests } = await world.get('/webhooks/app/requests')
  expect(requests.map(({ status }) => status)).toEqual([500, 200])
  const { headers, body } = requests[0] ?? NO_REQUEST
  expect(JSON.parse(body)).toMatchObject({ type: 'recipient.delivered', data: { recipient: 'ann@x.example' } })
  expect(headers['webhook-timestamp']).toBe('1767225600')
  expect(() => new Webhook(secret).verify(body, headers)).toThrow('timestamp too old')
  await world.post('/webhooks/app/script', { is_down_for: '1h' })
  await world.send('eve@x.example')
  await world.post('/clock/advance', { by: '2h' })
  expect((await statuses(world)).map(([, status]) => status)).toEqual([500, 200, ...Array(10).fill(null), 200])
  expect((await world.get('/history')).order).toBe('sequential')
})

test('refused events are parked, and replayed on request', async () => {
  await using lab = await TestLab.open()
  const world = await lab.world()
  await world.post('/webhooks', { name: 'app', types: TYPES })
  await world.post('/webhooks/app/script', { replies: 400 })
  await world.send('ann@x.example')
  await world.post('/clock/advance', { by: '1d' })
  const before = (await statuses(world)).length
  await world.post('/webhooks/app/script', { recovers: true })
  expect(await world.post('/webhooks/app/replay', { kind: 'parked' })).toEqual({ count: 1 })
  await world.post('/clock/settle')
  expect((await statuses(world)).slice(before).map(([, status]) => status)).toEqual([200])
})

test('the clock of the world stands while the application answers, and the processor rests', async () => {
  await using app = await WebhookApplication.open(() => sleep(500, 204))
  await using lab = await TestLab.open()
  const world = await lab.world()
  const { secret } = await world.post('/webhooks', { name: 'app', types: TYPES, url: app.url })
  await world.post('/destinations/slow.example/greylists', { delay: '5m' })
  await world.send('ann@slow.example')
  await world.post('/clock/advance', { by: '299s' })
  const before = process.cpuUsage()
  await world.post('/clock/advance', { by: '1h' })
  const { user, system } = process.cpuUsage(before)
  expect(await statuses(world)).toEqual([[300, 204]])
  // 50 ms on an idle machine.
  expect((user + system) / 1_000).toBeLessThan(400)
  const { headers, body } = app.requests[0] ?? NO_REQUEST
  expect(() => new Webhook(secret).verify(body, headers)).not.toThrow()
  expect(headers['deferd-lab-time']).toBe('2026-01-01T00:05:00.000Z')
  expect((await world.get('/history')).order).toBe('concurrent')
})

test('settle answers after the application has answered, and waits for the mail that it sent', async () => {
  await using lab = await TestLab.open()
  const world = await lab.world()
  await using app = await WebhookApplication.open(async () => {
    await world.send('operator@us.example')
    return 200
  })
  await world.post('/webhooks', { name: 'app', types: ['recipient.bounced'], url: app.url })
  await world.post('/destinations/x.example/rejects')
  await world.send('ann@x.example')
  await world.post('/clock/settle', { after: { accepted: 1 } })
  expect(app.requests).toHaveLength(1)
  expect((await world.get('/recipients/operator@us.example')).copies).toEqual([1])
})

test('signatures have the time of the world on request', async () => {
  await using app = await WebhookApplication.open()
  await using lab = await TestLab.open()
  const world = await lab.world()
  await world.post('/webhooks', { name: 'app', types: TYPES, url: app.url, timestamps: 'virtual' })
  await world.send('ann@x.example')
  await world.post('/clock/settle', { after: { accepted: 1 } })
  expect(app.requests.map(({ headers }) => headers['webhook-timestamp'])).toEqual(['1767225600'])
  const refused = await world.ask('POST', '/webhooks', { name: 'other', timestamps: 'virtual' })
  expect([refused.status, refused.json.errors[0]?.pointer]).toEqual([422, '/timestamps'])
})

/** Timers that fire in a quarter of the time, so that 10 s pass in 2.5 s: an answer under load takes less. */
const FAST = {
  monotonic: () => systemClock.monotonic() * 4,
  after: (delay: number, action: () => void) => systemClock.after(delay / 4, action),
}

test('an application that does not answer within 10 s has failed, and is asked again 5 s later by the clock of the world', async () => {
  await using app = await WebhookApplication.open((_request, n) => (n === 0 ? 'never' : 200))
  await using lab = await TestLab.open({ webhookClock: FAST })
  const world = await lab.world()
  await world.post('/webhooks', { name: 'app', types: TYPES, url: app.url })
  await world.send('ann@x.example')
  await world.post('/clock/advance', { by: '1m' })
  const [first, second, ...more] = await statuses(world)
  expect([first, second?.[1], more]).toEqual([[0, null], 200, []])
  // The waits vary by a fifth.
  expect(second?.[0]).toBeGreaterThanOrEqual(4)
  expect(second?.[0]).toBeLessThanOrEqual(6)
})

test('an application that does not answer delays no other world, and its world is deleted within 2 s', async () => {
  await using app = await WebhookApplication.open(() => 'never')
  await using lab = await TestLab.open()
  const [hung, other] = [await lab.world(), await lab.world()]
  await hung.post('/webhooks', { name: 'app', types: TYPES, url: app.url })
  await hung.send('ann@x.example')
  const waiting = hung.ask('POST', '/clock/advance', { by: '1h' })
  await expect.poll(() => app.requests.length, { timeout: 30_000 }).toBe(1)
  const before = performance.now()
  await other.send('eve@x.example')
  expect(await other.post('/clock/advance', { by: '1h' })).toMatchObject({ elapsed: 3_600 })
  expect(await hung.get('/clock')).toMatchObject({ elapsed: 0 })
  expect((await hung.ask('DELETE', '')).status).toBe(204)
  // 2 s on an idle machine, and 10 s without the deletion.
  expect(performance.now() - before).toBeLessThan(8_000)
  expect([200, 410]).toContain((await waiting).status)
})

/** A net that counts connections, and knows some names. */
class WatchedNet extends ForwardingNet {
  readonly dialled: string[] = []
  readonly names = new Map<string, readonly string[]>()

  constructor() {
    super(systemNet)
  }

  override dial(options: DialOptions): ReturnType<ForwardingNet['dial']> {
    this.dialled.push(options.address)
    return super.dial(options)
  }

  override lookupHost(host: string): Promise<Lookup<string>> {
    const records = this.names.get(host)
    return Promise.resolve(records === undefined ? { kind: 'none', nxdomain: true } : { kind: 'found', records })
  }
}

test('a target beyond loopback is refused before a connection, unless the lab allows it', async () => {
  const net = new WatchedNet()
  net.names.set('intern.example', ['10.0.0.7']).set('www.example', ['93.184.216.34']).set('both.example', ['127.0.0.1', '10.0.0.7'])
  net.names.set('app.example', ['127.0.0.1'])
  await using lab = await TestLab.open({ net, allowed: ['10.0.0.9:80'] })
  const world = await lab.world()
  const answer = async (url: string) => {
    const { status, json } = await world.ask('POST', '/webhooks', { name: `n${Math.abs(url.length)}-${url.replace(/\W+/g, '')}`, url })
    return [status, json.detail ?? null]
  }
  const refused = (place: string, why: string) => [403, `${place} ${why} not named by --allow-webhook`]
  expect(await answer('http://10.0.0.7/')).toEqual(refused('10.0.0.7:80', 'is not loopback and'))
  expect(await answer('http://0.0.0.0/')).toEqual(refused('0.0.0.0:80', 'is not loopback and'))
  expect(await answer('http://[::ffff:10.0.0.7]/')).toEqual(refused('[::ffff:a00:7]:80', 'is not loopback and'))
  expect(await answer('https://intern.example/')).toEqual(refused('intern.example:443', 'leads to 10.0.0.7, which is not loopback, and is'))
  expect(await answer('https://www.example/')).toEqual(refused('www.example:443', 'leads to 93.184.216.34, which is not loopback, and is'))
  expect(await answer('http://both.example/')).toEqual(refused('both.example:80', 'leads to 10.0.0.7, which is not loopback, and is'))
  expect(await answer('http://unknown.example/')).toEqual(refused('unknown.example:80', 'has no address and is'))
  for (const url of ['ftp://127.0.0.1/', 'http://user@127.0.0.1/', 'file:/etc/passwd', 'stdout']) expect((await answer(url))[0]).toBe(422)
  for (const url of ['http://127.1/', 'http://[::1]:9/', 'http://2130706433:9/', 'http://10.0.0.9/', 'http://app.example:9/'])
    expect((await answer(url))[0]).toBe(201)
  expect(net.dialled).toEqual([])
})

test('a name that leads elsewhere later is not connected to', async () => {
  const net = new WatchedNet()
  net.names.set('app.example', ['127.0.0.1'])
  await using lab = await TestLab.open({ net })
  const world = await lab.world()
  await world.post('/webhooks', { name: 'app', types: TYPES, url: 'http://app.example:9/' })
  net.names.set('app.example', ['10.0.0.7'])
  await world.send('ann@x.example')
  await world.post('/clock/settle', { after: { accepted: 1 } })
  expect(await statuses(world)).toEqual([[0, null]])
  expect(net.dialled).toEqual([])
})

test('a webhook is found by its name, which another cannot take', async () => {
  await using lab = await TestLab.open()
  const world = await lab.world()
  await world.post('/webhooks', { name: 'app' })
  const taken = await world.ask('POST', '/webhooks', { name: 'app' })
  expect([taken.status, taken.json.type]).toEqual([409, '/problems/name-taken'])
  const unknown = await world.ask('GET', '/webhooks/orders/requests')
  expect([unknown.status, unknown.json.detail]).toEqual([404, 'there is no webhook orders: webhooks are app'])
  const late = await world.ask('POST', '/clock/advance', { by: 0, after: { requests: { app: 1 } }, within: '50ms' })
  expect([late.status, late.json.detail]).toEqual([409, 'webhook app has got 0 of 1 request within 0.05s; open sessions: 0'])
  expect((await world.ask('POST', '/clock/advance', { by: 0, after: { requests: { orders: 1 } } })).status).toBe(404)
  expect((await world.ask('POST', '/webhooks', { name: 'x', types: ['mail.read'] })).json.errors[0]?.pointer).toBe('/types/0')
})
