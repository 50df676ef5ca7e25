/** The nodes that share the queue, and the questions before one is drained or removed. */
import { SHARED_TITLES } from '../../../config/values/queue-place.ts'
import type { NodeJson, NodesJson } from '../../../resources/node-json.ts'
import { drainTrouble, nodeTrouble } from '../../../resources/node-trouble.ts'
import { asCommand } from '../../markup/command-lines.ts'
import { questionPanel } from '../../markup/question-panel.ts'
import { answer, buttonLink, heading, type Screen } from '../../markup/frame.ts'
import { html, joined, type Html, type Part } from '../../../presentation/html.ts'
import { linkTo } from '../../markup/links.ts'
import { hintPart, marked, shapeOf } from '../../markup/marks.ts'
import { table, type Column } from '../../markup/html-table.ts'
import { renewed } from '../../markup/renewed.ts'
import { count, distance, plural, span } from '../../markup/times.ts'
import type { View } from '../../markup/view.ts'

const STATES: Readonly<Record<NodeJson['state'], readonly [mark: string, about: string]>> = {
  active: ['open', 'accepts and delivers mail'],
  draining: ['suspended', 'hands its destinations over to the other nodes, and begins no new deliveries'],
  silent: ['warning', 'without a sign of life for node_lease'],
  lost: ['dead', 'taken over by another node, until a node of its name joins or it is removed'],
}

/** The state of a node with its meaning. */
export const nodeMark = (state: NodeJson['state']): Html => marked(STATES[state][0], state, STATES[state][1])

const nodePlace = (name: string): string => `nodes/${encodeURIComponent(name)}`

const live = ({ name }: NodeJson, member: string, text: string, form: 'count' | 'span' = 'count'): Html =>
  html`<span data-live="nodes/${encodeURIComponent(name)}/${member}" data-form="${form}">${text}</span>`

/** The action that a node in its state may need. */
function actionOf(view: View, { name, state }: NodeJson): Part {
  const { mayOperate, mayAdminister } = view.requester
  const link = (verb: NodeVerb): Html => buttonLink(linkTo(view, `${nodePlace(name)}/${verb}`), `${VERBS[verb].button}…`, 'small')
  switch (state) {
    case 'active':
      return mayOperate ? link('drain') : null
    case 'draining':
      return mayOperate ? link('undrain') : null
    case 'lost':
      return mayAdminister ? link('forget') : null
    case 'silent':
      return null
  }
}

/** `0.9.0, equal`; the settings of a lost node are not known. */
const settingsPart = ({ state, version, differing_settings: names }: NodeJson): Part =>
  state === 'lost' ? version : names.length === 0 ? `${version}, equal` : `${version}, differ: ${names.join(', ')}`

const columnsOf = (view: View): readonly Column<NodeJson>[] => [
  {
    heading: 'Node',
    isTitle: true,
    cell: ({ name, answers }) => html`${name}${answers ? html` <span class="faint">answers this page</span>` : null}`,
  },
  { heading: 'State', cell: ({ state }) => nodeMark(state) },
  { heading: 'Shards', kind: 'number', cell: (one) => live(one, 'shards', count(one.shards)) },
  { heading: 'Active queue', kind: 'number', cell: (one) => live(one, 'leased', count(one.leased)) },
  {
    heading: 'Deliveries',
    kind: 'number',
    cell: (one) =>
      one.deliveries === null
        ? '–'
        : html`${live(one, 'deliveries/in_flight', count(one.deliveries.in_flight))}/${count(one.deliveries.limit)}`,
  },
  { heading: 'Last seen', cell: (one) => html`${live(one, 'beat_age', span(one.beat_age * 1_000), 'span')} ago` },
  { heading: 'Joined', cell: ({ joined: at }) => distance(view, at) },
  { heading: 'Version, settings', kind: 'reply', cell: settingsPart },
  { heading: 'Action', label: '', kind: 'actions', cell: (one) => actionOf(view, one) },
]

