/** Two relays on one queue, with one rotating refresh token: one request to the authority per lifetime of an access token. */
import { createTransport } from 'nodemailer'
import { expect, test } from 'vitest'
import { loadTemplates } from '../../src/bounce/templates.ts'
import { ProviderDirectory } from '../../src/config/provider-directory.ts'
import { configFrom } from '../../src/config/load.ts'
import { Relay } from '../../src/relay/relay.ts'
import { joinMemoryQueue } from '../support/memory-node-table.ts'
import { emptyQueue, type MemoryQueue } from '../../src/store/memory/queue-state.ts'
import { Member } from '../../src/store/membership/member.ts'
import { ShardKeys } from '../../src/store/membership/shard-keys.ts'
import { MINUTE } from '../../src/system/clock.ts'
import { seededRandom } from '../../src/system/random.ts'
import { createWorld, WORLD_CA, type World } from '../../src/testkit/index.ts'
import { Incarnation } from '../../src/testkit/virtual/incarnation.ts'
import { oauthClient } from '../support/oauth-clients.ts'

/** Next hops, whose mail is spread over the nodes. */
const HOPS = Array.from({ length: 8 }, (_, n) => `smtp${n}.office365.com`)
const USER = 'app@contoso.example'

interface Node {
  readonly relay: Relay
  readonly port: number
  /** Outcomes of its attempts. */
  readonly outcomes: string[]
  stop(): Promise<void>
}

/** Starts a relay on a queue that it shares, in the network and the time of a world. */
async function startNode(world: World, queue: MemoryQueue, index: number, refreshToken: string): Promise<Node> {
  const port = 2600 + index
  const settings = {
    smtpd_listen: `127.0.0.1:${port}`,
    transport_maps: Object.fromEntries(HOPS.map((hop, n) => [`far${n}.example`, `smtp:[${hop}]:587`])),
    smtp_tls_security_level: 'encrypt',
    smtp_sasl_oauth: 'm365',
    oauth: {
      m365: { provider: 'microsoft', tenant: 'contoso.example', grant: 'refresh_token', client_id: 'app', refresh_token_file: '/file' },
    },
  }
  const { config, written } = configFrom(settings, `n${index}.example`)
  const { store, nodes } = joinMemoryQueue(queue, { name: `n${index}`, now: () => world.clock.now() })
  const outcomes: string[] = []
  const life = new Incarnation({
    clock: world.clock,
    net: world.net,
    store,
    onEvent: (event) => {
      if (event.kind === 'attempted') outcomes.push(...event.attempts.map(({ outcome }) => outcome))
    },
  })
  const providers = new ProviderDirectory()
  const member = new Member({ nodes, clock: life.clock, keys: new ShardKeys(providers), lease: 5 * MINUTE, onEvent: () => undefined })
  const clients = new Map([...config.oauth].map(([name, table]) => [name, oauthClient(table, { ca: WORLD_CA, refreshToken })]))
  const relay = new Relay({
    config,
    templates: loadTemplates({ config, written }).templates,
    clock: life.clock,
    net: life.net,
    store: life.store,
    events: life.events,
    random: seededRandom(index),
    providers,
    membership: member,
    secrets: { passwords: HOPS.map((hop) => `[${hop}]:587 ${USER}:\n`).join(''), tls: { ca: WORLD_CA }, oauth: clients },
  })
  await relay.listen()
  await relay.start()
  void member.start()
  const stop = async (): Promise<void> => {
    await relay.stop(0)
    member.stop()
    life.die()
  }
  return { relay, port, outcomes, stop }
}

/** A transport to a node, in the network of the world. */
const transportTo = (world: World, port: number): ReturnType<World['transport']> => ({
  ...world.transport(),
  getSocket: (_options, callback) => {
    world.net.dialFrom('127.0.0.1', { address: '127.0.0.1', port }).then(
      (connection) => callback(null, { connection }),
      (error: unknown) => callback(error as Error),
    )
  },
})

test('two nodes deliver mail for three hours with one request per lifetime of an access token', async () => {
  await using world = await createWorld()
  const authority = world.authority({ clients: { app: {} }, rotates: 'strict', lifetime: '1h' })
  for (const hop of HOPS) authority.protects(hop)
  const refreshToken = authority.logIn('app', USER)
  const queue = emptyQueue()
  const nodes = [await startNode(world, queue, 1, refreshToken), await startNode(world, queue, 2, refreshToken)]
  // Until the nodes have divided the shards.
  await world.advance('30m')
  const to: string[] = []
  for (let round = 0; round < 18; round++) {
    for (const { port } of nodes) {
      to.push(`to${to.length}@far${to.length % HOPS.length}.example`)
      await createTransport(transportTo(world, port)).sendMail({ from: USER, to: to.at(-1), text: 'hi' })
    }
    await world.advance('10m')
  }
  expect(to.filter((address) => world.mailbox(address).mails().length !== 1)).toEqual([])
  for (const { outcomes } of nodes) {
    expect(outcomes.length).toBeGreaterThan(5)
    expect(new Set(outcomes)).toEqual(new Set(['delivered']))
  }
  // The first, then one at 80 % of each lifetime, of whichever node.
  const requests = authority.requests()
  expect(requests.map(({ status, at }) => [status, Math.floor((at - (requests[0]?.at ?? 0)) / 60)])).toEqual([
    [200, 0],
    [200, 48],
    [200, 96],
    [200, 144],
  ])
  expect(nodes.flatMap(({ relay }) => relay.accessTokens.states().map(({ problem }) => problem))).toEqual([null, null])
  for (const node of nodes) await node.stop()
})
