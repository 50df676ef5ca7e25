/** Customers with relayhosts of their own behind one relay (sender_dependent_relayhost_maps). */
import { createTransport } from 'nodemailer'
import { expect, test } from 'vitest'
import { createWorld } from '../../src/testkit/index.ts'
import { RelayNetwork } from '../support/relay-network.ts'

const MAPS = { '@a.example': '[relay.a.example]', '@b.example': '[relay.b.example]' }

test('the relayhost of one customer is down: mail of the others flows, to the same domain too', async () => {
  const config = { sender_dependent_relayhost_maps: MAPS, maximal_queue_lifetime: '1d' }
  await using world = await createWorld({ config })
  world.rule({ mx: 'relay.a.example', connect: 'refused' })
  const transport = createTransport(world.transport())
  const send = (from: string, to: string) => transport.sendMail({ from, to, text: 'hi' })
  await send('app@a.example', 'ann@far.example')
  await world.advance('1h')
  for (const name of ['bob', 'eve']) await send('app@b.example', `${name}@far.example`)
  await send('app@us.example', 'joe@far.example')
  await world.settle()
  for (const [name, host] of [
    ['bob', 'relay.b.example'],
    ['eve', 'relay.b.example'],
    ['joe', 'mx.far.example'],
  ]) {
    expect(world.attempts(`${name}@far.example`)).toMatchObject([{ at: 0, outcome: 'delivered', host }])
  }
  const waited = world.attempts('ann@far.example')
  expect(waited.length).toBeGreaterThan(10)
  expect(waited.at(-1)).toMatchObject({ at: 86_400, outcome: 'expired' })
  // The notice has the null sender, and no entry of its own.
  expect(world.attempts('app@a.example')).toMatchObject([{ outcome: 'delivered', host: 'mx.a.example' }])
})

test('mail that waits is routed by its sender again after a change of the table', async () => {
  const { relay } = await new RelayNetwork().open('relay.example', '192.0.2.1', { sender_dependent_relayhost_maps: MAPS })
  const routeOf = (sender: string) => relay.routeOf('ann@far.example', { sender, createdAt: 0 }).destination
  expect(['app@a.example', 'app@b.example', 'app@us.example', ''].map(routeOf)).toEqual([
    'smtp:[relay.a.example]:25',
    'smtp:[relay.b.example]:25',
    'far.example',
    'far.example',
  ])
  await relay.stop(0)
})
