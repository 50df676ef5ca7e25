/** A queue in virtual time with mail, and other records, in every state that outputs show. */
import { configFrom } from '../../src/config/load.ts'
import { DAY, MINUTE, SECOND } from '../../src/system/clock.ts'
import type { Asked } from '../support/api-server.ts'
import { ApiWorld } from '../support/api-world.ts'
import { goldenReport } from '../support/domain-reports.ts'

export const SETTINGS = {
  myorigin: 'us.example',
  suppression: 'yes',
  fair_share: 'yes',
  share_key: 'sender_domain',
  class: { fast: { weight: 10 }, bulk: { weight: 1 } },
  default_class: 'fast',
  quota: { app: { keys: 'sender', limits: ['1000/1h'] } },
  returned_content_retention: '7d',
  smtpd_future_release_limit: '7d',
  provider: { google: { mx: ['.google.example'] } },
  schedule: { nightly: { at: '30 2 * * *', zone: 'Europe/Berlin', do: 'flush', destinations: '*.example' } },
}

const SIGNING_SECRET = `whsec_${Buffer.alloc(32, 'example').toString('base64')}`

export interface Filled {
  readonly world: ApiWorld
  /** Queue ids by the state of the message. */
  readonly ids: Readonly<Record<'deferred' | 'held' | 'later' | 'trash' | 'returned' | 'delivered', string>>
}

const RECORDS: readonly (readonly [method: string, path: string, body?: unknown])[] = [
  ['POST', '/tokens', { name: 'ci', role: 'operator' }],
  ['POST', '/subscriptions', { name: 'app', to: 'https://hooks.example/', types: ['message.*'], secret: SIGNING_SECRET }],
  ['POST', '/access', { subject: 'sender', key: 'app@example.com', action: 'REJECT too many bounces', expires_in: 7_200 }],
  ['POST', '/suppressions', { scope: 'us.example', address: 'eve@far.example', reason: 'complaint' }],
  ['POST', '/suppressions', { scope: '*', address: '@closed.example', reason: 'manual' }],
  ['POST', '/destinations/b.example.org/suspend', { reason: 'rate limited' }],
  ['POST', '/schedules/nightly/run', {}],
  ['POST', '/domain-checks', { domain: 'good.example' }],
]

/** Submits mail over the API; returns the queue ids by the name of the mail. */
async function fillMail(world: ApiWorld): Promise<Filled['ids']> {
  const submit = async (name: string, to: string | readonly string[], more: object = {}): Promise<string> => {
    const mail = { from: 'app@us.example', subject: `Order ${name}: für Ann`, text: 'Thank you.', to, ...more }
    const body = { ...mail, headers: { 'Message-Id': `<${name}@us.example>` } }
    const { status, json, text } = await world.api.ask('POST', '/messages', { as: 'admin', body })
    if (status !== 202) throw new Error(`the mail ${name} was answered with ${status}: ${text}`)
    return json.queue_id
  }
  const deferred = await submit('deferred', ['ann@a.example.org', 'bob@ok.example', 'carl@b.example.org'])
  const held = await submit('held', 'dora@c.example.org')
  const trash = await submit('trash', 'finn@c.example.org')
  const returned = await submit('returned', 'gina@a.example.org', { from: 'shop@ok.example' })
  const delivered = await submit('delivered', 'hugo@ok.example')
  const later = await submit('later', 'ida@a.example.org', { not_before: '2h' })
  await submit('in delivery', 'jan@slow.example', { class: 'bulk' })
  await world.queue.accept(['kim@xn--bcher-kva.example', 'lea@a.example.org'], { sender: '', content: 'Subject: notice\r\n\r\nhi\r\n' })
  await world.queue.advance(10 * MINUTE)
  await world.queue.operate('hold', [held])
  await world.queue.operate('delete', [trash])
  await world.queue.operate('expire', [returned])
  await world.queue.advance(10 * MINUTE)
  return { deferred, held, later, trash, returned, delivered }
}

async function fillRecords({ api, queue }: ApiWorld): Promise<void> {
  for (const [method, path, body] of RECORDS) {
    const asked: Asked = { as: 'admin', body }
    const { status, text } = await api.ask(method, path, asked)
    if (status >= 300) throw new Error(`${method} ${path} was answered with ${status}: ${text}`)
    await queue.advance(SECOND)
  }
  const now = queue.clock.now()
  const times = { fetchedAt: now, expiresAt: now + 7 * DAY, usedAt: now, failedAt: null, failure: null }
  const policy = { domain: 'a.example.org', id: '20260101', mode: 'enforce', mx: ['*.a.example.org'] } as const
  await queue.store.records.stsPolicies.keep({ ...policy, text: 'version: STSv1\n', ...times })
  await queue.store.records.suppressionStops.stop({ scope: 'us.example', at: now })
  queue.relay.status.log.listen({ kind: 'note', level: 'error', text: 'a table cannot be read' }, queue.clock.wall.now())
  await queue.advance(MINUTE)
}

export async function filledWorld(): Promise<Filled> {
  const world = await ApiWorld.open('memory', configFrom(SETTINGS, 'relay.example'), SETTINGS, { providerOf: () => 'google' })
  world.answer = async () => goldenReport('good.example')
  const ids = await fillMail(world)
  await fillRecords(world)
  return { world, ids }
}
