/** The audit log: who changed the queue, when, how, and what can be undone. */
import { actionPattern, actionWords } from '../../../presentation/action-words.ts'
import { changedText } from '../../../presentation/changed-text.ts'
import type { AuditEntryJson, AuditPageJson } from '../../../resources/operation-json.ts'
import { asCommand } from '../../markup/command-lines.ts'
import { heading, listOr, pager, type Screen } from '../../markup/frame.ts'
import { downloads } from '../../markup/downloads.ts'
import { field, rangeField } from '../../markup/fields.ts'
import { html, type Html, type Part } from '../../../presentation/html.ts'
import { linkTo, queryText, type Query } from '../../markup/links.ts'
import { breakable } from '../../markup/long-words.ts'
import { marked } from '../../markup/marks.ts'
import { longText, replyPart } from '../../markup/reply.ts'
import { table, type Column } from '../../markup/html-table.ts'
import { clockTime } from '../../markup/times.ts'
import { instantText, type TimeRange } from '../../markup/time-range.ts'
import type { View } from '../../markup/view.ts'

interface AuditFacts {
  readonly page: Pick<AuditPageJson, 'records' | 'next'>
  readonly query: Readonly<Record<'who' | 'action' | 'request_id' | 'recorded_after' | 'recorded_before', string>>
  /** The instants of `query`. */
  readonly range: TimeRange
  readonly before: string
  readonly problem: string | null
}

function undoOf(view: View, { id, undo_until: until, undone_by: undoneBy }: AuditEntryJson): Part {
  if (undoneBy !== null) return html`<a href="${linkTo(view, `operations/${undoneBy}`)}">undone</a>`
  if (until === null || !view.requester.mayOperate) return null
  return html`<form method="post" action="${linkTo(view, `operations/${id}/undo`, { back: 'audit' })}">
    <button type="submit" class="small">Undo</button>
  </form>`
}

/** The reason that the operator gave, and why the action failed. */
function reasonPart({ reason, state, error }: AuditEntryJson): Part {
  const given = reason === null ? null : longText(reason)
  return state !== 'failed' || error === null
    ? given
    : html`${given}
        <div>${longText(`failed: ${error}`)}</div>`
}

const columnsOf = (view: View): readonly Column<AuditEntryJson>[] => [
  { heading: 'Time', isTitle: true, cell: ({ time }) => clockTime(view, time) },
  { heading: 'Who', cell: ({ who }) => breakable(who) },
  {
    heading: 'Action',
    cell: ({ id, action }) =>
      html`<a class="whole" href="${linkTo(view, `operations/${id}`, { back: 'audit' })}">${actionWords(action)}</a>`,
  },
  { heading: 'State', cell: ({ state }) => marked(state) },
  { heading: 'Changed', cell: (one) => html`<span class="whole">${changedText(one)}</span>` },
  { heading: 'Reason', kind: 'reply', cell: reasonPart },
  { heading: 'Arguments', kind: 'reply', cell: ({ arguments: words }) => replyPart(words) },
  { heading: 'Undo', label: '', kind: 'actions', cell: (one) => undoOf(view, one) },
]

const filterForm = (view: View, { query: { who, action, request_id: request, ...query }, range }: AuditFacts): Html =>
  html`<form class="filter" action="${linkTo(view, 'audit')}" method="get">
    ${field({ name: 'who', label: 'Who', value: who, example: 'page:*' })}
    ${field({ name: 'action', label: 'Action', value: action, example: 'hold, token add' })}
    ${field({ name: 'request_id', label: 'Request', value: request, example: 'X-Request-Id' })}
    ${rangeField(view, { name: 'recorded_after', label: 'From', value: query.recorded_after, at: range.after })}
    ${rangeField(view, { name: 'recorded_before', label: 'To', value: query.recorded_before, at: range.before })}
    <button type="submit">Show</button>
  </form>`

function listOf(view: View, { page, query, before }: AuditFacts, asked: Query): Html {
  return html`<p class="news" data-newest="${page.records[0]?.id ?? 0}" hidden>
      There are newer actions. <a href="${linkTo(view, 'audit', query)}">Show them</a>
    </p>
    ${table({
      caption: 'Audit log',
      columns: columnsOf(view),
      rows: page.records,
      kind: 'audit',
      empty: Object.values(query).every((value) => value === '') ? 'No operator has changed the queue yet.' : 'No record matches.',
    })}
    ${pager(view, 'audit', query, { next: page.next, isFirst: before === '', parameter: 'before' })} ${downloads(view, 'audit', asked)}`
}

export function auditScreen(view: View, facts: AuditFacts): Screen {
  const { query, range, before, problem } = facts
  const recorded = { recorded_after: instantText(range.after), recorded_before: instantText(range.before) }
  const asked = { who: query.who, action: actionPattern(query.action), request_id: query.request_id, ...recorded }
  const options = Object.entries(recorded).flatMap(([name, value]) => (value === '' ? [] : [`--${name.replaceAll('_', '-')}`, value]))
  return {
    title: 'Audit',
    place: 'audit',
    live: before === '' && problem === null ? { path: `api/v1/audit${queryText({ ...asked, limit: 1 })}` } : null,
    main: html`${heading('Audit', 'Who changed the queue, the last change first.')} ${filterForm(view, facts)}
    ${listOr(problem, () => listOf(view, facts, asked))}
    ${asCommand(['audit', ...options], { method: 'GET', path: `api/v1/audit${queryText(asked)}` })}`,
  }
}
