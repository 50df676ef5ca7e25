/** The path and the query of a webhook's URL are the credential of some services: no role below admin sees them, wherever it looks. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { documentedRoutes } from '../../src/api/api-pages.ts'
import type { QueueView } from '../../src/queries/queue-view.ts'
import type { Causes } from '../../src/queries/counts/causes.ts'
import type { Senders } from '../../src/queries/counts/senders.ts'
import type { Now } from '../../src/queries/now.ts'
import { openDaemonClient } from '../../src/cli/queue-client/api-client.ts'
import { Page } from '../../src/page/web-page.ts'
import type { NewSubscriptionRequest } from '../../src/subscriptions/subscription-changes.ts'
import { Operator } from '../support/operator.ts'
import { wholeWords } from '../support/page-client.ts'
import { PageDaemon, type PageRole } from '../support/page-daemon.ts'
import { conversation, requestBytes, responsesIn } from '../support/raw-http.ts'

const HOST = 'http://127.0.0.1:9'
const PATH = '/services/T0CREDENTIAL?key=QCREDENTIAL#FCREDENTIAL'
const CREDENTIAL = /CREDENTIAL/
const NAMES = ['configured', 'added']

const page = new Page({
  view: {} as QueueView,
  now: {} as Now,
  causes: {} as Causes,
  senders: {} as Senders,
})
/** Paths of all screens and resources, with the names of the webhooks. */
const PATHS = [...page.routes, ...documentedRoutes()]
  .filter(({ method, path }) => method === 'GET' && (!path.includes(':') || /\/(?:webhooks|subscriptions)\/:\w+/.test(path)))
  .flatMap(({ path }) => (path.includes(':') ? NAMES.map((name) => path.replace(/:\w+/, name)) : [path]))

let daemon: PageDaemon
const cookies = new Map<PageRole, string>()

const hook: Omit<NewSubscriptionRequest, 'name' | 'secret' | 'who'> = {
  to: `${HOST}${PATH}`,
  allowPrivate: true,
  types: [],
  destinations: [],
  senders: [],
  format: 'deferd',
  batch: 1,
}

beforeAll(async () => {
  daemon = await PageDaemon.start({ events: { configured: { to: hook.to, allow_private: true } } })
  const client = await openDaemonClient(daemon.queueDirectory)
  const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
  await client?.addSubscription({ ...hook, name: 'added', secret, who: 'root' })
  await client?.close()
  await daemon.send([{ from: 'news@shop.example', to: 'ann@far.example' }])
  for (const role of ['viewer', 'operator', 'admin'] as const) cookies.set(role, await daemon.cookie(role))
})
afterAll(() => daemon.close())

/** The body of a response; of a stream, its first event. */
async function bodyOf(path: string, role: PageRole): Promise<string> {
  const port = Number(new URL(daemon.url).port)
  const fields = { Cookie: cookies.get(role) ?? '', Accept: 'text/html, application/json' }
  const text = await conversation(port, requestBytes({ host: `127.0.0.1:${port}`, target: path, fields }), {
    written: (socket) => socket.on('data', (data) => /\n(?:event|data): /.test(String(data)) && socket.destroy()),
  })
  return responsesIn(text)[0]?.body ?? ''
}

test.each(['viewer', 'operator'] as const)(
  'a client of the role %s sees host and port on every screen and resource, and no more',
  async (role) => {
    // The webhooks have failed once, so that their answers are shown too.
    for (const name of NAMES)
      await expect.poll(() => bodyOf(`/api/v1/subscriptions/${name}`, role), { timeout: 30_000 }).toContain('"last_answer":"')
    for (const path of PATHS) expect(await bodyOf(path, role), path).not.toMatch(CREDENTIAL)
    for (const path of ['subscriptions', 'now', 'config', 'audit'])
      expect(await bodyOf(`/api/v1/${path}`, role)).toContain(`${HOST}/(not shown)`)
  },
)

test('the role admin sees the URL of a subscription; records and the configuration have it for nobody', async () => {
  for (const name of NAMES) {
    expect(await bodyOf(`/api/v1/subscriptions/${name}`, 'admin')).toContain(PATH)
    const screen = await bodyOf(`/webhooks/${name}`, 'admin')
    expect(wholeWords(screen)).toContain(PATH.replace('&', '&amp;'))
  }
  for (const path of ['now', 'config', 'audit']) expect(await bodyOf(`/api/v1/${path}`, 'admin')).not.toMatch(CREDENTIAL)
})

test('commands print the URL as JSON of `webhook list` only', async () => {
  const operator = new Operator()
  const queue = ['-o', `queue_directory=${daemon.queueDirectory}`]
  try {
    for (const command of [['webhook', 'list'], ['status'], ['status', '--json'], ['audit'], ['audit', '--json'], ['config']])
      expect((await operator.run([...command, ...queue])).out, command.join(' ')).not.toMatch(CREDENTIAL)
    expect((await operator.run(['webhook', 'list', ...queue])).out).toContain(`added: ${HOST}/(not shown); `)
    expect((await operator.run(['webhook', 'list', '--json', ...queue])).out).toContain(hook.to)
    const file = join(operator.directory, 'deferd.toml')
    writeFileSync(file, `[events.app]\nto = "${HOST.replace('http:', 'https:')}${PATH}"\n\n[events.bad]\nto = "${hook.to}"\n`)
    const refused = await operator.run(['config', '--config', file])
    expect(`${refused.out}${refused.err}`).toContain(`got "${HOST}/(not shown)"`)
    writeFileSync(file, `[events.app]\nto = "${HOST.replace('http:', 'https:')}${PATH}"\n`)
    expect((await operator.run(['config', '--config', file])).out).toContain('to = https://127.0.0.1:9/(not shown)\n')
  } finally {
    operator.leave()
  }
})
