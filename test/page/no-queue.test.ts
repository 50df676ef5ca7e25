/** The page and the API of a daemon whose queue is not open: while the daemon starts, and while its node joins the queue again. */
import { setImmediate as turn } from 'node:timers/promises'
import { afterAll, expect, test } from 'vitest'
import { configFrom } from '../../src/config/load.ts'
import { queueApi, NOT_OPEN } from '../../src/daemon/queue-api.ts'
import { problemOf } from '../../src/http/problem-details.ts'
import { ToldAddresses } from '../../src/mail/told-addresses.ts'
import type { Route } from '../../src/http/route-table.ts'
import { Page } from '../../src/page/web-page.ts'
import { StoreUnavailable } from '../../src/store/queue-store.ts'
import { QueueClock } from '../../src/system/queue-clock.ts'
import { ApiWorld } from '../support/api-world.ts'
import { ADMIN } from '../support/page-screens.ts'
import { realClock } from '../support/real-clock.ts'

const loaded = configFrom({ class: { fast: { weight: 2 }, slow: { weight: 1 } }, default_class: 'slow' }, 'relay.example')
const { view, now, causes, senders } = queueApi({
  clock: realClock,
  loaded: () => loaded,
  addresses: new ToldAddresses(),
  parts: () => null,
})
const page = new Page({ view, now, causes, senders })

test('says on the screen of a failed request that the queue is not open', () => {
  const request = { path: '/destinations/smtp:[mx.example]', headers: { accept: 'text/html' }, requester: null }
  const problem = problemOf(new StoreUnavailable(NOT_OPEN))
  const answer = page.refusal(problem, { ...request, screen: '/destinations/smtp:[mx.example]?x=1' })
  if (answer.kind !== 'text') throw new Error(`answered with ${answer.kind}`)
  expect(answer.status).toBe(503)
  expect(answer.text).toContain(NOT_OPEN.slice(1))
  expect(answer.text).toContain('relay.example')
  expect(answer.text).toContain('<a href="../destinations/smtp:[mx.example]?x=1">Try again</a>')
  const ofChange = page.refusal(problem, { ...request, screen: null })
  expect(ofChange).toMatchObject({ status: 503, text: expect.stringContaining('shows the state of the queue') as string })
})

/** The name of everything in the queue that has one. */
const NAME = 'one'
const named = configFrom(
  { provider: { [NAME]: { mx: ['.one.example'] } }, schedule: { [NAME]: { at: '0 3 * * *', do: 'flush', destinations: NAME } } },
  'relay.example',
)
const world = await ApiWorld.open('memory', named)
const [id = ''] = await world.fill(2, NAME)
await world.api.post('/subscriptions', { name: NAME, to: 'https://hooks.example/', types: ['message.*'] }, { as: 'admin' })
await world.api.post('/tokens', { name: NAME, role: 'viewer' }, { as: 'admin' })
const held = await world.api.post('/operations', { operation: 'hold', selection: { kind: 'ids', ids: [id] } }, { as: 'operator' })
afterAll(() => world.close())

/** The queue is open for this number of looks. */
let looks = 0
const closing = queueApi({
  clock: new QueueClock(world.queue.clock),
  loaded: () => named,
  addresses: new ToldAddresses(),
  parts: () => (looks-- > 0 ? world.parts : null),
})
const reads: readonly Route[] = [...new Page(closing).routes, ...closing.routes].filter(
  ({ method, path }) => method === 'GET' && !path.includes('/static/'),
)
const QUERIES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  '/operations/new': { operation: 'hold', scope: 'filter', destination: NAME },
  '/history/resend': { recipient: `ann@${NAME}` },
  '/history/erase': { recipient: `ann@${NAME}` },
  '/suppressions/resume': { scope: NAME },
}

/** The status of the problem that ends a request for which the queue is open for a number of looks; 200 without one. */
async function statusOf(route: Route, open: number): Promise<number> {
  const { path } = route
  const parameter = (one: string): string => (one === 'id' ? (path.includes('/operations/') ? String(held.json.id) : id) : NAME)
  const parameters = Object.fromEntries([...path.matchAll(/:(\w+)/g)].map(([, one = '']) => [one, parameter(one)]))
  const query = new URLSearchParams(QUERIES[path] ?? (path.endsWith('/search') ? { q: NAME } : {}))
  const client = { address: '127.0.0.1', scheme: 'http', host: 'page.example', user: null } as const
  looks = open
  try {
    await route.handler({ parameters, query, headers: {}, body: undefined, requester: ADMIN, client, signal: new AbortController().signal })
    return 200
  } catch (error) {
    return problemOf(error).kind.status
  }
}

const MOST_LOOKS = 60

test.each(reads)('the queue may close at any time of $path', async (route) => {
  const lost: unknown[] = []
  const keep = (reason: unknown): void => void lost.push(reason)
  process.on('unhandledRejection', keep)
  const statuses: number[] = []
  do {
    statuses.push(await statusOf(route, statuses.length))
    await turn()
  } while (looks <= 0 && statuses.length < MOST_LOOKS)
  process.off('unhandledRejection', keep)
  const last = statuses.pop()
  expect(last, 'with an open queue').toBeLessThan(500)
  expect(new Set([...statuses, last, 503])).toEqual(new Set([last, 503]))
  expect(lost).toEqual([])
})
