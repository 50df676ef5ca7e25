/** The nodes of a shared queue as a table, and one of them in full. Pure. */
import { grouped, instantOf, localTime, maskControls, plural, relative, span } from '../../presentation/text.ts'
import type { NodeJson } from '../../resources/node-json.ts'
import type { BetweenNodesJson } from '../../resources/settings-json.ts'
import { SECOND, type Clock } from '../../system/clock.ts'
import type { Display, Role } from './style.ts'
import { columnsFor, tableHeading, tableRow } from './table.ts'

const ROLES: Readonly<Record<NodeJson['state'], Role>> = { active: 'good', draining: 'waiting', silent: 'bad', lost: 'bad' }

const HEADINGS = ['NODE', 'STATE', 'SHARDS', 'LEASED', 'SLOTS', 'BEAT', 'UP', 'VERSION', 'NUMBER']

const beatText = ({ beat_age: age }: NodeJson): string => `${span(age * SECOND, 1)} ago`

const settingsText = ({ differing_settings: names }: NodeJson): string => maskControls(names.join(', '))

const slotsOf = ({ deliveries }: NodeJson): string =>
  deliveries === null ? '-' : `${grouped(deliveries.in_flight)}/${grouped(deliveries.limit)}`

/** The table. Differing settings are named below it. */
export function nodeTable(nodes: readonly NodeJson[], clock: Clock, display: Display): string {
  if (nodes.length === 0) return 'No node has joined the queue.\n'
  const rows = nodes.map((one) => {
    const figures = [grouped(one.shards), grouped(one.leased), slotsOf(one), beatText(one), span(clock.wall.now() - instantOf(one.joined))]
    return [one.name, [one.state, ROLES[one.state]] as const, ...figures, one.version, String(one.node)]
  })
  const columns = columnsFor(HEADINGS, rows, display)
  const warnings = nodes
    .filter((one) => one.settings_differ)
    .map((one) => `Settings of ${maskControls(one.name)} differ from those of the other nodes: ${settingsText(one)}\n`)
  return `${[tableHeading(columns, display), ...rows.map((row) => tableRow(row, columns, display))].join('\n')}\n${warnings.join('')}`
}

const lostText = ({ joined }: NodeJson, { time, taken_over_by: taker, shards, recipients }: NonNullable<NodeJson['lost']>): string =>
  `${span((time - joined) * SECOND)} after it joined: ${taker} took ${plural(shards, 'shard')} and ${plural(recipients, 'recipient')} over`

function comparedText(one: NodeJson): string {
  if (one.state === 'lost') return 'unknown: the node is lost'
  return one.settings_differ ? `${settingsText(one)} differ from those of the other nodes` : 'as those of the other nodes'
}

export function nodeScreen(one: NodeJson, clock: Clock): string {
  const joined = instantOf(one.joined)
  const facts: readonly (readonly [string, string])[] = [
    ['state', one.state],
    ['number', String(one.node)],
    ['version', one.version],
    ['joined', `${localTime(joined, clock)} (${relative(joined, clock.wall.now())})`],
    ['last beat', beatText(one)],
    ['shards', grouped(one.shards)],
    ['leased', `${grouped(one.leased)} recipients in the active queue`],
    ['deliveries', one.deliveries === null ? 'unknown: the node does not answer' : `${slotsOf(one)} slots in use`],
    ...(one.lost === null ? [] : [['lost', lostText(one, one.lost)] as const]),
    ['settings', comparedText(one)],
  ]
  return [one.name, ...facts.map(([name, value]) => `  ${name.padEnd(12)}${value}`)].map((line) => `${maskControls(line)}\n`).join('')
}

/** The settings in which nodes differ, each with the value of every node. */
export function settingsTexts({ differing, unanswered }: BetweenNodesJson): readonly string[] {
  const width = Math.max(0, ...differing.flatMap(({ values }) => values.map(({ node }) => node.length)))
  return [
    ...(differing.length === 0 ? ['The nodes that answered have the same settings.'] : []),
    ...differing.flatMap(({ name, default: initial, values }) => [
      `${name}${initial === null ? '' : ` (default: ${initial === '' ? 'empty' : initial})`}`,
      ...values.map(({ node, value }) => `  ${node.padEnd(width)}  ${value ?? 'not set'}`),
    ]),
    ...(unanswered.length === 0 ? [] : [`No answer within a second from: ${unanswered.join(', ')}`]),
  ]
}
