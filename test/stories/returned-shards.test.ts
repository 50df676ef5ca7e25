/** A node that gives its destinations away and takes them back, in virtual time: what it says of their attempts. */
import { createTransport } from 'nodemailer'
import { expect, test } from 'vitest'
import { loadTemplates } from '../../src/bounce/templates.ts'
import { configFrom } from '../../src/config/load.ts'
import { ProviderDirectory } from '../../src/config/provider-directory.ts'
import { Relay } from '../../src/relay/relay.ts'
import { Member } from '../../src/store/membership/member.ts'
import { ShardKeys } from '../../src/store/membership/shard-keys.ts'
import { emptyQueue } from '../../src/store/memory/queue-state.ts'
import { SECOND } from '../../src/system/clock.ts'
import { seededRandom } from '../../src/system/random.ts'
import { createWorld, type World } from '../../src/testkit/index.ts'
import { Incarnation } from '../../src/testkit/virtual/incarnation.ts'
import { joinMemoryQueue } from '../support/memory-node-table.ts'

const PORT = 2601

/** Starts the only node of a queue, in the network and the time of a world. */
async function startNode(world: World) {
  const { config, written } = configFrom({ smtpd_listen: `127.0.0.1:${PORT}`, minimal_backoff_time: '1h' }, 'n1.example')
  const { store, nodes } = joinMemoryQueue(emptyQueue(), { name: 'n1', now: () => world.clock.now() })
  const life = new Incarnation({ clock: world.clock, net: world.net, store, onEvent: () => undefined })
  const providers = new ProviderDirectory()
  const member = new Member({ nodes, clock: life.clock, keys: new ShardKeys(providers), lease: 5 * SECOND, onEvent: () => undefined })
  const relay = new Relay({
    config,
    templates: loadTemplates({ config, written }).templates,
    clock: life.clock,
    net: life.net,
    store: life.store,
    events: life.events,
    random: seededRandom(1),
    providers,
    membership: member,
  })
  await relay.listen()
  await relay.start()
  void member.start()
  const stop = async (): Promise<void> => {
    await relay.stop(0)
    member.stop()
    life.die()
  }
  const drain = async (draining: boolean): Promise<void> => {
    await nodes.setDraining(nodes.me, draining)
    await world.advance('1m')
  }
  return { relay, drain, stop }
}

test('the attempts at a destination and the outcomes of the last ones begin anew together when its shard returns', async () => {
  await using world = await createWorld()
  world.destination('far.example').defers('*', '450 4.2.1 busy')
  const { relay, drain, stop } = await startNode(world)
  await world.advance('1m')
  const transport = createTransport({
    ...world.transport(),
    getSocket: (_options, callback) => {
      world.net.dialFrom('127.0.0.1', { address: '127.0.0.1', port: PORT }).then(
        (connection) => callback(null, { connection }),
        (error: unknown) => callback(error as Error),
      )
    },
  })
  const to = Array.from({ length: 12 }, (_, n) => `to${n}@far.example`)
  const attempts = () => {
    const { outcomes, causes, windows } = relay.status.recentAttempts('far.example')
    const count = relay.scheduler.destinations.status('far.example')?.undelivered?.count ?? 0
    return { count, outcomes: outcomes.length, causes: causes.length, windows: windows.length }
  }
  await transport.sendMail({ from: 'ann@shop.example', to, text: 'hi' })
  await world.advance('1m')
  expect(attempts()).toMatchObject({ count: 12, outcomes: 12, causes: 1 })
  await drain(true)
  expect(relay.scheduler.destinations.status('far.example')).toBeUndefined()
  await drain(false)
  expect(relay.scheduler.destinations.status('far.example')?.nextDueAt).toBeGreaterThan(world.clock.now())
  expect(attempts()).toEqual({ count: 0, outcomes: 0, causes: 0, windows: 0 })
  await world.advance('1h')
  expect(attempts()).toMatchObject({ count: 12, outcomes: 12, causes: 1 })
  await stop()
})
