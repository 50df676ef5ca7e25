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
  differing_settings: z.array(z.string()).describe('names of the settings that differ from those of most nodes'),
  version: z.string(),
  joined: time,
})

export type NodeJson = Json<typeof nodeShape>

export const nodesShape = z.object({ nodes: z.array(nodeShape).nullable() }).meta({ id: 'Nodes' })
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

/** `lease` is the parameter node_lease. */
export function nodesJson(nodes: readonly ListedNode[], lease: Duration, wall: WallView): readonly NodeJson[] {
  const usual = usualSettings(nodes)
  return nodes.map(({ id, name, beatAge, draining, shards, leased, program, joinedAt, settings }) => ({
    node: id,
    name,
    state: beatAge > lease ? 'silent' : draining ? 'draining' : 'active',
    shards,
    leased,
    beat_age: beatAge / SECOND,
    settings_differ: settings !== usual,
    differing_settings: differing(settings, usual),
    version: program,
    joined: wall.seconds(joinedAt),
  }))
}
