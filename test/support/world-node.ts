/** A relay on a queue in memory that several nodes may share, in the network and the time of a world. */
import { loadTemplates } from '../../src/bounce/templates.ts'
import { configFrom } from '../../src/config/load.ts'
import { ProviderDirectory } from '../../src/config/provider-directory.ts'
import type { Config } from '../../src/config/options.ts'
import { Relay } from '../../src/relay/relay.ts'
import { Member } from '../../src/store/membership/member.ts'
import type { NodeTable } from '../../src/store/membership/node-table.ts'
import { ShardKeys } from '../../src/store/membership/shard-keys.ts'
import type { MemoryQueue } from '../../src/store/memory/queue-state.ts'
import { SECOND, type Duration } from '../../src/system/clock.ts'
import { seededRandom } from '../../src/system/random.ts'
import type { QueueEvent } from '../../src/telemetry/events.ts'
import type { World } from '../../src/testkit/index.ts'
import { Incarnation } from '../../src/testkit/virtual/incarnation.ts'
import { joinMemoryQueue } from './memory-node-table.ts'

interface WorldNodeOptions {
  /** Parameter `myhostname`, and name of the node. */
  readonly hostname: string
  /** SMTP port on 127.0.0.1. */
  readonly port: number
  readonly settings?: Parameters<typeof configFrom>[0]
  readonly lease?: Duration
  readonly secrets?: (config: Config) => ConstructorParameters<typeof Relay>[0]['secrets']
  readonly onEvent?: (event: QueueEvent) => void
}

export interface WorldNode {
  readonly relay: Relay
  readonly member: Member
  readonly nodes: NodeTable
  /** A transport to the node. */
  transport(): ReturnType<World['transport']>
  stop(): Promise<void>
}

export async function startWorldNode(
  world: World,
  queue: MemoryQueue,
  { hostname, port, settings = {}, lease = 5 * SECOND, secrets, onEvent = () => undefined }: WorldNodeOptions,
): Promise<WorldNode> {
  const { config, written } = configFrom({ smtpd_listen: `127.0.0.1:${port}`, ...settings }, hostname)
  const { store, nodes } = joinMemoryQueue(queue, { name: hostname, hostname, now: () => world.clock.now() })
  const life = new Incarnation({ clock: world.clock, net: world.net, store, onEvent })
  const providers = new ProviderDirectory()
  const member = new Member({ nodes, clock: life.clock, keys: new ShardKeys(providers), lease, onEvent: () => undefined })
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
    secrets: secrets?.(config),
  })
  await relay.listen()
  await relay.start()
  void member.start()
  return {
    relay,
    member,
    nodes,
    transport: () => ({
      ...world.transport(),
      getSocket: (_options, callback) => {
        world.net.dialFrom('127.0.0.1', { address: '127.0.0.1', port }).then(
          (connection) => callback(null, { connection }),
          (error: unknown) => callback(error as Error),
        )
      },
    }),
    stop: async () => {
      await relay.stop(0)
      member.stop()
      life.die()
    },
  }
}
