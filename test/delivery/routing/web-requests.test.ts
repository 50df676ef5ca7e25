/** The bytes of requests to web servers, at a real TLS server on loopback. */
import { realClock } from '../../support/real-clock.ts'
import type { AddressInfo, Socket } from 'node:net'
import { createServer, getCACertificates, setDefaultCACertificates } from 'node:tls'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { fetchPolicy } from '../../../src/delivery/sts/policy-fetch.ts'
import { ALL_EVENTS, settingsOf } from '../../../src/outbox/configured-subscriptions.ts'
import { webTarget } from '../../../src/subscriptions/web-target.ts'
import { ForwardingNet, type DialOptions, type Lookup } from '../../../src/system/net.ts'
import { systemNet } from '../../../src/system/system-net.ts'
import { postReport } from '../../../src/tls-reports/report-post.ts'
import { makeCertificate } from '../../../src/testkit/remote/certificate-maker.ts'

const clock = realClock
const { cert, key } = makeCertificate({ seed: 'web', names: ['mta-sts.far.example', 'web.far.example'] })
const trusted = getCACertificates('default')

/** Every name has the address of this machine, and every port is that of one server. */
class OneServer extends ForwardingNet {
  readonly #port: number
  readonly dialled: number[] = []

  constructor(port: number) {
    super(systemNet)
    this.#port = port
  }

  override lookupAddresses(_: string, family: 4 | 6): Promise<Lookup<string>> {
    return Promise.resolve(family === 4 ? { kind: 'found', records: ['127.0.0.1'] } : { kind: 'none', nxdomain: false })
  }

  override lookupHost(name: string): Promise<Lookup<string>> {
    return this.lookupAddresses(name, 4)
  }

  override dial(options: DialOptions): Promise<Socket> {
    this.dialled.push(options.port)
    return super.dial({ ...options, port: this.#port })
  }
}

const requests: string[] = []
const server = createServer({ cert, key }, (socket) => {
  let text = ''
  socket.on('data', (data) => {
    const begun = text.includes('\r\n\r\n')
    text += data.toString('latin1')
    if (begun || !text.includes('\r\n\r\n')) return
    requests.push(text.slice(0, text.indexOf('\r\n\r\n')))
    socket.end('HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 0\r\nConnection: close\r\n\r\n')
  })
  socket.on('error', () => undefined)
})

let net: OneServer
beforeEach(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  net = new OneServer((server.address() as AddressInfo).port)
  setDefaultCACertificates([...trusted, cert])
})
afterEach(async () => {
  setDefaultCACertificates(trusted)
  requests.length = 0
  await new Promise((resolve) => server.close(resolve))
})

/** The first line and the Host fields of the only request. */
const startAndHosts = (): readonly string[] => {
  expect(requests).toHaveLength(1)
  return (requests[0] ?? '').split('\r\n').filter((line, i) => i === 0 || /^host:/i.test(line))
}

test('the fetch of a policy names the host without a port', async () => {
  expect(await fetchPolicy('far.example', { net, clock, ca: cert, allowPrivate: true })).toEqual({ kind: 'text', text: '' })
  expect(net.dialled).toEqual([443])
  expect(startAndHosts()).toEqual(['GET /.well-known/mta-sts.txt HTTP/1.1', 'Host: mta-sts.far.example'])
})

const URLS: [url: string, port: number, host: string][] = [
  ['https://web.far.example/in?a=1', 443, 'web.far.example'],
  ['https://web.far.example:443/in?a=1', 443, 'web.far.example'],
  ['https://WEB.far.example:8443/in?a=1', 8443, 'web.far.example:8443'],
  ['https://web.far.example:80/in?a=1', 80, 'web.far.example:80'],
]

test.each(URLS)('a report to %s is for the port %i and the host %s', async (url, port, host) => {
  expect(await postReport(url, Buffer.from('report'), { net, clock, allowPrivate: true })).toBeUndefined()
  expect(net.dialled).toEqual([port])
  expect(startAndHosts()).toEqual(['POST /in?a=1 HTTP/1.1', `Host: ${host}`])
})

test.each(URLS)('an event to %s is for the port %i and the host %s', async (to, port, host) => {
  const web = webTarget({ net, clock, source: () => 'relay.example', version: '0' })
  const answer = await web.send({
    events: [{ id: 'evt_k3_7', type: 'message.removed', timestamp: '2026-01-01T00:00:00.000Z', data: { queue_id: 'Q1', sender: '' } }],
    settings: { ...settingsOf(ALL_EVENTS), to, allowPrivate: true },
    secrets: [`whsec_${Buffer.alloc(32, 7).toString('base64')}`],
    name: 'app',
    signal: new AbortController().signal,
  })
  web.close()
  expect(answer).toMatchObject({ kind: 'response', code: 200 })
  expect(net.dialled).toEqual([port])
  expect(startAndHosts()).toEqual(['POST /in?a=1 HTTP/1.1', `Host: ${host}`])
})
