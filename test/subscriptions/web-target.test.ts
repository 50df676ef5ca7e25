/** Requests to real servers on loopback. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { Webhook } from 'standardwebhooks'
import { afterEach, describe, expect, test } from 'vitest'
import { ALL_EVENTS, settingsOf } from '../../src/outbox/configured-subscriptions.ts'
import type { SubscriptionSettings } from '../../src/store/outbox/subscription.ts'
import type { SentEvent } from '../../src/subscriptions/event-request.ts'
import { webTarget } from '../../src/subscriptions/web-target.ts'
import { realClock } from '../support/real-clock.ts'
import { ForwardingNet, type Lookup, type Net } from '../../src/system/net.ts'
import { systemNet } from '../../src/system/system-net.ts'

const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
const EVENT: SentEvent = {
  id: 'evt_k3_7',
  type: 'message.removed',
  timestamp: '2026-01-01T00:00:00.000Z',
  data: { queue_id: 'Q1', sender: '' },
}

/** Every name has the address of this machine. */
class LoopbackNet extends ForwardingNet {
  override lookupHost(): Promise<Lookup<string>> {
    return Promise.resolve({ kind: 'found', records: ['127.0.0.1'] })
  }
}

const opened: (() => void)[] = []
afterEach(() => opened.splice(0).forEach((close) => close()))

interface Received {
  readonly headers: Record<string, string>
  readonly body: string
  readonly method: string | undefined
  readonly url: string | undefined
}

interface Receiver {
  readonly port: number
  readonly requests: Received[]
  readonly sockets: Set<Socket>
}

async function receiver(answer: (response: ServerResponse, request: IncomingMessage) => void): Promise<Receiver> {
  const requests: Received[] = []
  const sockets = new Set<Socket>()
  const server: Server = createServer((request, response) => {
    sockets.add(request.socket)
    let body = ''
    request.setEncoding('utf8').on('data', (text: string) => (body += text))
    request.on('end', () => {
      requests.push({ headers: request.headers as Record<string, string>, body, method: request.method, url: request.url })
      answer(response, request)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  opened.push(() => (server.close(), server.closeAllConnections()))
  return { port: (server.address() as AddressInfo).port, requests, sockets }
}

function target(net: Net = new LoopbackNet(systemNet)) {
  const web = webTarget({ net, clock: realClock, source: () => 'relay.example', version: '0' })
  opened.push(web.close)
  return (to: string, settings: Partial<SubscriptionSettings> = {}, signal = new AbortController().signal) =>
    web.send({
      events: [EVENT],
      settings: { ...settingsOf(ALL_EVENTS), to, allowPrivate: true, ...settings },
      secrets: [SECRET],
      name: 'app',
      signal,
    })
}

describe('a request', () => {
  test('is a signed POST to the URL, and its answer is told', async () => {
    const { port, requests } = await receiver((response) => response.writeHead(202).end('thanks'))
    expect(await target()(`http://app.example:${port}/hooks/mail?key=1`)).toEqual({
      kind: 'response',
      code: 202,
      retryAfter: null,
      text: '202 Accepted',
    })
    const [{ method, url, headers, body } = { headers: {}, body: '' } as Received] = requests
    expect([method, url, headers['host']]).toEqual(['POST', '/hooks/mail?key=1', `app.example:${port}`])
    expect(new Webhook(SECRET).verify(body, headers)).toMatchObject({ type: 'message.removed' })
  })

  test('uses the connection of the last one, and a new one when the server has closed it', async () => {
    const { port, requests, sockets } = await receiver((response) => response.writeHead(204).end())
    const send = target()
    for (let n = 0; n < 3; n++) expect(await send(`http://app.example:${port}/`)).toMatchObject({ code: 204 })
    expect(sockets.size).toBe(1)
    for (const socket of sockets) socket.destroy()
    expect(await send(`http://app.example:${port}/`)).toMatchObject({ code: 204 })
    expect([requests.length, sockets.size]).toEqual([4, 2])
  })

  test('does not follow a redirect', async () => {
    const { port, requests } = await receiver((response) => response.writeHead(301, { location: '/elsewhere' }).end())
    expect(await target()(`http://app.example:${port}/`)).toMatchObject({
      code: 301,
      text: expect.stringContaining('redirects are not followed') as string,
    })
    expect(requests).toHaveLength(1)
  })

  test('reads Retry-After in seconds, and ignores a date', async () => {
    const waits = ['120', 'Fri, 31 Dec 2027 23:59:59 GMT']
    const { port } = await receiver((response) => response.writeHead(503, { 'retry-after': waits.shift() ?? '' }).end())
    const send = target()
    expect(await send(`http://app.example:${port}/`)).toMatchObject({ code: 503, retryAfter: 120_000 })
    expect(await send(`http://app.example:${port}/`)).toMatchObject({ code: 503, retryAfter: null })
  })

  test('ends when the daemon stops', async () => {
    const { port } = await receiver(() => undefined)
    const stopping = new AbortController()
    const answer = target()(`http://app.example:${port}/`, {}, stopping.signal)
    setTimeout(() => stopping.abort(), 20)
    expect(await answer).toEqual({ kind: 'failed', text: 'deferd stops' })
  })

  test('ends while its server is looked up', async () => {
    class SilentNet extends ForwardingNet {
      override lookupHost(): Promise<Lookup<string>> {
        return new Promise(() => undefined)
      }
    }
    const stopping = new AbortController()
    const answer = target(new SilentNet(systemNet))('http://app.example:1/', {}, stopping.signal)
    stopping.abort()
    expect(await answer).toEqual({ kind: 'failed', text: 'deferd stops' })
  })

  test('that meets no server is a failure with the address', async () => {
    expect(await target()('http://app.example:1/')).toMatchObject({
      kind: 'failed',
      text: expect.stringContaining('cannot connect to app.example[127.0.0.1]: ') as string,
    })
  })

  test('to a server without TLS at https:// is a failure', async () => {
    const { port } = await receiver((response) => response.end())
    expect(await target()(`https://app.example:${port}/`)).toMatchObject({ kind: 'failed' })
  })
})

describe('private addresses', () => {
  test.each([
    'http://app.example:1/',
    'http://127.0.0.1:1/',
    'http://[::1]:1/',
    'http://[::ffff:127.0.0.1]:1/',
    'http://169.254.169.254/latest',
  ])('%s is not connected to unless it is allowed', async (to) => {
    const answer = await target()(to, { allowPrivate: false })
    expect(answer).toMatchObject({ kind: 'failed', text: expect.stringMatching(/private address .* allow_private/) as string })
  })
})
