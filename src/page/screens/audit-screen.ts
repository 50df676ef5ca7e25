/** The audit log: who changed the queue, when, how, and what can be undone. */
import { OPERATIONS } from '../../queue/operation-request.ts'
import type { AuditEntryJson, AuditPageJson } from '../../resources/operation-json.ts'
import { asCommand } from '../markup/command-lines.ts'
import { heading, pager, type Screen } from '../markup/frame.ts'
import { choice, field } from '../markup/fields.ts'
import { html, type Html, type Part } from '../../presentation/html.ts'
import { linkTo, queryText } from '../markup/links.ts'
import { marked } from '../markup/marks.ts'
import { replyPart } from '../markup/reply.ts'
import { table, type Column } from '../markup/html-table.ts'
import { clockTime, count } from '../markup/times.ts'
import type { View } from '../markup/view.ts'

interface AuditFacts {
  readonly page: Pick<AuditPageJson, 'records' | 'next'>
  readonly query: { readonly who: string; readonly action: string }
  readonly before: string
}

function undoOf(view: View, { id, undo_until: until, undone_by: undoneBy }: AuditEntryJson): Part {
  if (undoneBy !== null) return html`<a href="${linkTo(view, `operations/${undoneBy}`)}">undone</a>`
  if (until === null || !view.requester.mayOperate) return null
  return html`<form method="post" action="${linkTo(view, `operations/${id}/undo`, { back: 'audit' })}">
    <button type="submit" class="small">Undo</button>
  </form>`
}

const columnsOf = (view: View): readonly Column<AuditEntryJson>[] => [
  { heading: 'Time', isTitle: true, cell: ({ time }) => clockTime(view, time) },
  { heading: 'Who', cell: ({ who }) => who },
  { heading: 'Action', cell: ({ id, action }) => html`<a href="${linkTo(view, `operations/${id}`, { back: 'audit' })}">${action}</a>` },
  { heading: 'State', cell: ({ state }) => marked(state) },
  { heading: 'Changed', kind: 'number', cell: ({ changed }) => count(changed) },
  { heading: 'Reason', cell: ({ reason }) => reason ?? '' },
  { heading: 'Arguments', kind: 'reply', cell: ({ arguments: words }) => replyPart(words) },
  { heading: 'Undo', label: '', kind: 'actions', cell: (one) => undoOf(view, one) },
]

const ACTIONS = [...OPERATIONS, 'suspend', 'resume']

const filterForm = (view: View, { who, action }: AuditFacts['query']): Html =>
  html`<form class="filter" action="${linkTo(view, 'audit')}" method="get">
    ${field({ name: 'who', label: 'Who', value: who, example: 'page:*' })}
    ${choice('Action', 'action', action, [{ value: '', text: 'any' }, ...ACTIONS.map((name) => ({ value: name, text: name }))])}
    <button type="submit">Show</button>
  </form>`

export const auditScreen = (view: View, { page, query, before }: AuditFacts): Screen => ({
  title: 'Audit',
  place: 'audit',
  live: before === '' ? { path: `api/v1/audit${queryText({ ...query, limit: 1 })}` } : null,
  main: html`${heading('Audit', 'Who changed the queue, the last change first.')} ${filterForm(view, query)}
    <p class="news" data-newest="${page.records[0]?.id ?? 0}" hidden>
      There are newer actions. <a href="${linkTo(view, 'audit', query)}">Show them</a>
    </p>
    ${table({
      caption: 'Audit log',
      columns: columnsOf(view),
      rows: page.records,
      kind: 'audit',
      empty: query.who + query.action === '' ? 'No operator has changed the queue yet.' : 'No record matches.',
    })}
    ${pager(view, 'audit', query, { next: page.next, isFirst: before === '', parameter: 'before' })}
    ${asCommand(['audit'], { method: 'GET', path: 'api/v1/audit' })}`,
})
