/** The nodes of a shared queue as a table, and one of them in full. Pure. */
import { grouped, instantOf, localTime, maskControls, relative, span } from '../../presentation/text.ts'
import type { NodeJson } from '../../resources/node-json.ts'
import { SECOND, type Clock } from '../../system/clock.ts'
import type { Display, Role } from './style.ts'
import { columnsFor, tableHeading, tableRow } from './table.ts'

const ROLES: Readonly<Record<NodeJson['state'], Role>> = { active: 'good', draining: 'waiting', silent: 'bad' }

const HEADINGS = ['NODE', 'STATE', 'SHARDS', 'LEASED', 'BEAT', 'UP', 'VERSION', 'NUMBER']

const beatText = ({ beat_age: age }: NodeJson): string => `${span(age * SECOND, 1)} ago`

/** The table. Differing settings are named below it. */
export function nodeTable(nodes: readonly NodeJson[], clock: Clock, display: Display): string {
  if (nodes.length === 0) return 'No node has joined the queue.\n'
  const rows = nodes.map((one) => {
    const figures = [grouped(one.shards), grouped(one.leased), beatText(one), span(clock.wall.now() - instantOf(one.joined))]
    return [one.name, [one.state, ROLES[one.state]] as const, ...figures, one.version, String(one.node)]
  })
  const columns = columnsFor(HEADINGS, rows, display)
  const names = nodes.filter((one) => one.settings_differ).map(({ name }) => name)
  const warning = names.length === 0 ? '' : `Settings of delivery differ from those of the other nodes: ${maskControls(names.join(', '))}\n`
  return `${[tableHeading(columns, display), ...rows.map((row) => tableRow(row, columns, display))].join('\n')}\n${warning}`
}

/** `settings` is the fingerprint of the settings of delivery. */
export function nodeScreen(one: NodeJson, settings: string, clock: Clock): string {
  const joined = instantOf(one.joined)
  const facts: readonly (readonly [string, string])[] = [
    ['state', one.state],
    ['number', String(one.node)],
    ['version', one.version],
    ['joined', `${localTime(joined, clock)} (${relative(joined, clock.wall.now())})`],
    ['last beat', beatText(one)],
    ['shards', grouped(one.shards)],
    ['leased', `${grouped(one.leased)} recipients in the active queue`],
    ['settings', one.settings_differ ? `${settings}, which differ from those of the other nodes` : settings],
  ]
  return [one.name, ...facts.map(([name, value]) => `  ${name.padEnd(12)}${value}`)].map((line) => `${maskControls(line)}\n`).join('')
}
