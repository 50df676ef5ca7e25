/** The senders with the most messages of a filter, and the operations on the mail of each. */
import { bar } from '../markup/charts.ts'
import { section } from '../markup/frame.ts'
import { table, type Column } from '../markup/html-table.ts'
import { html, type Html } from '../../presentation/html.ts'
import { linkTo, type Query } from '../markup/links.ts'
import type { SendersJson } from '../../resources/senders-json.ts'
import { clockTime, count, messages, plural } from '../markup/times.ts'
import { countingNotice } from './counting-screen.ts'
import type { View } from '../markup/view.ts'
import { selectionLinks } from './selection-links.ts'
import { addressPart } from '../markup/long-words.ts'

type SenderCount = SendersJson['senders'][number]

/** Maximum number of senders that a screen shows. */
export const SENDERS_SHOWN = 5

/** A sender as a condition of a filter. Null when no filter selects only its mail: a `*` in a filter matches any text. */
function conditionOf(sender: string): string | null {
  if (sender.includes('*')) return null
  return sender === 'MAILER-DAEMON' ? '<>' : sender
}

/** `5 of 1,204 senders, of all 9,898 messages, as of 10:02` */
const ofAll = (view: View, { senders, senders_counted: counted, messages: total, as_of: at }: SendersJson): Html =>
  html`${count(senders.length)} of ${plural(counted, 'sender')}, of all ${messages(total)}, as of ${clockTime(view, at)}`

const COUNTING = 'The senders are being counted, which takes some seconds with much mail; they follow by themselves.'

function senderLink(view: View, sender: string, conditions: Query): Html {
  const condition = conditionOf(sender)
  const address = addressPart(sender)
  return condition === null ? address : html`<a href="${linkTo(view, 'messages', { ...conditions, sender: condition })}">${address}</a>`
}

function operationsOn(view: View, sender: string, destination: string): Html {
  const condition = conditionOf(sender)
  return condition === null
    ? html`<span class="faint">no filter selects only this sender: * matches any text</span>`
    : selectionLinks(view, { destination, sender: condition }, `destinations/${encodeURIComponent(destination)}`)
}

/** Takes the place of a notice that senders are counted. */
const NO_SENDERS = html`<div data-fragment="senders"></div>`

/** The largest senders of a list of messages; `senders` is null while they are counted. */
export function senderList(view: View, senders: SendersJson | null, conditions: Query): Html {
  if (senders?.senders.length === 0) return NO_SENDERS
  return html`<section class="senders" data-fragment="senders">
    <div class="heading">
      <h2>Senders</h2>
      ${senders === null ? null : html`<p class="aside">${ofAll(view, senders)}</p>`}
    </div>
    ${
      senders === null
        ? countingNotice(COUNTING)
        : html`<ol>
            ${senders.senders.map(
              ({ sender, messages: number }) =>
                html`<li>
                  ${senderLink(view, sender, conditions)}
                  <span class="figure">${count(number)}</span>${bar(number / Math.max(1, senders.messages))}
                </li>`,
            )}
          </ol>`
    }
  </section>`
}

/** The largest senders of the mail that waits for a destination; `senders` is null while they are counted. */
export function sendersSection(view: View, senders: SendersJson | null, destination: string): Html {
  if (senders === null) return html`<div data-fragment="senders">${section('Whose mail waits', countingNotice(COUNTING))}</div>`
  if (senders.senders.length === 0) return NO_SENDERS
  const columns: readonly Column<SenderCount>[] = [
    { heading: 'Sender', isTitle: true, cell: ({ sender }) => addressPart(sender) },
    {
      heading: 'Messages',
      kind: 'number',
      cell: ({ messages: number }) => html`${count(number)}${bar(number / Math.max(1, senders.messages), 'warn')}`,
    },
    {
      heading: 'These',
      kind: 'actions',
      cell: ({ sender }) => operationsOn(view, sender, destination),
    },
  ]
  const rows = table({ caption: 'Senders', columns, rows: senders.senders, empty: '', kind: 'senders-table' })
  return html`<div data-fragment="senders">${section('Whose mail waits', rows, { aside: ofAll(view, senders) })}</div>`
}
