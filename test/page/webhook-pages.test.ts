/** The screens of webhooks and tokens over HTTP, without scripts: add, test, new secret, remove; who may; what is shown once. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { PageDaemon } from '../support/page-daemon.ts'
import { pageRequests, wordsIn } from '../support/page-requests.ts'

let daemon: PageDaemon
let server: Server
let hook: string
/** Status of the answers of the program. */
let status = 204
const { ask, textOf, post } = pageRequests(() => daemon, 'admin')

beforeAll(async () => {
  server = createServer((request, response) => request.resume().on('end', () => response.writeHead(status).end()))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  hook = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook?key=CREDENTIAL`
  daemon = await PageDaemon.start({ events: { configured: { to: 'https://app.example/hook', types: ['schedule.failed'] } } })
})
afterAll(async () => {
  await daemon.close()
  server.close()
  server.closeAllConnections()
})

const WEBHOOK = {
  name: 'app',
  to: '',
  types: 'recipient.*, message.accepted',
  destinations: '',
  senders: '',
  format: 'deferd',
  batch: '10',
}
const TOKEN = { name: 'grafana', role: 'viewer', destinations: '*.Example.org', expires: '90d' }

test('a webhook is added with its secret in the answer alone, tested, renewed and removed, each with a record', async () => {
  const added = await post('new-webhook', { ...WEBHOOK, to: hook, allow_private: 'yes' })
  const page = await added.text()
  expect([added.status, added.headers.get('cache-control'), added.headers.get('location')]).toEqual([200, 'no-store', null])
  const [secret = ''] = /whsec_[\w+/=]{44}/.exec(page) ?? []
  expect(secret).not.toBe('')
  const again = await post('new-webhook', { ...WEBHOOK, to: hook, allow_private: 'yes' })
  expect([again.status, wordsIn(await again.text())]).toEqual([
    409,
    expect.stringContaining('there is a subscription app already: choose another name.'),
  ])
  expect(wordsIn(await textOf('webhooks'))).toMatch(/app active 0 .* configured active/)
  expect(wordsIn(await textOf('webhooks/app'))).toContain('recipient.*, message.accepted')

  expect(wordsIn(await textOf('webhooks/app/test', 'operator'))).toContain('deferd webhook test app')
  expect(wordsIn(await (await post('webhooks/app/test', {}, 'operator')).text())).toMatch(
    /app took the test event answer 204 No Content after \d+ ms sent .* sent to http:\/\/127.0.0.1:\d+\/\(not shown\)/,
  )
  status = 500
  const failed = wordsIn(await (await post('webhooks/app/test', {})).text())
  expect(failed).toMatch(/app did not take the test event answer 500/)
  expect(failed).toContain(`sent to ${hook}`)

  for (const overlap of ['', 'soon', '-1d'])
    expect([overlap, (await post('webhooks/app/secret', { overlap })).status]).toEqual([overlap, 422])
  const renewed = await (await post('webhooks/app/secret', { overlap: '2h' })).text()
  expect(wordsIn(renewed)).toContain('signs beside it for 2h')
  expect(/whsec_[\w+/=]{44}/.exec(renewed)?.[0]).not.toBe(secret)

  expect(wordsIn(await textOf('webhooks/app/remove'))).toMatch(/Remove app\? .*undo not possible .*deferd webhook remove app/)
  expect(wordsIn(await textOf('webhooks/app'))).toContain('Remove…')
  const removed = await post('webhooks/app/remove', {})
  expect([removed.status, removed.headers.get('location')]).toEqual([303, '../../webhooks'])
  expect((await ask('webhooks/app')).status).toBe(404)
  const audit = await textOf('audit')
  for (const action of ['webhook add', 'webhook secret', 'webhook remove']) expect(wordsIn(audit)).toContain(action)
  for (const path of ['webhooks', 'audit', 'log', 'events', '']) expect(await textOf(path), path).not.toMatch(/whsec_|CREDENTIAL/)
})

test('a webhook that is refused keeps what was filled in', async () => {
  const refused: readonly (readonly [Partial<typeof WEBHOOK>, string])[] = [
    [{ name: 'a b' }, 'Name: expected letters'],
    [{ to: hook }, 'To: expected https://…; http://… and private addresses need “Permit private addresses”, got &quot;http://127.0.0.1'],
    [{ to: 'file:/etc/passwd' }, 'To: expected https://'],
    [
      { types: 'message.accepted, message.read' },
      'Types: expected a type of event such as recipient.bounced, or a pattern such as recipient.*, got &quot;message.read&quot;',
    ],
    [{ batch: 'many' }, 'Events in one request: expected a number, got &quot;many&quot;'],
    [{ batch: '' }, 'Events in one request: expected a number, got &quot;&quot;'],
    [{ batch: '0' }, 'Events in one request: expected at least 1, got 0'],
    [{ format: 'xml' }, 'Format: expected'],
  ]
  for (const [fields, problem] of refused) {
    const answer = await post('new-webhook', { ...WEBHOOK, to: 'https://app.example/hook', senders: '"><img>@x', ...fields })
    const page = await answer.text()
    expect([answer.status, wordsIn(page)]).toEqual([422, expect.stringContaining(problem)])
    expect(page).toContain('value="&quot;&gt;&lt;img&gt;@x"')
    expect(page).not.toMatch(/<img|whsec_\w/)
  }
  expect(wordsIn(await textOf('webhooks'))).not.toContain('app.example/hook app')
})

test('a webhook of the configuration is tested, and changed there alone', async () => {
  expect(wordsIn(await textOf('webhooks/configured'))).toMatch(/Test…/)
  expect(wordsIn(await textOf('webhooks/configured'))).not.toMatch(/New secret…|Remove…/)
  for (const verb of ['secret', 'remove']) {
    const refused = await ask(`webhooks/configured/${verb}`)
    expect([refused.status, wordsIn(await refused.text())]).toEqual([409, expect.stringContaining('changed in [events.configured]')])
  }
  expect((await post('webhooks/configured/secret', { overlap: '1d' })).status).toBe(409)
  expect((await post('webhooks/configured/remove', {})).status).toBe(409)
  expect((await post('webhooks/other/test', {})).status).toBe(404)
})

test('a token is added and shown once, works, and is refused after its removal', async () => {
  const added = await post('new-token', TOKEN)
  const page = await added.text()
  const [token = ''] = /dfd_\w{49}/.exec(page) ?? []
  expect([added.status, added.headers.get('cache-control'), token === '']).toEqual([200, 'no-store', false])
  const use = () => fetch(`${daemon.url}api/v1/whoami`, { headers: { authorization: `Bearer ${token}` } })
  expect(await (await use()).json()).toMatchObject({ name: 'token:grafana', role: 'viewer', destinations: '*.example.org' })
  const again = await post('new-token', TOKEN)
  expect([again.status, wordsIn(await again.text())]).toEqual([409, expect.stringContaining('there is a token grafana already')])
  for (const [fields, problem] of [
    [{ name: '<b>' }, 'Name: expected 1 to 64 letters'],
    [{ role: 'root' }, 'Role: expected'],
    [{ destinations: 'a'.repeat(1_001) }, 'Only mail of these destinations: expected'],
    [{ expires: '0s' }, 'Expires after: expected a time above 0'],
    [{ expires: 'soon' }, 'Expires after: expected a time above 0'],
  ] as const) {
    const refused = await post('new-token', { ...TOKEN, ...fields })
    expect([refused.status, wordsIn(await refused.text())]).toEqual([422, expect.stringContaining(problem)])
  }
  expect(wordsIn(await textOf('tokens'))).toMatch(
    /grafana viewer \*\.example\.org .* by page:alice .* in the hour from .* in (?:89|90)d.* Remove…/,
  )
  expect(wordsIn(await textOf('tokens/grafana/remove'))).toMatch(/Remove the token grafana\? .*deferd token remove grafana/)
  for (const [path, sentence] of [
    ['tokens/other/remove', 'There is no token other. Now shows'],
    ['webhooks/other', 'There is no subscription other. Now shows'],
    ['operations/99', 'There is no operation 99. Now shows'],
  ] as const) {
    const unknown = await ask(path)
    expect([unknown.status, wordsIn(await unknown.text())]).toEqual([404, expect.stringContaining(sentence)])
  }
  const unknown = await post('tokens/other/remove', {})
  expect([unknown.status, wordsIn(await unknown.text())]).toEqual([404, expect.stringContaining('There is no token other. Now shows')])
  const removed = await post('tokens/grafana/remove', {})
  expect([removed.status, removed.headers.get('location')]).toEqual([303, '../../tokens'])
  expect((await use()).status).toBe(401)
  expect(wordsIn(await textOf('audit'))).toMatch(/token remove .*token add/)
  for (const path of ['tokens', 'audit', 'log']) expect(await textOf(path), path).not.toContain(token)
})

test('roles: a viewer sees webhooks without forms, an operator tests them, tokens are for the role admin', async () => {
  for (const role of ['viewer', 'operator'] as const) {
    const list = await textOf('webhooks', role)
    expect(list).not.toMatch(/new-webhook|href="\.\/tokens"/)
    expect(await textOf('webhooks/configured', role)).not.toMatch(/secret|<form[^>]*method="post" action="(?!\.\.\/logout)/)
    for (const path of ['tokens', 'new-token', 'new-webhook', 'webhooks/configured/secret', 'webhooks/configured/remove'])
      expect([path, (await ask(path, role)).status]).toEqual([path, 403])
    for (const [path, fields] of [
      ['new-token', TOKEN],
      ['new-webhook', WEBHOOK],
      ['webhooks/configured/remove', {}],
      ['webhooks/configured/secret', { overlap: '1d' }],
      ['tokens/grafana/remove', {}],
    ] as const)
      expect([path, (await post(path, fields, role)).status]).toEqual([path, 403])
  }
  expect((await ask('webhooks/configured/test', 'viewer')).status).toBe(403)
  expect((await post('webhooks/configured/test', {}, 'viewer')).status).toBe(403)
  expect(await textOf('', 'admin')).toContain('href="./tokens"')
})

test('a token for some destinations neither sees nor adds webhooks and tokens, whatever its role', async () => {
  const page = await (await post('new-token', { ...TOKEN, name: 'limited', role: 'admin' })).text()
  const headers = { authorization: `Bearer ${/dfd_\w{49}/.exec(page)?.[0]}`, 'content-type': 'application/json' }
  const statusOf = async (method: string, path: string, body?: object) =>
    (await fetch(daemon.url + path, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) })).status
  for (const path of ['tokens', 'new-token', 'tokens/limited/remove', 'webhooks', 'new-webhook', 'api/v1/tokens'])
    expect([path, await statusOf('GET', path)]).toEqual([path, 403])
  const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
  expect(await statusOf('POST', 'api/v1/tokens', { name: 'free', role: 'admin' })).toBe(403)
  expect(await statusOf('DELETE', 'api/v1/tokens/limited')).toBe(403)
  expect(await statusOf('POST', 'api/v1/subscriptions', { name: 'all', to: 'https://app.example/', secret })).toBe(403)
  expect(await statusOf('POST', 'api/v1/subscriptions/configured/secret', { secret, overlap: 0 })).toBe(403)
  expect(await statusOf('DELETE', 'api/v1/subscriptions/configured')).toBe(403)
})
