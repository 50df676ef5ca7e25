/** Relative URLs of the screens. A URL is a view: its query has the names of the command-line options. */
import type { View } from './view.ts'

export type Query = Readonly<Record<string, string | number | readonly string[] | null | undefined>>

/** `?sender=…&queue=…`; empty without values. Null, undefined and empty values are left out. */
export function queryText(query: Query): string {
  const values = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    const all = value === null || value === undefined ? [] : typeof value === 'object' ? value : [String(value)]
    for (const one of all) if (one !== '') values.append(name, one)
  }
  const text = values.toString()
  return text === '' ? '' : `?${text}`
}

/** A screen with a query. `place` is its path below the root. */
export const linkTo = ({ root }: Pick<View, 'root'>, place: string, query: Query = {}): string => `${root}${place}${queryText(query)}`

/** The warnings and errors of the log with these conditions. */
export const logLink = (view: Pick<View, 'root'>, conditions: Query): string => linkTo(view, 'log', conditions)

export const messageLink = (view: Pick<View, 'root'>, queueId: string): string => linkTo(view, `messages/${encodeURIComponent(queueId)}`)

export const dialogueLink = (view: Pick<View, 'root'>, queueId: string, session: string): string =>
  `${messageLink(view, queueId)}/sessions/${encodeURIComponent(session)}`

export const providerLink = (view: Pick<View, 'root'>, name: string): string => linkTo(view, `providers/${encodeURIComponent(name)}`)

/** Sections of the content of a message, the first by default. */
export const CONTENT_SECTIONS = [
  { name: 'headers', title: 'Headers' },
  { name: 'text', title: 'Text' },
  { name: 'html', title: 'HTML' },
  { name: 'attachments', title: 'Attachments' },
  { name: 'source', title: 'Source' },
] as const
export type ContentSection = (typeof CONTENT_SECTIONS)[number]['name']

export const contentLink = (view: Pick<View, 'root'>, queueId: string, show: ContentSection): string =>
  `${messageLink(view, queueId)}/content${queryText({ show })}`

export const destinationLink = (view: Pick<View, 'root'>, name: string): string => linkTo(view, `destinations/${encodeURIComponent(name)}`)
