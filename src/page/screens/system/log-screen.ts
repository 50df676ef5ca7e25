/** Warnings and errors of the log: when, how severe, what was said, and the message or destination that it is about. */
import type { LogConditions } from '../../../api/log-routes.ts'
import type { LogPageJson, LogRecordJson } from '../../../resources/log-json.ts'
import { KEPT_KINDS, MOST_LINES, type KeptLevel } from '../../../telemetry/recent-log.ts'
import { asRequest } from '../../markup/command-lines.ts'
import { answer, heading, pager, type Screen } from '../../markup/frame.ts'
import { choice, field, problemText, rangeField, type FormField, type FormProblem } from '../../markup/fields.ts'
import { html, joined, type Html, type Part } from '../../../presentation/html.ts'
import { linkTo, messageLink, queryText } from '../../markup/links.ts'
import { marked, shapeOf } from '../../markup/marks.ts'
import { longText, replyPart, shownReply } from '../../markup/reply.ts'
import { table, type Column } from '../../markup/html-table.ts'
import { clockText, clockTime, count, distance, plural, type ZonedNow } from '../../markup/times.ts'
import { instantText, type TimeRange } from '../../markup/time-range.ts'
import type { View } from '../../markup/view.ts'
import { destinationPart } from '../../markup/long-words.ts'

/** The conditions of the API as the fields of the form have them; empty for none. */
export type LogText = Readonly<Record<keyof LogConditions, string>>

interface LogFacts {
  readonly page: LogPageJson
  readonly query: LogText
  /** The instants of `query`. */
  readonly range: TimeRange
  readonly before: string
  readonly problem: FormProblem | null
}

export const NO_LINES: LogPageJson = { records: [], counts: { warn: 0, error: 0, fatal: 0 }, nodes: [], next: null, as_of: 0 }

const LEVELS: Readonly<Record<KeptLevel, { readonly mark: string; readonly one: string }>> = {
  warn: { mark: 'warning', one: 'warning' },
  error: { mark: 'refusing', one: 'error' },
  fatal: { mark: 'dead', one: 'fatal error' },
}

/** Messages of a line with a link. */
const MOST_LINKS = 3

function aboutPart(view: View, { queue_ids: ids, destination }: LogRecordJson): Part {
  const messages = ids.slice(0, MOST_LINKS).map((id) => html`<a href="${messageLink(view, id)}"><code>${id}</code></a>`)
  const further = ids.length > MOST_LINKS ? [`${count(ids.length - MOST_LINKS)} more`] : []
  const place = destination === null ? [] : [destinationPart(view, destination)]
  return joined([...messages, ...further, ...place], html`<br />`)
}

/** The reply of a server first; a line without one from its begin. */
const linePart = (text: string): Part => (shownReply(text).codes === '' ? longText(text) : replyPart(text))

const columnsOf = (view: View, isShared: boolean): readonly Column<LogRecordJson>[] => [
  { heading: 'Time', isTitle: true, cell: ({ time }) => clockTime(view, time) },
  { heading: 'Level', cell: ({ level }) => marked(LEVELS[level].mark, level) },
  { heading: 'Line', kind: 'reply', cell: ({ text }) => linePart(text) },
  { heading: 'About', cell: (one) => aboutPart(view, one) },
  { heading: 'Event', cell: ({ event }) => event },
  ...(isShared ? [{ heading: 'Node', cell: ({ node }: LogRecordJson) => node }] : []),
]

const isEmpty = (query: LogText): boolean => Object.values(query).every((value) => value === '')

/** ` since 20:09 (of mx1 since 20:47)`: the time from which on all lines of a node are kept. */
function spanText(nodes: LogPageJson['nodes'], zoned: ZonedNow): string {
  const begins = nodes.flatMap(({ name, since }) => (since === null ? [] : [{ name, since, text: clockText(zoned, since) }]))
  const [first, ...others] = begins.toSorted((a, b) => a.since - b.since)
  if (first === undefined) return ''
  const later = others.filter(({ text }) => text !== first.text).map(({ name, text }) => `of ${name ?? ''} since ${text}`)
  return ` since ${first.text}${later.length === 0 ? '' : ` (${later.join(', ')})`}`
}

