/** Nodes that share a queue, in JSON. */
import { z } from 'zod'
import type { ListedNode } from '../store/membership/node-directory.ts'

import { SECOND, type Duration } from '../system/clock.ts'
import type { WallView } from '../system/wall-view.ts'
import { count, time, type Json } from './members.ts'

const nodeShape = z.object({
  node: z.int().describe('number of the process'),
  name: z.string(),
  state: z.enum(['active', 'draining', 'silent']).describe('silent: without a beat for node_lease, so that other nodes take it over'),
  shards: count,
  leased: count.describe('recipients in the active queue'),
  beat_age: z.number().describe('seconds'),
  settings_differ: z.boolean().describe('settings of delivery differ from those of most nodes'),
  version: z.string(),
  joined: time,
})

export type NodeJson = Json<typeof nodeShape>

/** Nodes whose settings differ from those of most nodes; with as many of each, from those of the oldest node. */
function differingNodes(nodes: readonly ListedNode[]): ReadonlySet<number> {
  const bySettings = [...Map.groupBy(nodes, ({ settings }) => settings).values()]
  const oldest = (group: readonly ListedNode[]): number => Math.min(...group.map(({ id }) => id))
  const [usual] = bySettings.toSorted((a, b) => b.length - a.length || oldest(a) - oldest(b))
  return new Set(nodes.filter(({ settings }) => settings !== usual?.[0]?.settings).map(({ id }) => id))
}

/** `lease` is the parameter node_lease. */
export function nodesJson(nodes: readonly ListedNode[], lease: Duration, wall: WallView): readonly NodeJson[] {
  const differing = differingNodes(nodes)
  return nodes.map(({ id, name, beatAge, draining, shards, leased, program, joinedAt }) => ({
    node: id,
    name,
    state: beatAge > lease ? 'silent' : draining ? 'draining' : 'active',
    shards,
    leased,
    beat_age: beatAge / SECOND,
    settings_differ: differing.has(id),
    version: program,
    joined: wall.seconds(joinedAt),
  }))
}
