/** The messages that a search has found, in the queue and in the history. */
import { SHORTEST_PREFIX } from '../../queries/messages/search.ts'
import type { FoundMessageJson, SearchPageJson } from '../../resources/found-message-json.ts'
import { html, type Html, type Part } from '../../presentation/html.ts'
import { heading, pager, type Screen } from '../markup/frame.ts'
import { table, type Column } from '../markup/html-table.ts'
import { linkTo, messageLink } from '../markup/links.ts'
import { goneMark, marked } from '../markup/marks.ts'
import { clockTime, count } from '../markup/times.ts'
import type { View } from '../markup/view.ts'
import { addressPart } from '../markup/long-words.ts'

interface SearchFacts {
  readonly asked: string
  readonly page: SearchPageJson
  readonly after: string
}

const NAMES: Readonly<Record<SearchPageJson['searched'][number], string>> = {
  queue_id: 'queue id',
  message_id: 'Message-ID',
  address: 'address',
  domain: 'domain',
  subject: 'words of the subject',
  part_of_address: 'part of an address',
}

const toText = ({ recipients: [first], recipient_count: total }: FoundMessageJson): Part =>
  html`${addressPart(first?.address ?? '')}${total > 1 ? ` and ${count(total - 1)} more` : null}`

const columnsOf = (view: View): readonly Column<FoundMessageJson>[] => [
  { heading: 'Arrived', isTitle: true, cell: ({ arrival_time: at }) => clockTime(view, at) },
  { heading: 'State', cell: stateCell },
  {
    heading: 'Recipient ← sender',
    kind: 'parties',
    cell: (one) => html`${toText(one)}<br /><span class="faint">← ${addressPart(one.sender)}</span>`,
  },
  {
    heading: 'Queue id',
    kind: 'code',
    cell: ({ queue_id: id }) => html`<a href="${messageLink(view, id)}">${id}</a>`,
  },
  {
    heading: view.requester.mayReadContent ? 'Subject' : 'Message-ID',
    kind: 'reply',
    cell: ({ subject, message_id: id }) => (view.requester.mayReadContent ? (subject ?? '–') : (id ?? '–')),
  },
]

function stateCell(one: FoundMessageJson): Html {
  const state = stateOf(one)
  return state === 'has left' ? goneMark(state) : marked(state)
}

/** The outcome of mail that has left, when all its recipients have the same. */
function stateOf({ queue_name: queue, recipients }: FoundMessageJson): string {
  const [first] = recipients
  if (queue !== 'gone') return queue
  return first !== undefined && recipients.every(({ state }) => state === first.state) ? first.state : 'has left'
}

function aboutOf({ searched, progress }: SearchPageJson): string {
  if (progress !== null) return `Read ${Math.floor(progress * 100)} % of all addresses in the queue and in the history.`
  const names = searched.map((one) => NAMES[one])
  return names.length === 0 ? 'Nothing was searched.' : `By ${names.join(', ')}, in the queue and in the history, the newest first.`
}

/** Ways on from a search by the index. */
const waysOn = (view: View, asked: string, { progress }: SearchPageJson): Html | null => {
  if (progress !== null) return null
  const part = `*${asked.replaceAll(/^[<@]|[>*]$/g, '')}*`
  return html`<p>
    <a href="${linkTo(view, 'search', { q: part })}">Search all addresses for <code>${part}</code></a> ·
    <a href="${linkTo(view, 'destinations', { name: part })}">Destinations</a>
  </p>`
}

/** Nothing found. A short word may be the beginning of one that was not looked for. */
function emptyText(asked: string, { progress, next }: SearchPageJson): string {
  if (progress !== null) return next === null ? 'No address matches.' : 'No address matches so far.'
  const isAnyShort = asked.split(/\s+/).some((word) => word.length < SHORTEST_PREFIX)
  return `No message is found.${isAnyShort ? ` A text of fewer than ${SHORTEST_PREFIX} characters is found as a whole word only.` : ''}`
}

export function searchScreen(view: View, { asked, page, after }: SearchFacts): Screen {
  return {
    title: 'Search',
    place: 'messages',
    search: asked,
    main: html`${heading(html`Search: ${asked}`, aboutOf(page))}
    ${table({ caption: 'Messages found', columns: columnsOf(view), rows: page.messages, empty: emptyText(asked, page), kind: 'found' })}
    ${pager(view, 'search', { q: asked }, { next: page.next, isFirst: after === '' })} ${waysOn(view, asked, page)}`,
  }
}
