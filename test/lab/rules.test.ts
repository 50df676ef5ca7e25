/** Rules and verbs over HTTP are those of the test kit. */
import { readFileSync } from 'node:fs'
import { parse } from 'smol-toml'
import { expect, test } from 'vitest'
import { RemoteDomain } from '../../src/testkit/remote-domain.ts'
import type { Rule } from '../../src/testkit/remote/rule.ts'
import { VERBS } from '../../src/lab/remote-verbs.ts'
import { createWorld, type RemoteDomain as Domain } from '../../src/testkit/index.ts'
import { TestLab } from '../support/lab-client.ts'

/** Each verb with its body, and the call in Node. */
const CALLS: readonly (readonly [string, object, (domain: Domain) => unknown])[] = [
  ['greylists', { delay: '5m', window: '2h' }, (domain) => domain.greylists('5m', { window: '2h' })],
  ['greylists', { delay: 300 }, (domain) => domain.greylists(300)],
  ['is_down', {}, (domain) => domain.isDown()],
  ['is_down_for', { time: '3d' }, (domain) => domain.isDownFor('3d')],
  ['is_down_between', { from: '1h', until: '2h' }, (domain) => domain.isDownBetween('1h', '2h')],
  ['is_unreachable', {}, (domain) => domain.isUnreachable()],
  ['rejects', {}, (domain) => domain.rejects()],
  ['rejects', { recipient: 'bob@x.example', reply: '550 5.1.1 no' }, (domain) => domain.rejects('bob@x.example', '550 5.1.1 no')],
  ['defers', { for: '1h' }, (domain) => domain.defers('*', undefined, { for: '1h' })],
  ['defers', { recipient: 'bob@x.example', reply: '450 4.2.1 busy' }, (domain) => domain.defers('bob@x.example', '450 4.2.1 busy')],
  ['fails_first', { times: 2, reply: '450 4.2.1 busy' }, (domain) => domain.failsFirst(2, '450 4.2.1 busy')],
  ['mailbox_is_full', { recipient: 'bob@x.example', for: '1d' }, (domain) => domain.mailboxIsFull('bob@x.example', { for: '1d' })],
  [
    'throttles',
    { rate: '10/1m', penalty: '5m', reply: '421 4.7.0 slow' },
    (domain) => domain.throttles('10/1m', { penalty: '5m', reply: '421 4.7.0 slow' }),
  ],
  ['allows_connections', { count: 2 }, (domain) => domain.allowsConnections(2)],
  ['drops_after_dot', { times: 2 }, (domain) => domain.dropsAfterDot(2)],
  ['is_slow', { time: '90s' }, (domain) => domain.isSlow('90s')],
  ['fails_in_dns', { how: 'nxdomain' }, (domain) => domain.failsInDns('nxdomain')],
  [
    'has_exchangers',
    { records: ['10 mx1.x.example', '20 mx2.x.example'] },
    (domain) => domain.hasExchangers('10 mx1.x.example', '20 mx2.x.example'),
  ],
  ['offers_tls', { certificate: 'expired' }, (domain) => domain.offersTls('expired')],
  ['has_tlsa', { records: ['3 1 1'] }, (domain) => domain.hasTlsa('3 1 1')],
  [
    'has_sts_policy',
    { mode: 'enforce', max_age: '1d', fails: 404 },
    (domain) => domain.hasStsPolicy({ mode: 'enforce', maxAge: '1d', fails: 404 }),
  ],
  ['recovers', {}, (domain) => domain.recovers()],
]

/** Names of the methods of RemoteDomain, in snake case; `fails` takes a whole rule, as POST /rules does. */
const METHODS = Object.getOwnPropertyNames(RemoteDomain.prototype)
  .filter((name) => name !== 'constructor' && name !== 'fails')
  .map((name) => name.replaceAll(/[A-Z]+/g, (letters) => `_${letters.toLowerCase()}`))

test('every verb of a domain over HTTP gives the rule of Node', async () => {
  expect(Object.keys(VERBS).toSorted()).toEqual(METHODS.toSorted())
  expect(new Set(CALLS.map(([name]) => name))).toEqual(new Set(METHODS))
  await using lab = await TestLab.open()
  const overHttp = await lab.world()
  await using world = await createWorld()
  for (const [name, body, call] of CALLS) {
    const { rules } = await overHttp.post(`/destinations/x.example/${name}`, body)
    const before = new Set(world.remote.rules.map(({ id }) => id))
    call(world.destination('x.example'))
    const added: readonly Rule[] = world.remote.rules.filter(({ id }) => !before.has(id)).map(({ rule }) => rule)
    expect(rules.map((one) => [one.name, one.rule])).toEqual(added.map((one) => [one.name, JSON.parse(JSON.stringify(one.written))]))
  }
  expect((await overHttp.get('/rules')).rules).toEqual([])
})

test('every example of docs/faults.md is accepted as a rule', async () => {
  const page = readFileSync(new URL('../../docs/faults.md', import.meta.url), 'utf8')
  const written = [...page.matchAll(/^\| [a-z0-9-]+ \|.*$/gm)].flatMap(([row]) =>
    [...row.matchAll(/`(\{[^`]+\})`/g)].map(([, text = '']) => text),
  )
  const tables = written.map((text) => (parse(`rule = ${text}`) as { readonly rule: object }).rule)
  expect(tables.length).toBeGreaterThan(40)
  await using lab = await TestLab.open()
  const world = await lab.world()
  const { rules } = await world.post('/rules', { rules: tables })
  expect(rules.map(({ rule }) => rule)).toEqual(tables)
})

test('an invalid reply and an unknown key are told together, each with its pointer', async () => {
  await using lab = await TestLab.open()
  const refused = await (await lab.world()).ask('POST', '/rules', { at: 'rcpt', reply: 'no', recipent: 'x' })
  expect(refused.status).toBe(422)
  expect(refused.json.errors.map(({ pointer }) => pointer)).toEqual(['/reply', '/recipent'])
  const list = await (await lab.world()).ask('POST', '/rules', { rules: [{ at: 'rcpt', reply: '450 x' }, { at: 'nowhere' }] })
  expect(list.json.errors.map(({ pointer }) => pointer)).toEqual(['/rules/1/at'])
  const verb = await (await lab.world()).ask('POST', '/destinations/x.example/rejects', { reply: '450 4.2.1 busy' })
  expect([verb.status, verb.json.detail]).toEqual([422, expect.stringContaining('use defers()')])
})

test('the removal of a rule by its number restores delivery', async () => {
  await using lab = await TestLab.open()
  const world = await lab.world()
  const { rules } = await world.post('/rules', { rules: [{ at: 'rcpt', domain: 'x.example', reply: '451 4.3.0 later' }] })
  const id = rules[0]?.id ?? 0
  await world.send('ann@x.example')
  await world.post('/clock/advance', { by: '1m' })
  expect((await world.get('/rules')).rules).toMatchObject([{ id, used: 1 }])
  expect((await world.ask('DELETE', `/rules/${id}`)).status).toBe(200)
  expect((await world.ask('DELETE', `/rules/${id}`)).status).toBe(404)
  await world.post('/clock/settle')
  expect((await world.get('/recipients/ann@x.example')).copies).toEqual([1])
})
