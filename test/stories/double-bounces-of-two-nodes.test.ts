/** Nodes with a `myhostname` each whose mail to the postmaster cannot be delivered, in virtual time. */
import { createTransport } from 'nodemailer'
import { expect, test } from 'vitest'
import { loadTemplates } from '../../src/bounce/templates.ts'
import { configFrom } from '../../src/config/load.ts'
import { ProviderDirectory } from '../../src/config/provider-directory.ts'
import { Relay } from '../../src/relay/relay.ts'
import { Member } from '../../src/store/membership/member.ts'
import { ShardKeys } from '../../src/store/membership/shard-keys.ts'
import { emptyQueue, type MemoryQueue } from '../../src/store/memory/queue-state.ts'
import { SECOND } from '../../src/system/clock.ts'
import { seededRandom } from '../../src/system/random.ts'
import { createWorld, type World } from '../../src/testkit/index.ts'
import { Incarnation } from '../../src/testkit/virtual/incarnation.ts'
import { joinMemoryQueue } from '../support/memory-node-table.ts'

/** Each in a shard of the other node. */
const HOSTNAMES = ['mx2.example', 'mx1.example']

interface Node {
  readonly port: number
  readonly hostname: string
  readonly member: Member
  /** Sender and recipient of each message that it has queued as a notice. */
  readonly notices: string[]
  stop(): Promise<void>
}

/** Starts a relay on a queue that it shares, in the network and the time of a world. */
async function startNode(world: World, queue: MemoryQueue, hostname: string): Promise<Node> {
  const port = 2600 + HOSTNAMES.indexOf(hostname)
  const settings = { smtpd_listen: `127.0.0.1:${port}`, notify_classes: 'bounce, 2bounce' }
  const { config, written } = configFrom(settings, hostname)
  const { store, nodes } = joinMemoryQueue(queue, { name: hostname, hostname, now: () => world.clock.now() })
  const notices: string[] = []
  const life = new Incarnation({
    clock: world.clock,
    net: world.net,
    store,
    onEvent: (event) => {
      if (event.kind === 'notice-sent') notices.push(`${event.queued.message.sender} to ${event.queued.recipients.join()}`)
    },
  })
  const providers = new ProviderDirectory()
  const member = new Member({ nodes, clock: life.clock, keys: new ShardKeys(providers), lease: 5 * SECOND, onEvent: () => undefined })
  const relay = new Relay({
    config,
    templates: loadTemplates({ config, written }).templates,
    clock: life.clock,
    net: life.net,
    store: life.store,
    events: life.events,
    random: seededRandom(port),
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
  return { port, hostname, member, notices, stop }
}

/** Senders and recipients of clients. Each domain refuses all mail. */
const DOMAINS = Array.from({ length: 8 }, (_, n) => `gone${n}.example`)

test('mail to the postmaster of a node that another one cannot deliver causes no notice, and notices about it are discarded', async () => {
  await using world = await createWorld()
  const queue = emptyQueue()
  const nodes: Node[] = []
  for (const hostname of HOSTNAMES) nodes.push(await startNode(world, queue, hostname))
  for (const domain of [...DOMAINS, ...HOSTNAMES]) world.destination(domain).rejects()
  await world.advance('2m')
  for (const { hostname, member } of nodes) expect(member.owns(hostname)).toBe(false)
  for (const { port } of nodes) {
    const transport = createTransport({
      ...world.transport(),
      getSocket: (_options, callback) => {
        world.net.dialFrom('127.0.0.1', { address: '127.0.0.1', port }).then(
          (connection) => callback(null, { connection }),
          (error: unknown) => callback(error as Error),
        )
      },
    })
    for (const domain of DOMAINS) await transport.sendMail({ from: `app@${domain}`, to: `ann@${domain}`, text: 'hi' })
    const to = HOSTNAMES.map((hostname) => `Double-Bounce@${hostname}`)
    await transport.sendMail({ envelope: { from: '', to }, text: 'returned' })
  }
  await world.advance('10m')
  // Of each message: the notice to its sender with the copy to the postmaster, and the report that the notice was not delivered either.
  const kinds = Map.groupBy(
    nodes.flatMap(({ notices }) => notices),
    (one) => one.replaceAll(/\d/g, ''),
  )
  expect(Object.fromEntries([...kinds].map(([kind, { length }]) => [kind, length]))).toEqual({
    ' to app@gone.example': 16,
    'double-bounce@mx.example to postmaster@mx.example': 32,
  })
  expect(queue.messages.size).toBe(0)
  for (const node of nodes) await node.stop()
})
