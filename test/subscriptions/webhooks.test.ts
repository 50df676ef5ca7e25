/** Webhooks of a relay in virtual time: order, ids, signatures, waits, parking, replay, crashes. */
import { createTransport } from 'nodemailer'
import { Webhook as Verifier } from 'standardwebhooks'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createWorld, type Webhook, type World } from '../../src/testkit/index.ts'

const mail = (world: World, to: string) =>
  createTransport(world.transport()).sendMail({ envelope: { from: 'app@us.example', to: [to] }, text: 'hi' })

interface Body {
  readonly type: string
  readonly data: { readonly recipient?: string; readonly queue_id?: string; readonly outcome?: string }
}

const bodyOf = ({ body }: { readonly body: string }): Body => JSON.parse(body) as Body
const taken = (hook: Webhook) => hook.requests().filter(({ status }) => status !== null && status < 300)
const types = (hook: Webhook) => taken(hook).map((request) => bodyOf(request).type)
const ids = (hook: Webhook) => taken(hook).map(({ headers }) => headers['webhook-id'] ?? '')

test('an application is told of a bounce', async () => {
  await using world = await createWorld()
  const bounced: string[] = []
  const hook = await world.webhook('app', {
    types: ['recipient.bounced'],
    handler: ({ body }) => {
      bounced.push(bodyOf({ body }).data.recipient ?? '')
      return 204
    },
  })
  world.destination('there.example').rejects('eve@there.example')
  await mail(world, 'eve@there.example')
  await mail(world, 'ann@there.example')
  await world.settle()
  expect(bounced).toEqual(['eve@there.example'])
  const [request] = hook.requests()
  expect(request?.headers).toMatchObject({ 'webhook-id': expect.stringMatching(/^evt_/) as string })
})

test('a receiver that is down for an hour gets 1,000 events in order, each once, after waits that double', async () => {
  await using world = await createWorld()
  const hook = (await world.webhook('app', { types: ['recipient.delivered'] })).isDownFor('1h')
  for (let n = 0; n < 20; n++) {
    const to = Array.from({ length: 50 }, (_, i) => `user${n * 50 + i}@there.example`)
    await createTransport(world.transport()).sendMail({ envelope: { from: 'app@us.example', to }, text: 'hi' })
  }
  await world.advance('3h')
  const failed = hook.requests().filter(({ status }) => status === null)
  expect(failed.length).toBeLessThan(12)
  const waits = failed.slice(1).map(({ at }, n) => at - (failed[n]?.at ?? 0))
  waits.forEach((wait, n) => {
    expect(wait).toBeGreaterThanOrEqual(5 * 2 ** n)
    expect(wait).toBeLessThan(1.21 * 5 * 2 ** n)
  })
  const kept = await world.events({ types: ['recipient.delivered'] })
  expect(taken(hook).map((request) => bodyOf(request).data)).toEqual(kept.map(({ data }) => data))
  expect([kept.length, new Set(ids(hook)).size]).toEqual([1_000, 1_000])
})

test('every request is signed, with the time of the try', async () => {
  await using world = await createWorld()
  const hook = await world.webhook('app')
  hook.replies(500, { first: 1 })
  await mail(world, 'ann@there.example')
  await world.settle()
  await world.advance('1m')
  const [first, second] = hook.requests()
  expect(first?.headers['webhook-id']).toBe(second?.headers['webhook-id'])
  expect(first?.headers['webhook-signature']).not.toBe(second?.headers['webhook-signature'])
  const verifier = new Verifier(hook.secret)
  // `verify` of the library refuses times that are far from those of the machine.
  for (const { headers, body } of hook.requests()) {
    const signature = verifier.sign(headers['webhook-id'] ?? '', new Date(Number(headers['webhook-timestamp']) * 1000), body)
    expect(headers['webhook-signature']).toBe(signature)
  }
})

