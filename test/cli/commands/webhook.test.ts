/** `deferd webhook` as whole commands, with a running daemon that sends to a receiver on loopback, and without a daemon. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createTransport } from 'nodemailer'
import { Webhook } from 'standardwebhooks'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { configFrom } from '../../../src/config/load.ts'
import { startDaemon, type Daemon } from '../../../src/daemon/daemon.ts'
import { systemClock } from '../../../src/system/system-clock.ts'
import { Events } from '../../../src/telemetry/events.ts'
import { Operator } from '../../support/operator.ts'

interface Received {
  readonly headers: Record<string, string>
  readonly body: string
}

let operator: Operator
let daemon: Daemon | undefined
let server: Server
let received: Received[]
let status: number
let url: string

beforeEach(async () => {
  operator = new Operator()
  received = []
  status = 200
  server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (text: string) => (body += text))
    request.on('end', () => {
      received.push({ headers: request.headers as Record<string, string>, body })
      response.writeHead(status).end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
})

afterEach(async () => {
  await daemon?.stop()
  daemon = undefined
  server.close()
  server.closeAllConnections()
  operator.leave()
})

async function start(more: object = {}): Promise<void> {
  daemon = await startDaemon({
    loaded: configFrom({ ...settings(), ...more }, 'relay.example'),
    events: new Events(() => systemClock.now()),
  })
}

const settings = () => ({
  queue_directory: operator.directory,
  smtpd_listen: '127.0.0.1:0',
  relayhost: '',
  transport_maps: { 'there.example': 'discard:' },
})

const mail = (to: string) =>
  createTransport({ host: '127.0.0.1', port: daemon?.listeners[0]?.port ?? 0 }).sendMail({ from: 'app@us.example', to, text: 'hi' })

const typesOf = (requests: readonly Received[]) => requests.map(({ body }) => (JSON.parse(body) as { type: string }).type)

describe('with a daemon', () => {
  test('a subscription gets signed events, is listed with its state, changes its secret, and is removed', async () => {
    await start()
    const added = await operator.run(['webhook', 'add', 'app', url, '--allow-private', '--types', 'recipient.*,message.removed'])
    expect(added).toMatchObject({ code: 0, out: expect.stringMatching(/^whsec_\S{44}\n$/) as string })
    await mail('ann@there.example')
    await expect.poll(() => typesOf(received)).toEqual(['recipient.delivered', 'message.removed'])
    for (const { headers, body } of received) expect(new Webhook(added.out.trim()).verify(body, headers)).toBeDefined()

    const changed = await operator.run(['webhook', 'secret', 'app', '--overlap', '1h'])
    const tested = await operator.run(['webhook', 'test', 'app'])
    expect(tested).toMatchObject({ code: 0, out: expect.stringMatching(/ took the event: 200 OK, after [\d.]+ m?s\n$/) as string })
    expect(tested.out).toContain(`app: ${url} `)
    // The commands of the test have a clock of their own, whose time `verify` refuses.
    const { headers = {}, body = '' } = received.at(-1) ?? {}
    const sentAt = new Date(Number(headers['webhook-timestamp']) * 1000)
    const signatures = [changed.out, added.out].map((secret) => new Webhook(secret.trim()).sign(headers['webhook-id'] ?? '', sentAt, body))
    expect(headers['webhook-signature']).toBe(signatures.join(' '))

    expect(JSON.parse((await operator.run(['webhook', 'list', '--json'])).out)).toMatchObject({
      name: 'app',
      owner: 'command',
      to: url,
      types: ['recipient.*', 'message.removed'],
      state: 'active',
      behind: 0,
      parked: 0,
      last_answer: '200 OK',
      last_answer_ok: true,
    })
    expect((await operator.run(['webhook', 'list'])).out).toMatch(
      /^app: http:\S+; types recipient\.\*, message\.removed; nothing waits; last answer /,
    )
    expect((await operator.run(['webhook', 'remove', 'app'])).out).toBe('app: removed\n')
    expect((await operator.run(['audit'])).out).toMatch(/webhook add[^]*webhook secret[^]*webhook remove/)
    await mail('bob@there.example')
    expect((await operator.run(['webhook', 'list'])).out).toBe('')
  })

  test('the list tells how far a target is behind in events of all types, and nothing of that for a program that reads them', async () => {
    status = 500
    await start({
      events: {
        app: { to: url, allow_private: true, types: ['recipient.*'] },
        reader: { types: ['recipient.*'] },
      },
    })
    await mail('ann@there.example')
    await expect.poll(() => received.length).toBeGreaterThan(0)
    const lines = (await operator.run(['webhook', 'list'])).out
    expect(lines).toMatch(/^app: .*; types recipient\.\*; \d+ events? of all types behind, the oldest for \d+s; /m)
    expect(lines).toMatch(/^reader: read by programs.*; types recipient\.\*; no answer yet$/m)
  })

  test('a replay sends the events again with their ids', async () => {
    await start({ events: { app: { to: url, allow_private: true, types: ['message.removed'] } } })
    await mail('ann@there.example')
    await expect.poll(() => received).toHaveLength(1)
    expect((await operator.run(['webhook', 'replay', 'app', '--since', '1h'])).out).toBe('app: 1 event to be sent again\n')
    await expect.poll(() => received).toHaveLength(2)
    expect(received[1]?.headers['webhook-id']).toBe(received[0]?.headers['webhook-id'])
  })

  test('one event is sent again with its id', async () => {
    await start({ events: { app: { to: url, allow_private: true, types: ['message.removed'] } } })
    for (const to of ['ann@there.example', 'bob@there.example']) await mail(to)
    await expect.poll(() => received).toHaveLength(2)
    const id = received[0]?.headers['webhook-id'] ?? ''
    expect((await operator.run(['webhook', 'replay', 'app', '--event', id])).out).toBe('app: 1 event to be sent again\n')
    await expect.poll(() => received).toHaveLength(3)
    expect(received[2]?.headers['webhook-id']).toBe(id)
    await expect.poll(async () => (await operator.run(['webhook', 'list', '--json'])).out).toContain('"parked":0')
    expect(await operator.run(['webhook', 'replay', 'app', '--event', 'evt_0_1'])).toMatchObject({
      code: 65,
      err: 'deferd: no event evt_0_1 is kept: GET /events has the kept ones\n',
    })
  })

  test('410 disables a subscription of the configuration; a replay enables it, and so does a new target', async () => {
    const other = createServer((request, response) => void (requests.push(request.url ?? ''), response.writeHead(200).end()))
    const requests: string[] = []
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
    try {
      const table = { to: url, allow_private: true, types: ['message.removed'] }
      status = 410
      await start({ events: { app: table } })
      const state = async () => (JSON.parse((await operator.run(['webhook', 'list', '--json'])).out) as { state: string }).state
      await mail('ann@there.example')
      await expect.poll(state).toBe('disabled')
      expect((await operator.run(['webhook', 'list'])).out).toContain('disabled: 410 Gone')
      expect((await operator.run(['status'])).out).toMatch(
        /^EVENTS +waiting\napp +1 +disabled: 410 Gone: deferd webhook\s+replay app enables it; oldest/m,
      )
      expect(JSON.parse((await operator.run(['status', '--json'])).out)).toMatchObject({ subscriptions: [{ name: 'app', behind: 1 }] })
      status = 200
      expect((await operator.run(['webhook', 'replay', 'app'])).out).toBe('app: 1 event to be sent now\n')
      await expect.poll(() => received).toHaveLength(2)
      expect((await operator.run(['audit'])).out).toMatch(/webhook replay +.*app/)
      status = 410
      await mail('bob@there.example')
      await expect.poll(state).toBe('disabled')
      const moved = { app: { ...table, to: `http://127.0.0.1:${(other.address() as AddressInfo).port}/new` } }
      await daemon?.reload(configFrom({ ...settings(), events: moved }, 'relay.example'))
      await expect.poll(() => requests).toEqual(['/new'])
    } finally {
      other.close()
      other.closeAllConnections()
    }
  })

  test('those of the configuration are read-only, and names have one owner', async () => {
    await start({ events: { app: { to: url, allow_private: true } } })
    for (const command of [
      ['remove', 'app'],
      ['secret', 'app'],
    ])
      expect(await operator.run(['webhook', ...command])).toMatchObject({
        code: 65,
        err: expect.stringContaining('[events.app]') as string,
      })
    expect(await operator.run(['webhook', 'add', 'app', url, '--allow-private'])).toMatchObject({ code: 65 })
  })

  test('a target that refuses the test event ends the command with 75', async () => {
    await start()
    await operator.run(['webhook', 'add', 'app', url, '--allow-private'])
    status = 503
    expect(await operator.run(['webhook', 'test', 'app'])).toMatchObject({
      code: 75,
      out: expect.stringContaining('did not take the event: 503') as string,
    })
  })
})

test('commands work without a daemon, which sends the events after its start', async () => {
  await start()
  await daemon?.stop()
  expect(await operator.run(['webhook', 'add', 'app', url, '--allow-private'])).toMatchObject({ code: 0 })
  await start()
  await mail('ann@there.example')
  await expect.poll(() => typesOf(received)).toEqual(['message.accepted', 'recipient.delivered', 'message.removed'])
})

test.each([
  [['add', 'app', 'https://user:secret@hooks.example/'], 64, 'URL: expected https://'],
  [['add', 'app', 'http://hooks.example/'], 64, '--allow-private'],
  [['add', 'app', 'file:/tmp/x'], 64, 'URL: expected https://'],
  [['add', 'no spaces', 'https://hooks.example/'], 64, 'NAME: expected letters'],
  [
    ['add', 'app', 'https://hooks.example/', '--types', 'nothing.*'],
    64,
    '--types: expected a type of event such as recipient.bounced, or a pattern such as recipient.*, got "nothing.*"',
  ],
  [['add', 'app', 'https://hooks.example/', '--batch', '0'], 64, '--batch: expected at least 1, got 0'],
  [['add', 'app', 'https://hooks.example/', '--batch', '-1'], 64, "'-1' is invalid. Expected a whole number."],
  [['replay', 'app', '--parked', '--since', '1h'], 64, '--since TIME, --parked and --event ID exclude each other'],
  [['replay', 'app', '--event', 'evt_0_1'], 65, 'there is no subscription app'],
  [['replay', 'app', '--since', '0s'], 64, 'Expected a time above 0'],
  [['replay', 'app'], 65, 'there is no subscription app'],
  [['replay', 'app', '--parked'], 65, 'there is no subscription app'],
  [['remove', 'app'], 65, 'there is no subscription app'],
  [['test', 'app'], 65, 'there is no subscription app'],
] as const)('webhook %j: %i', async (argv, code, text) => {
  await start()
  expect(await operator.run(['webhook', ...argv])).toMatchObject({ code, err: expect.stringContaining(text) as string })
})
