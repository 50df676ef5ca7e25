/** The clock of a world over HTTP: conditions in real time, sessions while it advances, crashes, and a clock that follows real time. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { TestLab, type LabClient } from '../support/lab-client.ts'

const later = async (world: LabClient, ms: number, to: string): Promise<string> => {
  await sleep(ms)
  return world.send(to)
}

test('settle without a condition before the mail passes no time', async () => {
  await using lab = await TestLab.open()
  const world = await lab.world()
  expect(await world.post('/clock/settle')).toMatchObject({ passed: 0, elapsed: 0 })
})

test('settle waits for mail that is accepted later', async () => {
  await using lab = await TestLab.open()
  const world = await lab.world()
  await world.post('/destinations/slow.example/greylists', { delay: '5m' })
  const sent = later(world, 300, 'ann@slow.example')
  expect(await world.post('/clock/settle', { after: { accepted: 1 }, within: '30s' })).toMatchObject({ passed: 300, accepted: 1 })
  expect((await world.get('/recipients/ann@slow.example')).attempted_at).toEqual([0, 300])
  await sent
  const next = later(world, 100, 'eve@slow.example')
  expect(await world.post('/clock/settle', { after: { accepted: '+1' }, within: '30s' })).toMatchObject({ accepted: 2 })
  await next
})

test('settle that waits in vain is refused, and the clock does not move', async () => {
  await using lab = await TestLab.open()
  const world = await lab.world()
  const refused = await world.ask('POST', '/clock/settle', { after: { accepted: 1 }, within: '300ms' })
  expect([refused.status, refused.json.type]).toEqual([409, '/problems/not-yet'])
  expect(refused.json.detail).toBe('the relay has accepted 0 of 1 message within 0.3s; open sessions: 0')
  expect(await world.get('/clock')).toMatchObject({ elapsed: 0 })
})

test('settle after idle sessions waits for the end of a transaction', async () => {
  await using lab = await TestLab.open()
  const world = await lab.world()
  const session = await world.session()
  await session.command('EHLO us.example')
  await session.command('MAIL FROM:<app@us.example>')
  expect((await world.get('/clock')).sessions).toMatchObject([{ stage: 'MAIL', in_transaction: true, waits_until: null }])
  const busy = await world.ask('POST', '/clock/settle', { after: { sessions: 'idle' }, within: '100ms' })
  expect(busy.json.detail).toBe('1 client did not end a transaction within 0.1s; open sessions: 1, in MAIL')
  await session.command('RSET')
  await world.post('/clock/settle', { after: { sessions: 'idle' } })
  session.socket.destroy()
})

test('an open session sends again after 30 days, unless the configuration has a shorter limit', async () => {
  await using lab = await TestLab.open()
  for (const [config, reply] of [
    [{}, /^250 /],
    [{ smtpd_timeout: '300s' }, /^421 4\.4\.2 /],
  ] as const) {
    const world = await lab.world({ config })
    const session = await world.session()
    await session.command('EHLO us.example')
    await world.post('/clock/advance', { by: '30d' })
    expect(await session.command('MAIL FROM:<app@us.example>')).toMatch(reply)
    session.socket.destroy()
  }
})

test('wrong commands are answered without a pause until the hard limit', async () => {
  await using lab = await TestLab.open()
  const session = await (await lab.world()).session()
  const before = performance.now()
  for (let n = 1; n < 20; n++) expect(await session.command('NONSENSE')).toMatch(/^500 /)
  expect(performance.now() - before).toBeLessThan(10_000)
  await session.command('NONSENSE')
  expect(await session.ended).toMatch(/end|ECONNRESET/)
})

test('a crash resets the connection of a client, refuses others while the relay is down, and keeps acknowledged mail', async () => {
  await using lab = await TestLab.open()
  const world = await lab.world()
  await world.post('/destinations/x.example/is_down_for', { time: '1m' })
  await world.send('ann@x.example')
  const session = await world.session()
  for (const line of ['EHLO us.example', 'MAIL FROM:<app@us.example>', 'RCPT TO:<eve@x.example>', 'DATA']) await session.command(line)
  session.socket.write('Subject: half\r\n\r\nhalf a message')
  await world.post('/crash', { down_for: '10m' })
  expect(await session.ended).toBe('ECONNRESET')
  await expect(world.send('bob@x.example')).rejects.toThrow('ECONNREFUSED')
  const down = await world.ask('POST', '/operations', { operation: 'hold' })
  expect([down.status, down.json.detail]).toEqual([
    409,
    'the relay is down until 2026-01-01T00:10:00.000Z: advance the clock, or crash without down_for',
  ])
  await world.post('/clock/advance', { by: '10m' })
  await world.send('bob@x.example')
  await world.post('/clock/settle')
  expect((await world.get('/mailboxes/ann@x.example')).mails).toHaveLength(1)
  expect((await world.get('/mailboxes/eve@x.example')).mails).toHaveLength(0)
  expect((await world.get('/mailboxes/bob@x.example')).mails).toHaveLength(1)
})

test('a restart keeps the queue', async () => {
  await using lab = await TestLab.open()
  const world = await lab.world({ store: 'sqlite', config: {} })
  await world.post('/destinations/x.example/is_down_for', { time: '1h' })
  await world.send('ann@x.example')
  await world.post('/restart')
  await world.post('/clock/settle')
  expect((await world.get('/mailboxes/ann@x.example')).mails).toHaveLength(1)
})

test('a step of the wall clock leaves the waits, and dates follow', async () => {
  await using lab = await TestLab.open()
  const world = await lab.world()
  await world.post('/destinations/slow.example/greylists', { delay: '5m' })
  await world.send('ann@slow.example')
  expect(await world.post('/clock/step', { by: '-2h' })).toMatchObject({ now: '2025-12-31T22:00:00.000Z', elapsed: 0 })
  expect(await world.post('/clock/settle')).toMatchObject({ passed: 300, now: '2025-12-31T22:05:00.000Z' })
})

test('a clock at speed 3600 delivers greylisted mail within real seconds, and such a world has no hash', async () => {
  await using lab = await TestLab.open()
  const world = await lab.world({ speed: 3_600 })
  await world.post('/destinations/slow.example/greylists', { delay: '5m' })
  await world.send('ann@slow.example')
  // 5 minutes are 83 ms.
  await world.get('/mailboxes/ann@slow.example/wait?within=10s')
  expect(await world.get('/history')).toMatchObject({ hash: null, order: null })
})

test('a queue that cannot become empty is told with its mail', async () => {
  await using lab = await TestLab.open()
  const world = await lab.world()
  await world.post('/suspend', { destination: 'x.example' })
  await world.send('ann@x.example')
  const refused = await world.ask('POST', '/clock/settle', { at_most: '1h' })
  expect([refused.status, refused.json.type]).toEqual([409, '/problems/cannot-settle'])
  await world.post('/resume', { destination: 'x.example' })
  expect(await world.post('/clock/settle')).toMatchObject({ accepted: 1 })
})
