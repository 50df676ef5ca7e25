/** The messages that match a filter, with the operations on those that are checked or on all of them. */
import { buttonText } from './operation-screens.ts'
import { OPERATIONS, type OperationName } from '../../queue/operation-request.ts'
import { QUEUE_NAMES } from '../../mail/message.ts'
import type { MessageCountJson, MessagePageJson, PageEntryJson } from '../../resources/message-json.ts'
import { shownQueue } from '../../resources/message-json.ts'
import { asCommand } from '../markup/command-lines.ts'
import { heading, listOr, pager, type Screen } from '../markup/frame.ts'
import { downloads } from '../markup/downloads.ts'
import { choice, field, hidden, rangeField, type FormProblem } from '../markup/fields.ts'
import { fieldText, html, type Html, type Part } from '../../presentation/html.ts'
import { linkTo, messageLink, queryText } from '../markup/links.ts'
import { marked, shapeOf } from '../markup/marks.ts'
import { replyPart } from '../markup/reply.ts'
import { table, type Column } from '../markup/html-table.ts'
import { age, byteSize, count, countUpTo, due } from '../markup/times.ts'
import { instantIn } from '../markup/time-range.ts'
import type { View } from '../markup/view.ts'
import { conditionsOf, describedFilter, FILTER_FIELDS, isAny, optionsOf, type FilterName, type FilterText } from './filter-text.ts'
import { senderList } from './senders-list.ts'
import type { SendersJson } from '../../resources/senders-json.ts'
import { untilCounted } from './counting-screen.ts'
import { addressPart, destinationPart } from '../markup/long-words.ts'

interface MessagesFacts {
  readonly page: Pick<MessagePageJson, 'messages' | 'next'>
  readonly filter: FilterText
  readonly count: MessageCountJson | null
  /** Of a first page of several messages; `counting` while they are counted, null for another page. */
  readonly senders: SendersJson | 'counting' | null
  readonly after: string
  readonly order: MessageOrder
  /** About an invalid value of the filter; null without one. */
  readonly problem: FormProblem | null
}

export const MESSAGE_ORDERS = ['oldest', 'newest'] as const
type MessageOrder = (typeof MESSAGE_ORDERS)[number]

/** The order as a parameter of the query; null for the default order. */
const inQuery = (order: MessageOrder): MessageOrder | null => (order === MESSAGE_ORDERS[0] ? null : order)

/** Fields that are always visible. The others are behind “More conditions”. */
const ALWAYS_VISIBLE: ReadonlySet<FilterName> = new Set([
  'sender',
  'recipient',
  'destination',
  'queue',
  'arrived_after',
  'arrived_before',
  'reply',
])

const filterField = (view: View, filter: FilterText, { name, kind, label, example }: (typeof FILTER_FIELDS)[number]): Html =>
  kind === 'instant'
    ? rangeField(view, { name, label, value: filter[name], at: instantIn(filter[name], view) })
    : kind === 'queue'
      ? choice(label, name, filter[name], [
          { value: '', text: 'any' },
          ...[...QUEUE_NAMES, 'trash'].map((one) => ({ value: one, text: one })),
        ])
      : field({ name, label, value: filter[name], example })

const filterForm = (view: View, { filter }: MessagesFacts): Html => {
  const [shown, more] = [true, false].map((visible) => FILTER_FIELDS.filter(({ name }) => ALWAYS_VISIBLE.has(name) === visible))
  const isOpen = more?.some(({ name }) => filter[name] !== '')
  return html`<form class="filter" action="${linkTo(view, 'messages')}" method="get">
${shown?.map((one) => filterField(view, filter, one))}
<p class="buttons"><button type="submit">Show</button>${isAny(filter) ? null : html` <a href="${linkTo(view, 'messages')}">Clear</a>`}</p>
<details${isOpen ? html` open` : null}><summary>More conditions</summary><div class="more">
${more?.map((one) => filterField(view, filter, one))}
</div></details>
${filter.reply === '' ? null : html`<p class="faint">Replies to the own attempts of a recipient are searched. Mail that waits for a dead destination may have another reply, or none: find it by Destination.</p>`}
</form>`
}

/** Sender and recipients, one below the other. */
function partiesOf({ sender, recipients, recipient_count: total }: PageEntryJson): Html {
  const [first] = recipients
  return html`${addressPart(sender)}<br /><span class="faint">→</span> ${
      first === undefined ? '–' : addressPart(first.address)
    }${total > 1 ? html` <span class="faint">+ ${count(total - 1)}</span>` : null}`
}

/** The destination of the first recipient, and the number of other destinations; of the recipients of the page when it has not all. */
function destinationOf(view: View, { recipients, recipient_count: total }: PageEntryJson): Part {
  const [first, ...others] = [...new Set(recipients.map(({ destination }) => destination))]
  if (first === undefined) return '–'
  const listed = recipients.length < total ? `first ${count(recipients.length)} of ${count(total)} recipients` : ''
  const more = [others.length === 0 ? '' : `+ ${count(others.length)}`, listed].filter((text) => text !== '').join(', ')
  return html`${destinationPart(view, first)}${more === '' ? null : html` <span class="faint">${more}</span>`}`
}

/** The reason for which the message waits. */
const reasonOf = ({ recipients }: PageEntryJson): Part =>
  replyPart(recipients.map(({ delay_reason: delay, bounce_reason: bounce }) => delay ?? bounce).find((reason) => (reason ?? null) !== null))

const checkbox = ({ queue_id: id }: PageEntryJson): Html =>
  html`<label class="check"><input type="checkbox" name="id" value="${fieldText(id)}" /><span class="unseen">Select ${id}</span></label>`

