/** The nodes of a shared queue as a table, as JSON, and one of them in full. Pure. */
import type { ListedNode } from '../../store/membership/node-directory.ts'
import { SECOND, type Clock, type Duration } from '../../system/clock.ts'
import type { Display, Role } from './style.ts'
import { columnsFor, tableHeading, tableRow } from './table.ts'
import { grouped, localTime, maskControls, relative, span } from '../../presentation/text.ts'

/** `silent`: without a beat for node_lease, so that other nodes take it over. */
export type NodeListState = 'active' | 'draining' | 'silent'

export interface NodeFacts {
  readonly nodes: readonly ListedNode[]
  /** The parameter node_lease. */
  readonly lease: Duration
  readonly clock: Clock
}

const ROLES: Readonly<Record<NodeListState, Role>> = { active: 'good', draining: 'waiting', silent: 'bad' }

export const stateOfNode = ({ beatAge, draining }: Pick<ListedNode, 'beatAge' | 'draining'>, lease: Duration): NodeListState =>
  beatAge > lease ? 'silent' : draining ? 'draining' : 'active'

/** Nodes whose settings differ from those of most nodes; with as many of each, from those of the oldest node. */
export function differingNodes(nodes: readonly ListedNode[]): ReadonlySet<number> {
  const bySettings = [...Map.groupBy(nodes, ({ settings }) => settings).values()]
  const oldest = (group: readonly ListedNode[]): number => Math.min(...group.map(({ id }) => id))
  const [usual] = bySettings.toSorted((a, b) => b.length - a.length || oldest(a) - oldest(b))
  return new Set(nodes.filter(({ settings }) => settings !== usual?.[0]?.settings).map(({ id }) => id))
}

export function nodeJson(node: ListedNode, { nodes, lease, clock }: NodeFacts): object {
  return {
    node: node.id,
    name: node.name,
    state: stateOfNode(node, lease),
    shards: node.shards,
    leased: node.leased,
    beat_age: node.beatAge / SECOND,
    settings_differ: differingNodes(nodes).has(node.id),
    version: node.program,
    joined: clock.wall.seconds(node.joinedAt),
  }
}

const HEADINGS = ['NODE', 'STATE', 'SHARDS', 'LEASED', 'BEAT', 'UP', 'VERSION', 'NUMBER']

/** The table. Differing settings are named below it. */
export function nodeTable({ nodes, lease, clock }: NodeFacts, display: Display): string {
  if (nodes.length === 0) return 'No node has joined the queue.\n'
  const rows = nodes.map((node) => {
    const state = stateOfNode(node, lease)
    const figures = [grouped(node.shards), grouped(node.leased), `${span(node.beatAge, 1)} ago`, span(clock.now() - node.joinedAt)]
    return [node.name, [state, ROLES[state]] as const, ...figures, node.program, String(node.id)]
  })
  const columns = columnsFor(HEADINGS, rows, display)
  const differing = differingNodes(nodes)
  const names = nodes.filter(({ id }) => differing.has(id)).map(({ name }) => name)
  const warning = names.length === 0 ? '' : `Settings of delivery differ from those of the other nodes: ${maskControls(names.join(', '))}\n`
  return `${[tableHeading(columns, display), ...rows.map((row) => tableRow(row, columns, display))].join('\n')}\n${warning}`
}

export function nodeScreen(node: ListedNode, { nodes, lease, clock }: NodeFacts): string {
  const facts: readonly (readonly [string, string])[] = [
    ['state', stateOfNode(node, lease)],
    ['number', String(node.id)],
    ['version', node.program],
    ['joined', `${localTime(clock.wall.of(node.joinedAt), clock)} (${relative(node.joinedAt, clock.now())})`],
    ['last beat', `${span(node.beatAge, 1)} ago`],
    ['shards', grouped(node.shards)],
    ['leased', `${grouped(node.leased)} recipients in the active queue`],
    ['settings', differingNodes(nodes).has(node.id) ? `${node.settings}, which differ from those of the other nodes` : node.settings],
  ]
  return [node.name, ...facts.map(([name, value]) => `  ${name.padEnd(12)}${value}`)].map((line) => `${maskControls(line)}\n`).join('')
}