/** The number of lines, and since when there are no others. */
export function logSentence({ counts, nodes, records }: LogPageJson, isFiltered: boolean, zoned: ZonedNow): string {
  const texts = (['fatal', 'error', 'warn'] as const).flatMap((level) =>
    counts[level] === 0 ? [] : [plural(counts[level], LEVELS[level].one)],
  )
  const span = spanText(nodes, zoned)
  const [last = ''] = texts.splice(-1)
  if (records.length === 0 && last === '') return isFiltered ? `No warning or error${span} matches.` : `No warning or error${span}.`
  const sum = texts.length === 0 ? last : `${texts.join(', ')} and ${last}`
  return `${sum}${span}${isFiltered ? ' match' : ''}.`
}

function missingPart({ nodes }: LogPageJson): Part {
  const silent = nodes.filter(({ since }) => since === null).map(({ name }) => name)
  return silent.length === 0
    ? null
    : html`<br />${shapeOf('warning')} Lines are missing, because a node does not answer: ${silent.join(', ')}.`
}

const filterFields = (view: View, { query, range }: Pick<LogFacts, 'query' | 'range'>): readonly FormField[] => [
  choice('Level', 'level', query.level, [
    { value: '', text: 'any' },
    { value: 'error', text: 'error or fatal' },
    { value: 'fatal', text: 'fatal' },
  ]),
  choice('Event', 'event', query.event, [{ value: '', text: 'any' }, ...KEPT_KINDS.map((name) => ({ value: name, text: name }))]),
  field({ name: 'queue_id', label: 'Message', value: query.queue_id, example: 'queue id' }),
  field({ name: 'destination', label: 'Destination', value: query.destination, example: '*.example.com' }),
  field({ name: 'text', label: 'Text', value: query.text, example: '*certificate*' }),
  ...(view.node === undefined ? [] : [field({ name: 'node', label: 'Node', value: query.node, example: view.node })]),
  rangeField(view, { name: 'logged_after', label: 'From', value: query.logged_after, at: range.after }),
  rangeField(view, { name: 'logged_before', label: 'To', value: query.logged_before, at: range.before }),
]

const filterForm = (view: View, fields: readonly FormField[]): Html =>
  html`<form class="filter" action="${linkTo(view, 'log')}" method="get">
    ${fields}
    <button type="submit">Show</button>
  </form>`

const kept = `The last ${count(MOST_LINES)} of each node, in its memory: those of earlier processes and older ones are in the log only.`

const linesPart = (view: View, { page, query, before }: LogFacts): Html =>
  html`${table({
    caption: 'Warnings and errors',
    columns: columnsOf(view, view.node !== undefined),
    rows: page.records,
    kind: 'log',
    empty: isEmpty(query) ? 'No warning and no error.' : 'No line matches.',
  })}
  ${pager(view, 'log', query, { next: page.next, isFirst: before === '', parameter: 'before' })}`

export function logScreen(view: View, facts: LogFacts): Screen {
  const { page, query, range, before, problem } = facts
  const asked = { ...query, logged_after: instantText(range.after), logged_before: instantText(range.before) }
  const [newest] = page.records
  const fields = filterFields(view, facts)
  return {
    title: 'Log',
    place: 'log',
    live: before === '' && problem === null ? { path: `api/v1/log${queryText({ ...asked, limit: 1 })}` } : null,
    main: html`${heading('Log', 'Warnings and errors, the last one first.')}
      ${
        problem === null
          ? answer(
              html`${logSentence(page, !isEmpty(query), view)}${newest === undefined || before !== '' ? null : html` The last: ${distance(view, newest.time)}.`}${missingPart(page)}`,
              kept,
            )
          : html`<p class="problem" role="alert">${shapeOf('warning')} ${problemText(fields, problem)}</p>`
      }
      ${filterForm(view, fields)}
      <p class="news" data-newest="${newest?.id ?? ''}" hidden>
        There are newer lines. <a href="${linkTo(view, 'log', query)}">Show them</a>
      </p>
      ${problem === null ? linesPart(view, facts) : null} ${asRequest({ method: 'GET', path: `api/v1/log${queryText(asked)}` })}`,
  }
}