function columnsOf(view: View): readonly Column<PageEntryJson>[] {
  const columns: readonly Column<PageEntryJson>[] = [
    { heading: html`<span class="unseen">Select</span>`, label: '', kind: 'check', cell: checkbox },
    {
      heading: 'Message',
      isTitle: true,
      cell: ({ queue_id: id, forced_expire: forced, ...message }) =>
        html`<a class="code" href="${messageLink(view, id)}">${id}</a
          ><br />${marked(shownQueue(message))}${forced ? html` <span class="faint">expires</span>` : null}`,
    },
    {
      heading: 'Age, size',
      kind: 'number',
      cell: ({ arrival_time: at, message_size: size }) =>
        html`<span class="lines"><span>${age(view, at)}</span> <span class="faint">${byteSize(size)}</span></span>`,
    },
    { heading: 'Sender → recipients', label: 'From, to', kind: 'parties', cell: partiesOf },
    {
      heading: 'Tries, next',
      kind: 'number',
      cell: ({ attempts, next_attempt_time: next }) =>
        html`<span class="lines"
          ><span>${count(attempts)}</span> <span class="faint">${next === null ? '–' : due(view, next)}</span></span
        >`,
    },
    { heading: 'Destination', cell: (one) => destinationOf(view, one) },
    ...(view.classes.length === 0
      ? []
      : [{ heading: 'Class', cell: ({ class: name }: PageEntryJson) => (name === undefined ? '–' : addressPart(name)) }]),
    { heading: 'Waits for', kind: 'reply', cell: reasonOf },
  ]
  return view.requester.mayOperate ? columns : columns.slice(1)
}

/** Verbs that make sense for the queue of the filter. */
const verbsFor = ({ classes }: View, queue: string): readonly OperationName[] =>
  OPERATIONS.filter((verb) => {
    if (verb === 'reclass' && classes.length < 2) return false
    if (verb === 'restore') return queue === 'trash'
    if (verb === 'release') return queue === 'hold' || queue === 'scheduled' || queue === ''
    return queue !== 'trash' || verb === 'delete'
  })

function actionBar(view: View, { filter, count: matching }: MessagesFacts): Html {
  const all = matching === null ? 'all that match' : `all ${countUpTo(matching.count, matching.at_least)} that match`
  return html`<div class="actions" role="group" aria-label="Operations">
    <fieldset>
      <legend class="unseen">On which messages</legend>
      <label><input type="radio" name="scope" value="ids" checked /> checked <output class="checked"></output></label>
      <label><input type="radio" name="scope" value="filter" /> ${all}</label>
    </fieldset>
    <p class="buttons">
      ${verbsFor(view, filter.queue).map((verb) => html`<button type="submit" name="operation" value="${verb}">${buttonText(verb)}</button>`)}
    </p>
  </div>`
}

function listing(view: View, facts: MessagesFacts): Html {
  const { page, filter, after, order } = facts
  const rows = table({
    caption: 'Messages',
    columns: columnsOf(view),
    rows: page.messages,
    kind: 'messages',
    empty: isAny(filter)
      ? html`<span class="calm">${shapeOf('done')} <span class="title">Mail queue is empty</span></span>`
      : html`No message matches: ${describedFilter(filter, view)}.`,
  })
  if (!view.requester.mayOperate || page.messages.length === 0) return rows
  const back = `messages${queryText({ ...conditionsOf(filter), order: inQuery(order), after })}`
  return html`<form action="${linkTo(view, 'operations/new')}" method="get" data-dialog>
    ${hidden({ ...conditionsOf(filter), back })} ${rows} ${actionBar(view, facts)}
  </form>`
}

function about(view: View, { filter, count: matching }: MessagesFacts): string {
  const number = matching === null ? '' : `${countUpTo(matching.count, matching.at_least)} ${matching.count === 1 ? 'message' : 'messages'}`
  return isAny(filter) ? number : `${number === '' ? 'Messages' : number}: ${describedFilter(filter, view)}`
}

/** Links to the listing from its other end. */
const orderLinks = (view: View, { filter, order }: MessagesFacts): Html =>
  html`<nav class="choices" aria-label="Order">
    ${MESSAGE_ORDERS.map(
      (one) =>
        html`<a
          href="${linkTo(view, 'messages', { ...conditionsOf(filter), order: inQuery(one) })}"
          ${one === order ? html` aria-current="true"` : null}
          title="Queue ids have the order of arrival on each node; a requeue gives a new one."
          >queue id, ${one} first</a
        >`,
    )}
  </nav>`

function listOf(view: View, facts: MessagesFacts): Html {
  const { page, filter, after, order } = facts
  const query = { ...conditionsOf(filter), order: inQuery(order) }
  return html`${page.messages.length > 1 || after !== '' ? orderLinks(view, facts) : null} ${listing(view, facts)}
  ${pager(view, 'messages', query, { next: page.next, isFirst: after === '' })} ${downloads(view, 'messages', conditionsOf(filter))}`
}

export function messagesScreen(view: View, facts: MessagesFacts): Screen {
  const { filter, problem, senders } = facts
  return {
    title: 'Messages',
    place: 'messages',
    ...(senders === 'counting' ? untilCounted(`api/v1/senders${queryText({ ...conditionsOf(filter), limit: 1 })}`) : {}),
    main: html`${heading('Messages', about(view, facts))} ${filterForm(view, facts)}
    ${filter.sender !== '' || senders === null ? null : senderList(view, senders === 'counting' ? null : senders, conditionsOf(filter))}
    ${listOr(problem, () => listOf(view, facts), FILTER_FIELDS)}
    ${asCommand(['queue', 'list', ...optionsOf(filter)], { method: 'GET', path: `api/v1/messages${queryText(conditionsOf(filter))}` })}`,
  }
}
