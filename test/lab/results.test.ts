/** Results over HTTP are those of Node: recipients, assertions with the texts of the matchers, operations, events and hashes. */
import { createTransport } from 'nodemailer'
import { expect, test } from 'vitest'
import { createWorld, matchers, type Recipient, type World } from '../../src/testkit/index.ts'
import { TestLab, type LabClient } from '../support/lab-client.ts'

const FAILING = ['ann@slow.example', 'eve@gone.example', 'bob@firm.example', 'joe@ok.example']

/** The same story in a world of Node and in one of the lab. */
async function both(world: World, overHttp: LabClient): Promise<void> {
  world.destination('slow.example').greylists('5m')
  world.destination('gone.example').isDown()
  world.destination('firm.example').rejects('bob@firm.example')
  await overHttp.post('/destinations/slow.example/greylists', { delay: '5m' })
  await overHttp.post('/destinations/gone.example/is_down')
  await overHttp.post('/destinations/firm.example/rejects', { recipient: 'bob@firm.example' })
  for (const to of FAILING) {
    const mail = `From: app@us.example\r\nTo: ${to}\r\nSubject: hi\r\n\r\nhello\r\n`
    await createTransport(world.transport()).sendMail({ envelope: { from: 'app@us.example', to: [to] }, raw: mail })
    await overHttp.send(to, { raw: mail })
  }
  await world.settle()
  await overHttp.post('/clock/settle', { after: { accepted: 4 } })
}

const CONFIG = { maximal_queue_lifetime: '2d', delay_warning_time: '4h' }

type Find = (this: { readonly isNot: boolean }, recipient: Recipient) => { readonly pass: boolean; message(): string }

/** Each matcher with arguments, over HTTP and in Node. */
const MATCHERS: readonly (readonly [string, unknown, Find])[] = [
  ['was_delivered', undefined, matchers.toHaveBeenDelivered],
  ['toHaveBeenDeliveredOnce', undefined, matchers.toHaveBeenDeliveredOnce],
  [
    'has_bounced',
    { status: '5.1.1', reply: 'no such' },
    function (one) {
      return matchers.toHaveBounced.call(this, one, { status: '5.1.1', reply: 'no such' })
    },
  ],
  ['has_expired', undefined, matchers.toHaveExpired],
  ['was_delayed', undefined, matchers.toHaveBeenDelayed],
  [
    'was_deferred',
    { times: 1 },
    function (one) {
      return matchers.toHaveBeenDeferred.call(this, one, 1)
    },
  ],
  [
    'was_suppressed',
    { times: 1 },
    function (one) {
      return matchers.toHaveBeenSuppressed.call(this, one, 1)
    },
  ],
  [
    'has_started_within',
    { time: '1s' },
    function (one) {
      return matchers.toHaveStartedWithin.call(this, one, '1s')
    },
  ],
  [
    'was_attempted_at',
    [0, 300],
    function (one) {
      return matchers.toHaveAttemptedAt.call(this, one, [0, 300])
    },
  ],
  [
    'caused_notices',
    ['failure'],
    function (one) {
      return matchers.toHaveCausedNotices.call(this, one, ['failure'])
    },
  ],
]

test('attempts, story, notices, copies and all matchers are those of Node, with not and without', async () => {
  await using lab = await TestLab.open()
  const overHttp = await lab.world({ config: CONFIG })
  await using world = await createWorld({ config: CONFIG })
  await both(world, overHttp)
  for (const address of FAILING) {
    const { attempts, attemptedAt, story, notices, copies } = world.recipient(address)
    const found = await overHttp.get(`/recipients/${address}`)
    expect(found).toMatchObject({ attempted_at: attemptedAt, story: story.map((line) => line), notices, copies })
    expect(found.attempts.map(({ outcome }) => outcome)).toEqual(attempts.map(({ outcome }) => outcome))
    const list = MATCHERS.flatMap(([matcher, args]) =>
      [false, true].map((not) => ({ recipient: address, matcher, not, ...(args === undefined ? {} : { args }) })),
    )
    const answers: unknown = await overHttp.post('/asserts', list)
    const expected = MATCHERS.flatMap(([, , find]) =>
      [false, true].map((isNot) => {
        const result = find.call({ isNot }, world.recipient(address))
        const holds = result.pass !== isNot
        return { holds, message: holds ? null : result.message() }
      }),
    )
    expect(answers).toEqual(expected)
  }
})

test('an assertion about a mistyped address is vacuous, and names the meant one', async () => {
  await using lab = await TestLab.open()
  const world = await lab.world()
  await world.send('ann@x.example')
  const refused = await world.ask('POST', '/asserts', { recipient: 'an@x.example', matcher: 'has_bounced', not: true })
  expect([refused.status, refused.json.type]).toEqual([422, '/problems/vacuous'])
  expect(refused.json.detail).toContain('did you mean ann@x.example?')
  expect((await world.ask('POST', '/asserts', { recipient: 'ann@x.example', matcher: 'was_read' })).status).toBe(422)
})

