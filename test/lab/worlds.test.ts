/** Worlds of a lab: creation, equal histories, limits and their ends. */
import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { openApiSchema, validator } from '../support/api-server.ts'
import { createTransport } from 'nodemailer'
import { TestLab, type LabClient } from '../support/lab-client.ts'

const connectTo = (port: number): Promise<string> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.on('error', (error) => resolve('code' in error ? String(error.code) : error.message))
    socket.on('data', (data) => {
      socket.destroy()
      resolve(data.toString())
    })
  })

test('a created world has an open SMTP port, which its deletion closes', async () => {
  await using lab = await TestLab.open()
  await lab.world()
  const before = performance.now()
  const world = await lab.world()
  // 100 ms on an idle machine.
  expect(performance.now() - before).toBeLessThan(10_000)
  expect(await connectTo(world.port)).toMatch(/^220 /)
  expect((await world.ask('DELETE', '')).status).toBe(204)
  expect(await connectTo(world.port)).toBe('ECONNREFUSED')
})

/** A greylisted message, an outage and a mistyped address. Returns the state of the history. */
async function story(world: LabClient) {
  await world.post('/destinations/slow.example/greylists', { delay: '5m' })
  await world.post('/destinations/gone.example/is_down')
  await world.post('/rules', { domain: 'firm.example', at: 'rcpt', probability: 0.5, reply: '451 4.3.0 later' })
  for (const to of ['ann@slow.example', 'eve@gone.example', ...[1, 2, 3, 4, 5, 6].map((n) => `bob${n}@firm.example`)]) {
    await world.send(to, { raw: `From: app@us.example\r\nTo: ${to}\r\nSubject: hi\r\n\r\nhello\r\n` })
    await world.post('/clock/advance', { by: '1m' })
  }
  await world.post('/clock/settle', { after: { accepted: 8 } })
  return world.get('/history')
}

test('two worlds with equal seeds, calls and one client have equal hashes, and another seed another one', async () => {
  await using lab = await TestLab.open()
  const [one, other, third] = [
    await story(await lab.world({ seed: 7 })),
    await story(await lab.world({ seed: 7 })),
    await story(await lab.world({ seed: 8 })),
  ]
  expect(one).toMatchObject({ order: 'sequential', hash: expect.stringMatching(/^[\da-f]{64}$/) })
  expect(other).toEqual(one)
  expect(third.hash).not.toBe(one.hash)
})

test('a world is found by its name, which another world cannot take', async () => {
  await using lab = await TestLab.open()
  const world = await lab.world({ name: 'orders' })
  expect((await lab.ask('GET', '/worlds/orders')).json.id).toBe(world.id)
  const taken = await lab.ask('POST', '/worlds', { name: 'orders' })
  expect([taken.status, taken.json.type]).toEqual([409, '/problems/name-taken'])
  const unknown = await lab.ask('GET', '/worlds/w7')
  expect([unknown.status, unknown.json.detail]).toEqual([404, 'there is no world w7: worlds are w1 (name "orders")'])
})

test('a world beyond the limit is refused, and one without requests ends with the reason', async () => {
  await using lab = await TestLab.open({ maxWorlds: 1, idle: 5_000 })
  const world = await lab.world()
  const refused = await lab.ask('POST', '/worlds', {})
  expect([refused.status, refused.json.type, refused.headers.get('retry-after')]).toEqual([503, '/problems/too-many-worlds', '5'])
  await expect.poll(() => lab.lab.worlds.length, { timeout: 30_000 }).toBe(0)
  const ended = await world.ask('GET', '/clock')
  expect([ended.status, ended.json.type]).toEqual([410, '/problems/world-ended'])
  await expect
    .poll(async () => (await world.ask('GET', '/clock')).json.detail, { timeout: 30_000 })
    .toMatch(/^world w1 expired after 5s without a request \(--idle\); its last hash was [\da-f]{64}$/)
})

test('a world that is closing is told from an unknown one', async () => {
  await using lab = await TestLab.open()
  const world = await lab.world({ store: 'sqlite' })
  await story(world)
  const deleted = world.ask('DELETE', '')
  await expect.poll(() => lab.lab.worlds.length, { interval: 1, timeout: 30_000 }).toBe(0)
  const asked = await world.ask('GET', '/clock')
  expect([asked.status, asked.json.type]).toEqual([410, '/problems/world-ended'])
  expect((await deleted).status).toBe(204)
})

test('mistakes in members, configuration and script are told together, each with its pointer', async () => {
  await using lab = await TestLab.open()
  const refused = await lab.ask('POST', '/worlds', { config: { maximal_queue_lifetime: '5x' }, script: '[rule.a]\nreplay = "451 no"' })
  expect(refused.status).toBe(422)
  expect(refused.json.errors.map(({ pointer }) => pointer)).toEqual(['/config/maximal_queue_lifetime', '/script'])
  expect(refused.json.errors[1]?.detail).toBe('line 2: rule a: unknown key replay; did you mean reply?')
  const unknown = await lab.ask('POST', '/worlds', { sed: 7 })
  expect(unknown.json.errors[0]?.pointer).toBe('/sed')
})

test('the OpenAPI document describes every route', async () => {
  await using lab = await TestLab.open()
  const { json } = await lab.ask('GET', '/openapi.json')
  const validate = validator().compile(openApiSchema())
  expect(validate(json) ? [] : validate.errors).toEqual([])
  expect(Object.keys(json.paths)).toContain('/lab/v1/worlds/{world}/clock/settle')
})

test('a port with STARTTLS has a certificate of the authority that the world names, and takes the logins of its users', async () => {
  await using lab = await TestLab.open()
  const { json } = await lab.ask('POST', '/worlds', { tls: 'starttls', users: { app: 'secret' } })
  const { host, port, ca } = json.smtp
  const sent = async (pass: string) => {
    const transport = createTransport({ host, port, requireTLS: true, tls: { ca: ca ?? '' }, auth: { user: 'app', pass } })
    try {
      return (await transport.sendMail({ from: 'app@us.example', to: 'ann@x.example', text: 'hi' })).response
    } finally {
      transport.close()
    }
  }
  expect(await sent('secret')).toMatch(/^250 /)
  await expect(sent('wrong')).rejects.toThrow('535')
  const found = await lab.ask('POST', `/worlds/${json.id}/clock/settle`, { after: { accepted: 1 } })
  expect(found.json).toMatchObject({ accepted: 1 })
  expect((await lab.ask('GET', `/worlds/${json.id}/mailboxes/ann@x.example`)).json.mails).toHaveLength(1)
  const refused = await lab.ask('POST', '/worlds', { users: { app: 'secret' } })
  expect([refused.status, refused.json.errors[0]?.pointer]).toEqual([422, '/users'])
  expect(refused.json.detail).toContain('expected "tls": "starttls" beside them')
})
