/** Fifteen tasks of a test author, each solved with what docs/testkit.md and docs/faults.md say. */
import { createTransport } from 'nodemailer'
import { expect, test } from 'vitest'
import { createWorld, matchers, type DeferdMatchers, type World, type WorldOptions } from '../../src/testkit/index.ts'

declare module 'vitest' {
  // oxlint-disable-next-line no-unused-vars -- merged with vitest's own, which has these parameters
  interface Matchers<R extends void | Promise<void> = void | Promise<void>, T = unknown> extends DeferdMatchers {}
}

expect.extend(matchers)

const send = (world: World, ...to: readonly string[]) =>
  createTransport(world.transport()).sendMail({ from: 'app@us.example', to: [...to], subject: 'Hello', text: 'hi' })

/** A world whose mail has come to an end. `prepare` scripts the remote servers. */
async function settled(options: WorldOptions, to: readonly string[], prepare: (world: World) => unknown): Promise<World> {
  const world = await createWorld(options)
  prepare(world)
  await send(world, ...to)
  await world.settle()
  return world
}

test('1: greylisting for twelve minutes', async () => {
  await using world = await settled({}, ['ann@slow.example'], (one) => one.destination('slow.example').greylists('12m'))
  expect(world.recipient('ann@slow.example')).toHaveAttemptedAt([0, 300, 900])
  expect(world.recipient('ann@slow.example')).toHaveBeenDeliveredOnce()
})

test('2: an outage of five days, with lifetimes of five and of six days', async () => {
  const isDown = (world: World) => world.destination('gone.example').isDownFor('121h')
  await using shorter = await settled({ config: { maximal_queue_lifetime: '5d' } }, ['eve@gone.example'], isDown)
  await using longer = await settled({ config: { maximal_queue_lifetime: '6d' } }, ['eve@gone.example'], isDown)
  expect(shorter.recipient('eve@gone.example')).toHaveExpired()
  expect(longer.recipient('eve@gone.example')).toHaveBeenDeliveredOnce()
})

test('3: one of four recipients is deferred, then rejected, and the notice is about him only', async () => {
  const to = ['ann@four.example', 'bob@four.example', 'eve@four.example', 'joe@four.example']
  await using world = await settled({}, to, (one) =>
    one.destination('four.example').rejects('bob@four.example').defers('bob@four.example', '450 4.2.1 busy', { for: '10m' }),
  )
  expect(world.recipient('bob@four.example')).toHaveBeenDeferred(2)
  expect(world.recipient('bob@four.example')).toHaveBounced({ status: '5.1.1' })
  expect(world.recipient('ann@four.example')).toHaveBeenDeliveredOnce()
  const notices = world.mailbox('app@us.example').notices()
  expect(notices.map(({ recipients }) => recipients.map(({ recipient }) => recipient))).toEqual([['bob@four.example']])
})

const breaksHandshake = (world: World) => world.destination('far.example').offersTls().fails({ at: 'handshake', drop: 'fin' })

test('4a: a broken handshake, where TLS is optional: plain text at the next attempt', async () => {
  await using world = await settled({}, ['ann@far.example'], breaksHandshake)
  expect(world.recipient('ann@far.example')).toHaveBeenDelivered()
  expect(world.mailbox('ann@far.example').mails()[0]?.tls).toBe(false)
})

test('4b: a broken handshake, where TLS is required: deferred, and expired', async () => {
  const config = { smtp_tls_security_level: 'encrypt', maximal_queue_lifetime: '1h' }
  await using world = await settled({ config }, ['ann@far.example'], breaksHandshake)
  expect(world.recipient('ann@far.example')).toHaveExpired()
  expect(world.attempts('ann@far.example')[0]).toMatchObject({ outcome: 'deferred', stage: 'handshake', tls: { level: 'encrypt' } })
})

test('5: a slow RCPT, and a greeting that is silent once', async () => {
  await using world = await settled({}, ['ann@slow.example'], (one) =>
    one.destination('slow.example').isSlow('30s').fails({ at: 'greeting', stall: true, first: 1 }),
  )
  expect(world.recipient('ann@slow.example')).toHaveBeenDeliveredOnce()
  expect(world.attempts('ann@slow.example').map(({ outcome, stage }) => [outcome, stage])).toEqual([
    ['deferred', 'greeting'],
    ['delivered', 'end-of-data'],
  ])
})

test('6: SERVFAIL, NXDOMAIN and a null MX', async () => {
  const to = ['ann@servfail.example', 'bob@nxdomain.example', 'eve@null.example']
  await using world = await settled({ config: { maximal_queue_lifetime: '1h' } }, to, (one) => {
    one.destination('servfail.example').failsInDns()
    one.destination('nxdomain.example').failsInDns('nxdomain')
    one.destination('null.example').hasExchangers('0 .')
  })
  expect(world.recipient('ann@servfail.example')).toHaveExpired()
  expect(world.recipient('bob@nxdomain.example')).toHaveBounced({ status: '5.4.4' })
  expect(world.recipient('eve@null.example')).toHaveBounced({ status: '5.1.0' })
  expect(() => expect(world.recipient('eve@null.example')).toHaveBounced({ status: '5.1.10' })).toThrow(
    /to have bounced 5\.1\.10, but its last attempt was bounced 5\.1\.0 \(Domain null\.example does not accept mail \(nullMX\)\)/,
  )
})

