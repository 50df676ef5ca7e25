/**
 * A scripted tour of the API of a queue in virtual time, which gives each operation an example of its answer. ApiServer compares each answer
 * with the OpenAPI document.
 */
import { configFrom } from '../../src/config/load.ts'
import { BASE } from '../../src/http/command-protocol.ts'
import type { AuditEntry } from '../../src/store/records/audit-log.ts'
import { DAY, SECOND } from '../../src/system/clock.ts'
import type { MessageStoryJson } from '../../src/resources/message-story-json.ts'
import type { ApiServer, Asked, Reply } from './api-server.ts'
import { openTouredWorld } from './api-tour-world.ts'
import { ApiWorld } from './api-world.ts'
import { goldenReport } from './domain-reports.ts'
import { ResponseExamples } from './response-examples.ts'

const SETTINGS = {
  myorigin: 'us.example',
  suppression: 'yes',
  fair_share: 'yes',
  share_key: 'sender_domain',
  quota: { app: { keys: 'sender', limits: ['1000/1h'] } },
  returned_content_retention: '7d',
  smtpd_future_release_limit: '7d',
  provider: { google: { mx: ['.google.example'] } },
  schedule: { nightly: { at: '30 2 * * *', zone: 'Europe/Berlin', do: 'flush', destinations: '*.example' } },
}

/** Operations without an example, with the reason. */
export const WITHOUT_EXAMPLE: Readonly<Record<string, string>> = {
  'GET /now/stream': 'events without an end',
  'GET /operations/:id/stream': 'events without an end',
  'GET /messages/:id/content': 'no JSON',
  'GET /openapi.json': 'the document itself',
}

/** Answers of operations that need a second node. test/process/lost-nodes.test.ts has them from two nodes on PostgreSQL. */
export const NODE_EXAMPLES: Readonly<Record<string, unknown>> = {
  'POST /nodes/:name/drain': { name: 'n1' },
  'POST /nodes/:name/undrain': { name: 'n1' },
  'DELETE /nodes/:name': { forgotten: [] },
}

const SIGNING_SECRET = `whsec_${Buffer.alloc(32, 'example').toString('base64')}`

/** Asks the API, and keeps the first answer of each operation. */
class Tour {
  /** Operations by the id of their request. */
  readonly requests = new Map<string, string>()
  readonly #api: ApiServer
  readonly #examples: ResponseExamples

  constructor(api: ApiServer, examples: ResponseExamples) {
    this.#api = api
    this.#examples = examples
  }