/** Sentences about the nodes that have failed, and about a drain of all. */
const troublesOf = (nodes: readonly NodeJson[]): Html => {
  const items = [drainTrouble(nodes), ...nodes.map(nodeTrouble)].flatMap((trouble) => {
    return trouble === null
      ? []
      : [
          html`<li>
            ${shapeOf('warning')}
            <div class="what">${trouble.text}${hintPart(trouble.hint)}</div>
          </li>`,
        ]
  })
  return html`<div${renewed('troubles')}>${
    items.length === 0
      ? null
      : html`<ul class="attention">
          ${items}
        </ul>`
  }</div>`
}

function sentenceOf(view: View, nodes: readonly NodeJson[], lease: number): Html {
  const failed = nodes.filter((one) => nodeTrouble(one) !== null)
  const running = nodes.length - failed.length
  const drained = nodes.flatMap(({ name, state }) => (state === 'draining' ? [name] : []))
  const drains =
    drained.length === 0 ? '' : ` ${drained.join(', ')} ${drained.length === 1 ? 'drains, and takes' : 'drain, and take'} no new mail.`
  const names = joined(
    failed.map(({ name }) => html`${name}`),
    ', ',
  )
  return answer(
    failed.length === 0
      ? `${plural(running, 'node')} ${running === 1 ? 'has' : 'share'} the queue, and ${running === 1 ? 'is' : 'all of them are'} alive.${drains}`
      : html`${plural(running, 'node')} of ${count(nodes.length)} ${running === 1 ? 'is' : 'are'} alive; ${names} failed.${drains}`,
    `A node without a sign of life for ${span(lease * 1_000)} (node_lease) is taken over by the others. This page comes from ${view.node ?? view.relay}.`,
  )
}

export const nodesScreen = (view: View, { nodes, lease }: NodesJson): Screen => ({
  title: 'Nodes',
  place: 'nodes',
  live: nodes === null ? null : { path: 'api/v1/nodes' },
  main: html`${heading('Nodes', 'The daemons that share this queue.')}
  ${
    nodes === null
      ? html`<div class="empty">
          This queue is in a folder of ${view.relay}, and has one daemon. A queue in ${SHARED_TITLES} may have several nodes.
        </div>`
      : html`${sentenceOf(view, nodes, lease ?? 0)} ${troublesOf(nodes)}
        ${table({ caption: 'Nodes', columns: columnsOf(view), rows: nodes, kind: 'nodes action-below', renewedBy: ({ name }) => name, empty: 'No node has joined the queue.' })}`
  }
  ${asCommand(['node', 'list'], { method: 'GET', path: 'api/v1/nodes' })}`,
})

export type NodeVerb = 'drain' | 'undrain' | 'forget'

const VERBS: Readonly<Record<NodeVerb, { readonly button: string; readonly about: string }>> = {
  drain: {
    button: 'Drain',
    about:
      'It gives its destinations to the other nodes, those in delivery when their deliveries end, and refuses new mail with 421. It can be undrained.',
  },
  undrain: { button: 'Undrain', about: 'It takes its share of the destinations and new mail again.' },
  forget: {
    button: 'Forget',
    about:
      'It is listed as lost no more. Subscriptions that only its configuration had are removed. When its daemon starts again, it joins as before.',
  },
}

const ABOUT_LAST =
  'No other node is active: no mail is accepted and none is delivered until a node is undrained. Mail in the queue stays there.'

/** The question before a change of a node. */
export const nodeQuestion = (view: View, name: string, verb: NodeVerb, nodes: readonly NodeJson[]): Screen => {
  const { button, about } = VERBS[verb]
  const isLast = verb === 'drain' && nodes.every((one) => one.name === name || one.state !== 'active')
  const path = `api/v1/nodes/${encodeURIComponent(name)}`
  return questionPanel({
    place: 'nodes',
    question: `${button} ${name}?`,
    about: isLast ? ABOUT_LAST : about,
    action: linkTo(view, `${nodePlace(name)}/${verb}`),
    button: `${button} ${name}`,
    back: linkTo(view, 'nodes'),
    words: ['node', verb, name],
    call: verb === 'forget' ? { method: 'DELETE', path } : { method: 'POST', path: `${path}/${verb}` },
  })
}