test('7: an MTA-STS policy in mode enforce that does not name the exchanger', async () => {
  await using world = await settled({}, ['ann@far.example'], (one) =>
    one
      .destination('far.example')
      .offersTls()
      .hasStsPolicy({ mode: 'enforce', mx: ['mx.other.example'] }),
  )
  expect(world.recipient('ann@far.example')).toHaveExpired()
  expect(world.attempts('ann@far.example')[0]).toMatchObject({ outcome: 'deferred', tls: { policy: 'sts' } })
})

test('8: a full disk refuses mail, and takes it again', async () => {
  await using world = await createWorld({ config: { queue_minfree: '1G' } })
  world.setFreeSpace('900M')
  await expect(send(world, 'ann@far.example')).rejects.toThrow('452 4.3.1')
  world.setFreeSpace('2G')
  await send(world, 'ann@far.example')
  await world.settle()
  expect(world.recipient('ann@far.example')).toHaveBeenDeliveredOnce()
})

test('9: a crash in the first attempt, and ten minutes until the next start', async () => {
  await using world = await createWorld()
  world.destination('far.example').isDownFor('5m')
  await send(world, 'ann@far.example')
  await world.advance('1m')
  await world.crash({ downFor: '10m' })
  await world.settle()
  expect(world.recipient('ann@far.example')).toHaveAttemptedAt([0, 660])
  expect(world.recipient('ann@far.example')).toHaveBeenDeliveredOnce()
})

test('10: the notice has status, diagnostic, server, text and original', async () => {
  await using world = await settled({}, ['bob@picky.example'], (one) =>
    one.destination('picky.example').rejects('bob@picky.example', '550 5.7.1 not from you'),
  )
  const [notice] = world.mailbox('app@us.example').notices()
  expect(notice).toMatchObject({ action: 'failed', recipients: [{ status: '5.7.1', remoteMta: 'mx.picky.example' }] })
  expect(notice?.recipients[0]?.diagnostic).toContain('550 5.7.1 not from you')
  expect(notice?.text).toContain('bob@picky.example')
  expect(notice?.original).toContain('Subject: Hello')
})

test('11: a webhook whose receiver is down for three hours', async () => {
  await using world = await createWorld()
  world.destination('picky.example').rejects()
  const app = await world.webhook('app', { types: ['recipient.bounced'] })
  app.isDownFor('3h')
  await send(world, 'bob@picky.example')
  await world.advance('1d')
  const answered = app.requests().filter(({ status }) => status === 200)
  expect(answered).toHaveLength(1)
  expect(answered[0]?.at).toBeGreaterThanOrEqual(10_800)
})

test('12: fifty mails at ten in a minute', async () => {
  await using world = await createWorld()
  world.destination('far.example').throttles('10/1m')
  for (let n = 0; n < 50; n++) await send(world, `r${n}@far.example`)
  await world.settle()
  for (let n = 0; n < 50; n++) expect(world.recipient(`r${n}@far.example`)).toHaveBeenDeliveredOnce()
})

test('13: several nodes with a partition are refused with a sentence', async () => {
  await expect(createWorld({ config: { queue_database: 'postgresql://db/mail' } })).rejects.toThrow('are not simulated')
})

test('14: a clock that is set back three days, and forward thirty', async () => {
  await using world = await createWorld()
  world.destination('slow.example').isDownFor('20m')
  await send(world, 'ann@slow.example')
  world.stepClock('-3d')
  await world.advance('10m')
  world.stepClock('30d')
  await world.settle()
  expect(world.recipient('ann@slow.example')).toHaveAttemptedAt([0, 300, 900, 2100])
})

test('15: equal seeds give equal runs, and different ones different runs', async () => {
  const hashOf = async (seed: number): Promise<string> => {
    await using world = await settled({ seed, config: { maximal_queue_lifetime: '3h' } }, ['ann@flaky.example'], (one) =>
      one.destination('flaky.example').fails({ at: 'rcpt', reply: '451 4.3.0 later', probability: '80%' }),
    )
    expect(world.recipient('ann@flaky.example').attempts.length).toBeGreaterThan(0)
    return world.history().hash()
  }
  const seeds = Array.from({ length: 20 }, (_, seed) => seed)
  const hashes = await Promise.all(seeds.map(hashOf))
  expect(new Set(hashes).size).toBeGreaterThan(3)
  expect(await Promise.all(seeds.slice(0, 3).map(hashOf))).toEqual(hashes.slice(0, 3))
})
