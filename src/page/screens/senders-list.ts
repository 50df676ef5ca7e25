/** The senders with the most messages of a filter, and the operations on the mail of each. */
import { bar } from '../markup/charts.ts'
import { section } from '../markup/frame.ts'
import { table, type Column } from '../markup/html-table.ts'
import { html, type Html } from '../../presentation/html.ts'
import { linkTo, type Query } from '../markup/links.ts'
import { count } from '../markup/times.ts'
import type { View } from '../markup/view.ts'
import { selectionLinks } from './selection-links.ts'

export interface SendersValue {
  readonly counted: number
  readonly at_least: boolean
  readonly senders: readonly SenderCount[]
}

interface SenderCount {
  readonly sender: string
  readonly messages: number
}

/** A sender as a condition of a filter. Null when no filter selects only its mail: a `*` in a filter matches any text. */
function conditionOf(sender: string): string | null {
  if (sender.includes('*')) return null
  return sender === 'MAILER-DAEMON' ? '<>' : sender
}

const ofHowMany = ({ counted, at_least: isAtLeast }: SendersValue): string =>
  `of ${isAtLeast ? `the first ${count(counted)}` : count(counted)}`

function senderLink(view: View, sender: string, conditions: Query): Html {
  const condition = conditionOf(sender)
  const address = html`<span class="address">${sender}</span>`
  return condition === null ? address : html`<a href="${linkTo(view, 'messages', { ...conditions, sender: condition })}">${address}</a>`
}

function operationsOn(view: View, sender: string, destination: string): Html {
  const condition = conditionOf(sender)
  return condition === null
    ? html`<span class="faint">no filter selects only this sender: * matches any text</span>`
    : selectionLinks(view, { destination, sender: condition }, `destinations/${encodeURIComponent(destination)}`)
}

export function senderList(view: View, senders: SendersValue | null, conditions: Query): Html | null {
  if (senders === null || senders.senders.length === 0) return null
  return html`<section class="senders">
    <h2>Senders <span class="faint">${ofHowMany(senders)}</span></h2>
    <ol>
      ${senders.senders.map(
        ({ sender, messages }) =>
          html`<li>
            ${senderLink(view, sender, conditions)}
            <span class="figure">${count(messages)}</span>${bar(messages / Math.max(1, senders.counted))}
          </li>`,
      )}
    </ol>
  </section>`
}

export function sendersSection(view: View, senders: SendersValue | null, destination: string): Html | null {
  if (senders === null || senders.senders.length === 0) return null
  const columns: readonly Column<SenderCount>[] = [
    { heading: 'Sender', isTitle: true, cell: ({ sender }) => html`<span class="address">${sender}</span>` },
    {
      heading: 'Messages',
      kind: 'number',
      cell: ({ messages }) => html`${count(messages)}${bar(messages / Math.max(1, senders.counted), 'warn')}`,
    },
    {
      heading: 'These',
      kind: 'actions',
      cell: ({ sender }) => operationsOn(view, sender, destination),
    },
  ]
  return section('Whose mail waits', table({ caption: 'Senders', columns, rows: senders.senders, empty: '', kind: 'senders-table' }), {
    aside: `${ofHowMany(senders)} ${senders.counted === 1 ? 'message' : 'messages'}`,
  })
}