test('hold, release, expire and suspend have the effect and the summary of Node', async () => {
  await using lab = await TestLab.open()
  const world = await lab.world()
  await world.post('/destinations/x.example/is_down_for', { time: '1h' })
  await world.send('ann@x.example')
  expect(await world.post('/operations', { operation: 'hold' })).toEqual({ matched: 1, changed: 1, in_transfer: 0, unknown: [] })
  await world.post('/clock/advance', { by: '2h' })
  expect((await world.get('/recipients/ann@x.example')).copies).toEqual([])
  expect(await world.post('/operations', { operation: 'release' })).toMatchObject({ changed: 1 })
  await world.post('/clock/settle')
  expect((await world.get('/recipients/ann@x.example')).copies).toEqual([1])
  await world.post('/suspend', { destination: 'x.example' })
  await world.send('eve@x.example')
  expect(await world.post('/operations', { operation: 'expire' })).toMatchObject({ changed: 1 })
  await world.post('/resume', { destination: 'x.example' })
  await world.post('/clock/settle')
  expect(await world.post('/asserts', { recipient: 'eve@x.example', matcher: 'has_expired' })).toMatchObject({ holds: true })
  expect((await world.ask('POST', '/operations', { operation: 'hide' })).status).toBe(422)
  for (const [operation, pointer] of [
    ['reschedule', '/not_before'],
    ['reclass', '/class'],
  ] as const) {
    const refused = await world.ask('POST', '/operations', { operation })
    expect([refused.status, refused.json.errors]).toMatchObject([422, [{ pointer }]])
  }
  const refused = await world.ask('POST', '/operations', { operation: 'reclass', class: 'fast' })
  expect(refused.json.errors).toMatchObject([{ pointer: '/class', detail: expect.stringContaining('there is no class "fast"') as string }])
})

/** The blocks of a stream until there are `count` events. */
async function streamed(
  lab: TestLab,
  world: LabClient,
  { count, last }: { readonly count: number; readonly last?: string },
): Promise<readonly string[]> {
  const abort = new AbortController()
  const headers = last === undefined ? {} : { 'last-event-id': last }
  const response = await fetch(`${lab.base}/worlds/${world.id}/events/stream`, { headers, signal: abort.signal })
  let text = ''
  for await (const chunk of response.body ?? []) {
    text += Buffer.from(chunk).toString()
    if ([...text.matchAll(/^id: /gm)].length >= count) break
  }
  abort.abort()
  return [...text.matchAll(/^id: (.*)$/gm)].map(([, id = '']) => id).slice(0, count)
}

test('the stream of events resumes behind Last-Event-ID without gap or repetition, also with an event that comes later', async () => {
  await using lab = await TestLab.open()
  const world = await lab.world()
  await world.send('ann@x.example')
  await world.post('/clock/settle', { after: { accepted: 1 } })
  const all = (await world.get('/events')).events.map(({ id }) => id)
  expect(all.length).toBeGreaterThan(2)
  const first = await streamed(lab, world, { count: 2 })
  const rest = streamed(lab, world, { count: all.length - 1, last: first[1] ?? '' })
  await world.send('eve@x.example')
  expect([...first, ...(await rest).slice(0, all.length - 2)]).toEqual(all)
  expect((await rest).length).toBe(all.length - 1)
})

test('six clients at once have an order of their own, and equal outcomes', async () => {
  await using lab = await TestLab.open()
  const hashes = new Set<string>()
  for (let run = 0; run < 10; run++) {
    const world = await lab.world({ seed: 3 })
    await world.post('/destinations/slow.example/greylists', { delay: '5m' })
    // All are connected before the first one sends.
    const sessions = await Promise.all([1, 2, 3, 4, 5, 6].map(() => world.session()))
    await Promise.all(
      sessions.map(async (session, n) => {
        for (const line of ['EHLO us.example', 'MAIL FROM:<app@us.example>', `RCPT TO:<user${n}@slow.example>`, 'DATA'])
          await session.command(line)
        expect(await session.command(`Subject: ${n}\r\n\r\nhello\r\n.`)).toMatch(/^250 /)
        session.socket.destroy()
      }),
    )
    await world.post('/clock/settle', { after: { accepted: 6 } })
    const history = await world.get('/history')
    expect(history.order).toBe('concurrent')
    hashes.add(history.outcomes_hash)
    await world.ask('DELETE', '')
  }
  expect(hashes.size).toBe(1)
})

test('the admin API of the relay answers over a world', async () => {
  await using lab = await TestLab.open()
  const world = await lab.world()
  await world.post('/destinations/x.example/is_down')
  await world.send('ann@x.example')
  const { messages } = await world.get('/api/v1/messages')
  expect(messages).toMatchObject([{ sender: 'app@us.example' }])
  expect((await world.ask('GET', '/api/v1/tokens')).status).toBe(403)
})
