/** The settings that differ from their defaults, and those in which the nodes of the queue differ. */
import { CHANGED_BY_RESTART } from '../../../config/fixed-parameters.ts'
import type { BetweenNodesJson, SettingsJson } from '../../../resources/settings-json.ts'
import { asCommand } from '../../markup/command-lines.ts'
import { heading, section, type Screen } from '../../markup/frame.ts'
import { html, type Html, type Part } from '../../../presentation/html.ts'
import { table, type Column } from '../../markup/html-table.ts'
import { linkTo } from '../../markup/links.ts'
import { shapeOf } from '../../markup/marks.ts'
import type { View } from '../../markup/view.ts'
import { breakable } from '../../markup/long-words.ts'

const valuePart = (value: string | null): Part =>
  value === null || value === ''
    ? html`<span class="faint">${value === null ? 'not set' : 'empty'}</span>`
    : html`<code>${breakable(value)}</code>`

type Differing = BetweenNodesJson['differing'][number]

const betweenColumns: readonly Column<Differing>[] = [
  { heading: 'Setting', isTitle: true, cell: ({ name }) => breakable(name) },
  {
    heading: 'Values',
    kind: 'code',
    cell: ({ values }) =>
      html`<ul>
        ${values.map(({ node, value }) => html`<li>${node}: ${valuePart(value)}</li>`)}
      </ul>`,
  },
  { heading: 'Default', kind: 'code', cell: ({ default: initial }) => valuePart(initial) },
]

function betweenNodes(view: View, { differing, unanswered }: BetweenNodesJson): Html {
  return section(
    'Between nodes',
    html`${
      unanswered.length === 0
        ? null
        : html`<p>${shapeOf('warning')} No answer within a second from ${unanswered.join(', ')}, which are not compared.</p>`
    }
    ${table({
      caption: 'Settings in which the nodes differ',
      columns: betweenColumns,
      rows: differing,
      kind: 'settings',
      empty: 'The nodes have the same settings of delivery, retries, notices and limits.',
    })}`,
    { aside: html`<a href="${linkTo(view, 'nodes')}">Nodes</a>` },
  )
}

type Parameter = SettingsJson['parameters'][number]

const parameterColumns: readonly Column<Parameter>[] = [
  { heading: 'Parameter', isTitle: true, cell: ({ name }) => breakable(name) },
  { heading: 'Value', kind: 'code', cell: ({ value }) => valuePart(value) },
  { heading: 'Default', kind: 'code', cell: ({ default: initial }) => valuePart(initial) },
  { heading: 'Set in', kind: 'code', cell: ({ where }) => html`<code>${where}</code>` },
]

interface Member {
  readonly table: string
  readonly name: string
  readonly value: string
}

const memberColumns: readonly Column<Member>[] = [
  { heading: 'Table', isTitle: true, cell: ({ table: name }) => breakable(name) },
  { heading: 'Member', cell: ({ name }) => breakable(name) },
  { heading: 'Value', kind: 'code', cell: ({ value }) => valuePart(value) },
]

/** The members of all tables of the configuration, in the order of the file. */
function membersOf({ transports, ...settings }: SettingsJson): readonly Member[] {
  const { destinations, providers, dkim, events, oauth, schedules, quotas, classes } = settings
  const kinds = { destination: destinations, provider: providers, dkim, events, oauth, schedule: schedules, quota: quotas, class: classes }
  const headed = Object.entries(kinds).flatMap(([kind, tables]) =>
    Object.entries(tables).map(([name, members]) => [`${kind}.${JSON.stringify(name)}`, members] as const),
  )
  return [['transport_maps', transports] as const, ...headed].flatMap(([name, members]) =>
    Object.entries(members).map(([member, value]) => ({ table: name, name: member, value })),
  )
}

export function settingsScreen(view: View, settings: SettingsJson): Screen {
  const { file, parameters, between_nodes: between } = settings
  const members = membersOf(settings)
  return {
    title: 'Settings',
    place: 'settings',
    main: html`${heading(
      'Settings',
      file === null
        ? 'No configuration file was read.'
        : `Read from ${file}. A change there has its effect after deferd reload; after a restart, that of ${CHANGED_BY_RESTART.join(', ')}.`,
    )}
    ${between === null ? null : betweenNodes(view, between)}
    ${section(
      'Differ from the default',
      table({
        caption: 'Parameters that differ from their defaults',
        columns: parameterColumns,
        rows: parameters.filter((one) => one.differs),
        kind: 'settings',
        empty: 'All parameters have their defaults.',
      }),
      { aside: view.node === undefined ? null : `of the node ${view.node}` },
    )}
    ${members.length === 0 ? null : section('Tables', table({ caption: 'Members of tables', columns: memberColumns, rows: members, kind: 'settings', empty: '' }))}
    ${asCommand(['config', '-n'], { method: 'GET', path: 'api/v1/settings' })}`,
  }
}
