/** Rules and verbs over HTTP are those of the test kit. */
import { readFileSync } from 'node:fs'
import { parse } from 'smol-toml'
import { expect, test } from 'vitest'
import { RemoteDomain } from '../../src/testkit/scripted/remote-domain.ts'
import type { Rule } from '../../src/testkit/remote/rule.ts'
import { VERBS } from '../../src/lab/remote-verbs.ts'
import { createWorld } from '../../src/testkit/index.ts'
import { TestLab } from '../support/lab-client.ts'
import { VERB_CALLS } from '../support/verb-calls.ts'

/** Names of the methods of RemoteDomain, in snake case; `fails` takes a whole rule, as POST /rules does. */
const METHODS = Object.getOwnPropertyNames(RemoteDomain.prototype)
  .filter((name) => name !== 'constructor' && name !== 'fails')
  .map((name) => name.replaceAll(/[A-Z]+/g, (letters) => `_${letters.toLowerCase()}`))

test('every verb of a domain over HTTP gives the rule of Node', async () => {
  expect(Object.keys(VERBS).toSorted()).toEqual(METHODS.toSorted())
  expect(new Set(VERB_CALLS.map(([name]) => name))).toEqual(new Set(METHODS))
  await using lab = await TestLab.open()
  const overHttp = await lab.world()
  await using world = await createWorld()
  for (const [name, body, call] of VERB_CALLS) {
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
