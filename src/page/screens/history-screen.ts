/** Mail that has left the queue: whether a recipient got it, when, and the reply. */
import { FINAL_STATES } from '../../mail/message.ts'
import type { historyConditions } from '../../queries/operations/resend.ts'
import type { DepartedMessageJson, HistoryPageJson } from '../../resources/departed-message-json.ts'
import { asCommand } from '../markup/command-lines.ts'
import { buttonLink, heading, listOr, pager, type Screen } from '../markup/frame.ts'
import { downloads } from '../markup/downloads.ts'
import { choice, field, rangeField, type FormField, type FormProblem } from '../markup/fields.ts'
import { html, type Html, type Part } from '../../presentation/html.ts'
import { linkTo, messageLink, queryText, type Query } from '../markup/links.ts'
import { marked } from '../markup/marks.ts'
import { replyPart } from '../markup/reply.ts'
import { table, type Column } from '../markup/html-table.ts'
import { clockTime, plural, span } from '../markup/times.ts'
import type { View } from '../markup/view.ts'
import { instantText, type TimeRange } from '../markup/time-range.ts'
import { addressPart } from '../markup/long-words.ts'

const ABOUT =
  'Mail that has left the queue, in the order in which that was recorded, the last first. “Left” is the time of the outcome of a recipient.'

/** The conditions of the API as the fields of the form have them; empty for none. */
type HistoryQuery = Readonly<Record<keyof typeof historyConditions, string>>

interface HistoryFacts {
  readonly page: Pick<HistoryPageJson, 'messages' | 'next'>
  readonly query: HistoryQuery
  /** The instants of `query`. */
  readonly range: TimeRange
  readonly before: string
  readonly problem: FormProblem | null
}

interface Row {
  readonly message: DepartedMessageJson
  readonly recipient: DepartedMessageJson['recipients'][number]
}

const columnsOf = (view: View): readonly Column<Row>[] => [
  { heading: 'Left', isTitle: true, cell: ({ recipient }) => clockTime(view, recipient.time) },
  { heading: 'Outcome', cell: ({ recipient }) => marked(recipient.outcome) },
  {
    heading: 'Recipient ← sender',
    kind: 'parties',
    cell: ({ message, recipient }) =>
      html`${addressPart(recipient.address)}<br /><span class="faint">← ${addressPart(message.sender)}</span>`,
  },
  {
    heading: 'Queue id',
    kind: 'code',
    cell: ({ message, recipient: { resent_as: again } }) =>
      html`<a href="${messageLink(view, message.queue_id)}">${message.queue_id}</a>${
          again === null ? null : html`<br /><span class="faint">sent again as <a href="${messageLink(view, again)}">${again}</a></span>`
        }`,
  },
  {
    heading: 'Took, attempts',
    kind: 'number',
    cell: ({ message, recipient }) =>
      html`<span class="lines"
        ><span>${span(Math.max(0, recipient.time - message.arrival_time) * 1000)}</span>
        <span class="faint">${plural(recipient.attempts, 'attempt')}</span></span
      >`,
  },
  {
    heading: 'Reply',
    kind: 'reply',
    cell: ({ recipient }) => replyPart(recipient.reply ?? recipient.reason, { hint: recipient.hint }),
  },
]

interface FilterFields {
  readonly shown: readonly FormField[]
  /** Conditions that are needed less often. */
  readonly further: readonly FormField[]
}

const filterFields = (view: View, { query, range }: Pick<HistoryFacts, 'query' | 'range'>): FilterFields => ({
  shown: [
    field({ name: 'recipient', label: 'Recipient', value: query.recipient, example: 'ann@example.com' }),
    field({ name: 'sender', label: 'Sender', value: query.sender, example: '*@example.com' }),
    choice('Outcome', 'outcome', query.outcome, [
      { value: '', text: 'any' },
      ...FINAL_STATES.map((state) => ({ value: state, text: state })),
    ]),
    field({ name: 'since', label: 'Left within', value: query.since, example: '1d' }),
    rangeField(view, { name: 'left_after', label: 'From', value: query.left_after, at: range.after }),
    rangeField(view, { name: 'left_before', label: 'To', value: query.left_before, at: range.before }),
  ],
  further: [
    field({ name: 'status', label: 'Status', value: query.status, example: '5.7.*' }),
    ...(view.classes.length > 1 || query.class !== ''
      ? [field({ name: 'class', label: 'Class', value: query.class, example: view.classes[0] ?? '' })]
      : []),
  ],
})

const filterForm = (view: View, { status, class: name }: HistoryQuery, { shown, further }: FilterFields): Html =>
  html`<form class="filter" action="${linkTo(view, 'history')}" method="get">
    ${shown}
    <button type="submit">Show</button>
    <details ${status === '' && name === '' ? null : html` open`}>
      <summary>More conditions</summary>
      <div class="more">${further}</div>
    </details>
  </form>`

/** Leads to the plan that sends the mail of the filter again; null without a filter. */
const resendLink = (view: View, asked: Query): Part =>
  view.requester.mayOperate && Object.values(asked).some((value) => value !== '')
    ? html`<p class="buttons">
        ${buttonLink(linkTo(view, 'history/resend', { ...asked, back: 'history' }), 'Send the failed ones again…')}
      </p>`
    : null

/** Leads to the plan that erases the addresses of the filter; null without one side of the envelope. */
function eraseLink(view: View, { recipient = '', sender = '' }: Query): Part {
  if (!view.requester.mayAdminister || (recipient === '') === (sender === '')) return null
  const side = recipient === '' ? { sender } : { recipient }
  return html`<p class="buttons">${buttonLink(linkTo(view, 'history/erase', { ...side, back: 'history' }), 'Erase these addresses…')}</p>`
}

const given = (query: HistoryQuery): boolean => Object.values(query).some((value) => value !== '')

function listOf(view: View, { page, query, before }: HistoryFacts, asked: Query): Html {
  const rows = page.messages.flatMap((message) => message.recipients.map((recipient) => ({ message, recipient })))
  return html`${table({
    caption: 'Recipients of mail that has left',
    columns: columnsOf(view),
    rows,
    kind: 'history',
    empty:
      page.next !== null
        ? 'Nothing here; the next page may have more.'
        : given(query)
          ? html`No mail that matches has left the queue.
              <a href="${linkTo(view, 'messages', { sender: query.sender, recipient: query.recipient })}">Look in the queue</a>`
          : 'No mail has left the queue yet.',
  })}
  ${pager(view, 'history', { ...query }, { next: page.next, isFirst: before === '', parameter: 'before' })} ${resendLink(view, asked)}
  ${eraseLink(view, asked)} ${downloads(view, 'history', asked)}`
}

export function historyScreen(view: View, facts: HistoryFacts): Screen {
  const { query, range, problem } = facts
  const fields = filterFields(view, facts)
  const asked = { ...query, left_after: instantText(range.after), left_before: instantText(range.before) }
  const options = Object.entries(asked).flatMap(([name, value]) => (value === '' ? [] : [`--${name.replaceAll('_', '-')}`, value]))
  return {
    title: 'History',
    place: 'history',
    main: html`${heading('History', ABOUT)} ${filterForm(view, query, fields)}
    ${listOr(problem, () => listOf(view, facts, { ...asked }), [...fields.shown, ...fields.further])}
    ${asCommand(['history', 'list', ...options], { method: 'GET', path: `api/v1/history${queryText(asked)}` })}`,
  }
}
