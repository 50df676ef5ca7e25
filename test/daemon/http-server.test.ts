import type { Clock } from '../../src/system/clock.ts'
import { realClock } from '../support/real-clock.ts'
import { connect } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { HttpServer, type HealthCheck } from '../../src/daemon/http-server.ts'
import { EMPTY_TALLY } from '../../src/store/counts/queue-tally.ts'
import { openMetrics } from '../../src/telemetry/metrics/metrics.ts'
import { VirtualClock } from '../../src/testkit/virtual/virtual-clock.ts'
import { responsesIn, writeThenRead } from '../support/raw-http.ts'

const BOTH = ['healthz', 'readyz'] as const
let server: HttpServer | undefined
afterEach(() => server?.close())

async function serve(checks: readonly HealthCheck[], clock: Clock = realClock): Promise<string> {
  const metrics = openMetrics({
    clock,
    tally: async () => EMPTY_TALLY,
    destinations: () => [],
  })
  server = new HttpServer({ metrics, checks, clock })
  const { address, port } = await server.listen({ address: '127.0.0.1', port: 0 })
  return `http://${address}:${port}`
}

test('/metrics is Prometheus text', async () => {
  const response = await fetch(`${await serve([])}/metrics`)
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toContain('text/plain')
  expect(await response.text()).toContain('# HELP deferd_attempts_total')
})

test('/healthz is 200 while all checks succeed', async () => {
  const response = await fetch(`${await serve([{ name: 'store', probes: BOTH, run: () => Promise.resolve() }])}/healthz`)
  expect(response.status).toBe(200)
  expect(await response.json()).toEqual({ healthy: true, store: 'ok' })
})

test('/healthz is 503 with the reason when a check fails', async () => {
  const base = await serve([
    { name: 'store', probes: BOTH, run: () => Promise.reject(new Error('disk full')) },
    { name: 'scheduler', probes: BOTH, run: () => Promise.resolve() },
  ])
  const response = await fetch(`${base}/healthz`)
  expect(response.status).toBe(503)
  expect(await response.json()).toEqual({ healthy: false, store: 'disk full', scheduler: 'ok' })
})

test('/healthz is 503 when a check does not settle within 5 s', async () => {
  const clock = new VirtualClock()
  const started = Promise.withResolvers<void>()
  const run = () => (started.resolve(), new Promise<void>(() => undefined))
  const response = fetch(`${await serve([{ name: 'scheduler', probes: BOTH, run }], clock)}/healthz`)
  await started.promise
  clock.runNext()
  expect((await response).status).toBe(503)
  expect(await (await response).json()).toEqual({ healthy: false, scheduler: 'no answer within 5 s' })
})

test('health checks run at most once a second, however many clients ask', async () => {
  const clock = new VirtualClock()
  let runs = 0
  const base = await serve([{ name: 'store', probes: BOTH, run: () => (runs++, Promise.resolve()) }], clock)
  await Promise.all(Array.from({ length: 20 }, async () => (await fetch(`${base}/healthz`)).text()))
  expect(runs).toBe(1)
  clock.after(1_000, () => undefined)
  while (clock.monotonic() < 1_000) clock.runNext()
  await fetch(`${base}/healthz`)
  expect(runs).toBe(2)
})

test('more connections than the limit are closed', async () => {
  const { hostname, port } = new URL(await serve([]))
  const sockets = Array.from({ length: 100 }, () => connect({ host: hostname, port: Number(port) }).on('error', () => undefined))
  try {
    let closed = 0
    for (const socket of sockets) socket.on('close', () => closed++)
    await expect.poll(() => closed).toBe(36)
  } finally {
    for (const socket of sockets) socket.destroy()
  }
})

test('nothing else is served, and nothing can be written', async () => {
  const base = await serve([])
  const unknown = await fetch(`${base}/`)
  expect([unknown.status, await unknown.json()]).toMatchObject([
    404,
    { why: 'no such path: /; known: /metrics, /healthz, /readyz, /livez' },
  ])
  const posted = await fetch(`${base}/metrics`, { method: 'POST', body: 'x' })
  expect([posted.status, posted.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
  expect(await posted.json()).toMatchObject({ why: 'method POST not allowed for /metrics; allowed: GET, HEAD' })
  const head = await fetch(`${base}/metrics`, { method: 'HEAD' })
  expect([head.status, await head.text()]).toEqual([200, ''])
})

test('malformed bytes are answered', async () => {
  const { hostname, port } = new URL(await serve([]))
  const socket = connect({ host: hostname, port: Number(port) })
  const { text, error } = await writeThenRead(socket, [`no request\r\n\r\n${'x'.repeat(3_000_000)}`])
  expect([responsesIn(text), error]).toMatchObject([[{ status: 400, body: expect.stringMatching(/^\{"kind":"failed"/) }], undefined])
})

test('/livez is 200 while the event loop answers, whatever fails', async () => {
  const response = await fetch(`${await serve([{ name: 'store', probes: BOTH, run: () => Promise.reject(new Error('disk full')) }])}/livez`)
  expect([response.status, await response.json()]).toEqual([200, { alive: true }])
})

test('/readyz has the checks that accepting mail needs, and a live one at each request', async () => {
  let isDrained = false
  let commits = 0
  const base = await serve([
    { name: 'store', probes: BOTH, run: async () => void commits++ },
    { name: 'scheduler', probes: ['healthz'], run: () => Promise.reject(new Error('not started')) },
    {
      name: 'drained',
      probes: ['readyz'],
      isLive: true,
      run: () => (isDrained ? Promise.reject(new Error('drained')) : Promise.resolve()),
    },
  ])
  const ask = async (path: string): Promise<unknown> => {
    const response = await fetch(`${base}/${path}`)
    return [response.status, await response.json()]
  }
  expect(await ask('readyz')).toEqual([200, { ready: true, store: 'ok', drained: 'ok' }])
  isDrained = true
  expect(await ask('readyz')).toEqual([503, { ready: false, store: 'ok', drained: 'drained' }])
  expect(await ask('healthz')).toEqual([503, { healthy: false, store: 'ok', scheduler: 'not started' }])
  expect(commits).toBe(1)
})
