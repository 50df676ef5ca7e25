/** Nodes that share a queue, in JSON. */
import { z } from 'zod'
import type { OwnerId } from '../mail/message.ts'
import type { DeliverySlots } from '../store/destination-status.ts'
import type { ListedNode, LostNode } from '../store/membership/node-directory.ts'
import { SECOND } from '../system/clock.ts'
import type { WallView } from '../system/wall-view.ts'
import { count, time, type Json } from './members.ts'

const nodeShape = z.object({
  node: z.int().describe('number of the process'),
  name: z.string(),
  state: z
    .enum(['active', 'draining', 'silent', 'lost'])
    .describe(
      'silent: without a beat for node_lease, as the node that answers has seen it; lost: taken over by another node, until a node of the name joins or is forgotten',
    ),
  answers: z.boolean().describe('true for the node that answers this request'),
  shards: count.describe('of the 256 shards of destinations'),
  leased: count.describe('recipients in the active queue'),
  deliveries: z
    .object({ in_flight: count, limit: count.describe('default_process_limit') })
    .nullable()
    .describe('delivery slots; null for a node that does not answer within a second'),
  beat_age: z.number().describe('seconds since the last sign of life'),
  lost: z
    .object({ time, taken_over_by: z.string(), shards: count, recipients: count.describe('that it had in its active queue') })
    .nullable()
    .describe('null unless the state is lost'),
  settings_differ: z.boolean().describe('settings of delivery differ from those of most nodes'),
  differing_settings: z.array(z.string()).describe('names of the settings that differ from those of most nodes'),
  version: z.string(),
  joined: time,
})

export type NodeJson = Json<typeof nodeShape>

export const nodesShape = z
  .object({
    nodes: z.array(nodeShape).nullable(),
    lease: z.number().nullable().describe('node_lease of the node that answers, in seconds'),
  })
  .meta({ id: 'Nodes' })
export type NodesJson = Json<typeof nodesShape>

export const forgottenNodesShape = z
  .object({
    forgotten: z.array(z.object({ name: z.string(), node: z.int().describe('number of the process'), shards: count, recipients: count })),
  })
  .meta({ id: 'ForgottenNodes' })
export type ForgottenNodesJson = Json<typeof forgottenNodesShape>

/** The settings of most nodes; with as many of each, those of the oldest node. */
function usualSettings(nodes: readonly ListedNode[]): string {
  const bySettings = [...Map.groupBy(nodes, ({ settings }) => settings).values()]
  const oldest = (group: readonly ListedNode[]): number => Math.min(...group.map(({ id }) => id))
  const [usual] = bySettings.toSorted((a, b) => b.length - a.length || oldest(a) - oldest(b))
  return usual?.[0]?.settings ?? '{}'
}

/** Empty for a node of a version that wrote one hash of all settings. */
const hashesOf = (settings: string): ReadonlyMap<string, string> =>
  new Map(settings.startsWith('{') ? Object.entries(JSON.parse(settings) as Record<string, string>) : [])

/** Names of the settings that have another value, or stand in one of both only. */
function differing(settings: string, usual: string): readonly string[] {
  if (settings === usual) return []
  const [own, others] = [hashesOf(settings), hashesOf(usual)]
  return [...new Set([...own.keys(), ...others.keys()])].filter((name) => own.get(name) !== others.get(name)).toSorted()
}

/** Names of the settings in which nodes differ. */
export function settingsThatDiffer(nodes: readonly ListedNode[]): readonly string[] {
  const usual = usualSettings(nodes)
  return [...new Set(nodes.flatMap(({ settings }) => differing(settings, usual)))].toSorted()
}

/** Nodes as the queue and their processes have them. */
export interface NodeFacts {
  readonly nodes: readonly ListedNode[]
  readonly lost: readonly LostNode[]
  /** True for a node without a sign of life. */
  readonly isSilent: (node: ListedNode) => boolean
  /** The node that answers; null for a command, which asks the database. */
  readonly me: OwnerId | null
  /** Delivery slots of the nodes that answer in time. */
  readonly slots: ReadonlyMap<OwnerId, DeliverySlots>
}

/** State of a node that was not taken over. */
export const stateOf = ({ draining }: Pick<ListedNode, 'draining'>, isSilent: boolean): 'silent' | 'draining' | 'active' =>
  isSilent ? 'silent' : draining ? 'draining' : 'active'

/** The nodes by name. A lost node has no settings that could differ. */
export function nodesJson({ nodes, lost, isSilent, me, slots }: NodeFacts, wall: WallView): readonly NodeJson[] {
  const usual = usualSettings(nodes)
  const running = nodes.map((one): NodeJson => {
    const { id, name, beatAge, shards, leased, program, joinedAt, settings } = one
    const used = slots.get(id)
    return {
      node: id,
      name,
      state: stateOf(one, isSilent(one)),
      answers: id === me,
      shards,
      leased,
      deliveries: used === undefined ? null : { in_flight: used.inFlight, limit: used.limit },
      beat_age: beatAge / SECOND,
      lost: null,
      settings_differ: settings !== usual,
      differing_settings: differing(settings, usual),
      version: program,
      joined: wall.seconds(joinedAt),
    }
  })
  return [...running, ...lost.map((one) => lostJson(one, wall))].toSorted((a, b) => (a.name < b.name ? -1 : Number(a.name > b.name)))
}

const lostJson = ({ id, name, beatAge, program, joinedAt, lostAt, taker, shards, recipients }: LostNode, wall: WallView): NodeJson => ({
  node: id,
  name,
  state: 'lost',
  answers: false,
  shards: 0,
  leased: 0,
  deliveries: null,
  beat_age: beatAge / SECOND,
  lost: { time: wall.seconds(lostAt), taken_over_by: taker, shards, recipients },
  settings_differ: false,
  differing_settings: [],
  version: program,
  joined: wall.seconds(joinedAt),
})