test('an event that is refused six times is parked, the rest is sent, and a replay has the same id', async () => {
  await using world = await createWorld()
  let isBroken = true
  const hook = await world.webhook('app', {
    types: ['recipient.*'],
    handler: ({ body }) => (isBroken && bodyOf({ body }).data.recipient === 'bob@there.example' ? 400 : 200),
  })
  for (const name of ['ann', 'bob', 'eve']) await mail(world, `${name}@there.example`)
  await world.advance('1h')
  expect(taken(hook).map((request) => bodyOf(request).data.recipient)).toEqual(['ann@there.example', 'eve@there.example'])
  const refused = hook.requests().filter(({ status }) => status === 400)
  expect(refused).toHaveLength(6)
  isBroken = false
  expect(await world.replay('app', 'parked')).toBe(1)
  await world.advance('1m')
  expect(ids(hook).at(-1)).toBe(refused[0]?.headers['webhook-id'])
  expect(await world.replay('app', 'parked')).toBe(0)
})

test('a refused event among several in one request is found and parked', async () => {
  await using world = await createWorld()
  const hook = await world.webhook('app', {
    types: ['recipient.*'],
    batch: 10,
    handler: ({ body }) => (body.includes('bob@') ? 422 : 200),
  })
  hook.isDownFor('2s')
  for (const name of ['ann', 'bob', 'eve', 'kim']) await mail(world, `${name}@there.example`)
  await world.advance('1h')
  const all = taken(hook).flatMap(({ body }) => (JSON.parse(body) as Body[]).map(({ data }) => data.recipient))
  expect(all).toEqual(['ann@there.example', 'eve@there.example', 'kim@there.example'])
})

test('410 disables', async () => {
  await using world = await createWorld()
  const hook = (await world.webhook('app')).replies(410)
  await mail(world, 'ann@there.example')
  await mail(world, 'bob@there.example')
  await world.advance('2h')
  expect(hook.requests()).toHaveLength(1)
  hook.recovers()
  expect(await world.replay('app')).toBe(6)
  await world.advance('1m')
  expect(new Set(ids(hook)).size).toBe(6)
  expect(types(hook).toSorted()).toEqual((await world.events()).map(({ type }) => type).toSorted())
})

test('the refusals of an event are counted across restarts', async () => {
  const store = { directory: mkdtempSync(join(tmpdir(), 'deferd-webhooks-')) }
  await using world = await createWorld({ store })
  const hook = await world.webhook('app', { types: ['recipient.*'], handler: ({ body }) => (body.includes('bob@') ? 400 : 200) })
  for (const name of ['bob', 'eve']) await mail(world, `${name}@there.example`)
  for (let kill = 0; kill < 3; kill++) {
    await world.advance('12s')
    await world.crash()
  }
  await world.advance('1h')
  expect(hook.requests().filter(({ status }) => status === 400).length).toBeLessThanOrEqual(8)
  expect(hook.requests().filter(({ status }) => status === 400).length).toBeGreaterThanOrEqual(6)
  expect(taken(hook).map((request) => bodyOf(request).data.recipient)).toEqual(['eve@there.example'])
})

test('five kills of the relay lose no event and invent none; a repeated event has its id', async () => {
  const store = { directory: mkdtempSync(join(tmpdir(), 'deferd-webhooks-')) }
  await using world = await createWorld({ store })
  const hook = (await world.webhook('app', { types: ['recipient.*', 'message.removed'] })).isDownFor('10m')
  world.destination('slow.example').greylists('5m')
  for (let kill = 0; kill < 5; kill++) {
    for (let n = 0; n < 5; n++) await mail(world, `user${kill}${n}@slow.example`)
    await world.advance('2m')
    await world.crash({ downFor: '30s' })
    await world.advance('1m')
  }
  await world.advance('3h')
  const kept = (await world.events({ types: ['recipient.*', 'message.removed'] })).map(
    ({ type, data }) => `${type} ${JSON.stringify(data)}`,
  )
  const seen = new Map<string, string>()
  for (const request of taken(hook)) {
    const { type, data } = bodyOf(request)
    const id = request.headers['webhook-id'] ?? ''
    const text = `${type} ${JSON.stringify(data)}`
    expect(seen.get(id) ?? text).toBe(text)
    seen.set(id, text)
  }
  expect([...seen.values()]).toEqual(kept)
  expect(types(hook).filter((type) => type === 'recipient.delivered').length).toBeGreaterThanOrEqual(25)
})