  async ask(method: string, path: string, asked: Asked = {}): Promise<Reply> {
    const id = `tour-${this.requests.size + 1}`
    this.requests.set(id, this.#examples.operationOf(method, path))
    const reply = await this.#api.ask(method, path, { as: 'admin', headers: { 'x-request-id': id }, ...asked })
    this.#examples.keep(method, path, reply)
    return reply
  }

  get(path: string): Promise<Reply> {
    return this.ask('GET', path)
  }

  post(path: string, body?: unknown): Promise<Reply> {
    return this.ask('POST', path, { body })
  }
}

async function clients(tour: Tour): Promise<void> {
  await tour.get('/whoami')
  await tour.post('/tokens', { name: 'ci', role: 'operator' })
  await tour.get('/tokens')
  await tour.ask('DELETE', '/tokens/ci')
}

/** Returns the queue id of a deferred message. */
async function mail(tour: Tour, { queue }: ApiWorld): Promise<string> {
  const headers = { 'Message-Id': '<order@us.example>' }
  const composed = { from: 'app@us.example', subject: 'Your order', text: 'Thank you.', headers }
  const submitted = await tour.post('/messages', { ...composed, to: ['ann@a.example.org', 'bob@ok.example'] })
  const later = (envid: string): Promise<Reply> =>
    tour.post('/messages', {
      ...composed,
      to: 'carl@c.example.org',
      not_before: '2h',
      envelope: { from: 'app@us.example', to: ['carl@c.example.org'], envid },
    })
  const path = `/messages/${(await later('order-7')).json.queue_id}`
  await tour.ask('PATCH', path, { body: { not_before: '1h' } })
  await tour.ask('DELETE', path)
  await later('order-8')
  await tour.ask('DELETE', '/messages?envid=order-8')
  await queue.advance(10 * 60_000)
  return submitted.json.queue_id
}

async function reads(tour: Tour, { queue }: ApiWorld, id: string): Promise<void> {
  const failed = { kind: 'note', level: 'error', text: `${id}: not signed` } as const
  queue.relay.status.log.listen(failed, queue.clock.wall.now())
  for (const path of ['', '/count', `/${id}`, `/${id}/parts`]) await tour.get(`/messages${path}`)
  const overviews = [
    'now',
    'series?since=1h&step=1h',
    'senders',
    'destinations',
    'destinations/a.example.org',
    'causes',
    'history',
    'events',
  ]
  const others = ['destinations/a.example.org/causes', 'search?q=a.example.org', 'nodes', 'config', 'settings', 'log', 'oauth']
  for (const path of [...overviews, ...others, 'providers', 'providers/google', 'deliverability']) await tour.get(`/${path}`)
  await tour.post('/plans', { policies: ['doubling', 'fixed(10m)'] })
}

async function suspensions(tour: Tour): Promise<void> {
  for (const name of ['destinations/a.example.org', 'providers/google']) {
    await tour.post(`/${name}/suspend`, { reason: 'rate limited' })
    await tour.post(`/${name}/resume`)
  }
  await tour.post('/destinations/a.example.org/probe')
}

async function operations(tour: Tour, world: ApiWorld, id: string): Promise<void> {
  // The attempt of the probe ends.
  await world.queue.advance(SECOND)
  const order = { operation: 'hold', selection: { kind: 'ids', ids: [id] }, reason: 'asked by the sender' }
  const done = await tour.post('/operations', order)
  await tour.get(`/operations/${done.json.id}`)
  await tour.post(`/operations/${done.json.id}/undo`)
  await tour.get('/audit')
  world.afterRound = async () => {
    world.afterRound = async () => undefined
    const [running] = (await tour.get('/audit')).json.records
    await tour.ask('DELETE', `/operations/${running?.id}`)
  }
  await tour.post('/operations', order)
  await tour.post('/operations', { ...order, operation: 'release' })
}

async function subscriptions(tour: Tour): Promise<void> {
  await tour.post('/subscriptions', { name: 'app', to: 'https://hooks.example/', types: ['message.*'], secret: SIGNING_SECRET })
  for (const path of ['', '/app', '/app/parked']) await tour.get(`/subscriptions${path}`)
  await tour.post('/subscriptions/app/replay', { events: 'since', since: '2h', dry_run: true })
  await tour.post('/subscriptions/app/secret', { secret: SIGNING_SECRET, overlap: '1d' })
  await tour.ask('DELETE', '/subscriptions/app')
}

async function records(tour: Tour, { queue }: ApiWorld): Promise<void> {
  await tour.post('/access', { subject: 'sender', key: 'app@example.com', action: 'REJECT too many bounces', expires_in: 7_200 })
  await tour.get('/access')
  await tour.ask('DELETE', '/access/sender/app@example.com')
  const now = queue.clock.now()
  const times = { fetchedAt: now, expiresAt: now + 7 * DAY, usedAt: now, failedAt: null, failure: null }
  const policy = { domain: 'a.example.org', id: '20260101', mode: 'enforce', mx: ['*.a.example.org'] } as const
  await queue.store.records.stsPolicies.keep({ ...policy, text: 'version: STSv1\n', ...times })
  await tour.get('/sts-policies')
  await tour.ask('DELETE', '/sts-policies/a.example.org')
  await tour.get('/schedules')
  await tour.post('/schedules/nightly/run', {})
  await tour.get('/schedules/nightly')
}

async function suppressions(tour: Tour, { queue }: ApiWorld): Promise<void> {
  const entry = { scope: 'us.example', address: 'dora@a.example.org' }
  await tour.post('/suppressions', { ...entry, reason: 'complaint' })
  await tour.get('/suppressions')
  await tour.get(`/suppressions/${entry.address}`)
  await tour.post('/suppressions/remove', { entries: [entry] })
  await tour.post('/suppressions/import', { text: 'eve@a.example.org\n', scope: 'us.example' })
  await queue.store.records.suppressionStops.stop({ scope: entry.scope, at: queue.clock.now() })
  await tour.get('/suppression-stops')
  await tour.post('/suppressions/resume', { scope: entry.scope })
}

async function quotas(tour: Tour): Promise<void> {
  await tour.get('/shares')
  await tour.get('/quotas')
  await tour.get('/quotas/app@us.example')
  await tour.post('/quotas/reset', { key: 'app@us.example' })
}

async function domainChecks(tour: Tour, { queue }: ApiWorld): Promise<void> {
  await tour.post('/domain-checks', { domain: 'good.example' })
  await queue.rest()
  await tour.get('/domain-checks')
  await tour.get('/domain-checks/good.example')
}

async function history(tour: Tour, id: string): Promise<void> {
  await tour.post('/history/resend', { filter: { recipient: 'ann@a.example.org' }, dry_run: true })
  await tour.post(`/history/${id}/resend`, { dry_run: true })
  await tour.post('/history/erase', { recipient: 'ann@a.example.org', dry_run: true })
  // The examples are those of the plans.
  await tour.post('/history/resend', { filter: { recipient: 'ann@a.example.org' } })
  await tour.post('/history/erase', { recipient: 'ann@a.example.org' })
}

/** Requests that need SMTP sessions, a target of events and an authority. */
async function otherRoutes(examples: ResponseExamples): Promise<void> {
  await using toured = await openTouredWorld()
  const { world, api } = toured
  const tour = new Tour(api, examples)
  const id = await world.submit({ from: 'app@us.example', to: 'ann@far.example', text: 'Thank you.' })
  await world.advance('1s')
  const [attempt] = ((await tour.get(`/messages/${id}`)).json as unknown as MessageStoryJson).history
  await tour.get(`/messages/${id}/sessions/${attempt?.session}`)
  await tour.post('/subscriptions', { name: 'app', to: 'https://hooks.example/', types: ['message.*'], secret: SIGNING_SECRET })
  await tour.post('/subscriptions/app/test')
  const renewal = tour.post('/oauth/m365/renew')
  await world.advance('1s')
  await renewal
}

export interface MadeTour extends Pick<Tour, 'requests'> {
  /** Answers by operation, such as `GET /messages`. */
  readonly examples: ReadonlyMap<string, unknown>
  readonly audit: readonly AuditEntry[]
}

export async function madeTour(): Promise<MadeTour> {
  const world = await ApiWorld.open('memory', configFrom(SETTINGS, 'relay.example'), SETTINGS, { providerOf: () => 'google' })
  try {
    world.answer = async () => goldenReport('good.example')
    const examples = new ResponseExamples(world.api.api.routes, BASE)
    const tour = new Tour(world.api, examples)
    await clients(tour)
    const id = await mail(tour, world)
    await reads(tour, world, id)
    await suspensions(tour)
    await operations(tour, world, id)
    await subscriptions(tour)
    await records(tour, world)
    await suppressions(tour, world)
    await quotas(tour)
    await domainChecks(tour, world)
    await world.queue.advance(3 * DAY)
    await history(tour, id)
    await otherRoutes(examples)
    return {
      examples: new Map([...examples.answers, ...Object.entries(NODE_EXAMPLES)]),
      requests: tour.requests,
      audit: await world.queue.reader.records.audit.after({ after: 0, limit: 500 }),
    }
  } finally {
    await world.close()
  }
}

/** Examples of answers by operation, such as `GET /messages`. */
export const apiExamples = async (): Promise<MadeTour['examples']> => (await madeTour()).examples
