/**
 * The content of a message: header, text, HTML, attachments and source, each as text. Nothing of the mail is rendered, so that it can run,
 * load and imitate nothing.
 */
import { asText } from '../../../mail/mime/mime-reader.ts'
import { html, type Html, type Part } from '../../../presentation/html.ts'
import { clipped } from '../../../presentation/text.ts'
import { contentPartsJson, type ContentPartsJson } from '../../../resources/message-json.ts'
import { BEGINNING, type ContentBeginning } from '../../../queries/messages.ts'
import { asCommand } from '../../markup/command-lines.ts'
import { heading, section, type Screen } from '../../markup/frame.ts'
import { table, type Column } from '../../markup/html-table.ts'
import { contentLink, CONTENT_SECTIONS, linkTo, messageLink, type ContentSection } from '../../markup/links.ts'
import { byteSize, count } from '../../markup/times.ts'
import type { View } from '../../markup/view.ts'
import { addressPart } from '../../markup/long-words.ts'

interface ContentFacts {
  readonly queueId: string
  readonly shown: ContentSection
  readonly beginning: ContentBeginning
}

/** Maximum number of characters shown. */
const MOST_SHOWN = 100_000

const block = (text: string): Html =>
  html`<pre class="dialogue"><code>${clipped(text, MOST_SHOWN)}</code></pre>
    ${text.length > MOST_SHOWN ? html`<p class="faint">The first ${count(MOST_SHOWN)} characters.</p>` : null}`

type Attachment = ContentPartsJson['attachments'][number]
type Field = ContentPartsJson['headers'][number]

const FIELDS: readonly Column<Field>[] = [
  { heading: 'Field', isTitle: true, cell: ({ name }) => name },
  { heading: 'Value', kind: 'reply', cell: ({ value }) => addressPart(value) },
]

const ATTACHMENTS: readonly Column<Attachment>[] = [
  { heading: 'Name', isTitle: true, cell: ({ name, part }) => addressPart(name ?? `part ${part}`) },
  { heading: 'Type', cell: ({ type }) => addressPart(type) },
  { heading: 'Size', kind: 'number', cell: ({ size }) => byteSize(size) },
  { heading: 'SHA-256', kind: 'reply', cell: ({ sha256 }) => html`<code class="whole">${sha256}</code>` },
]

function sectionPart(shown: ContentSection, parts: ContentPartsJson, content: Uint8Array): Part {
  switch (shown) {
    case 'headers':
      return table({ caption: 'Fields of the header', columns: FIELDS, rows: parts.headers, empty: 'The mail has no header.' })
    case 'text':
      return parts.text === null ? html`<p>The mail has no part that is plain text.</p>` : block(parts.text)
    case 'html':
      return parts.html === null ? html`<p>The mail has no part that is HTML.</p>` : block(parts.html)
    case 'attachments':
      return table({ caption: 'Attachments', columns: ATTACHMENTS, rows: parts.attachments, empty: 'The mail has no attachments.' })
    case 'source':
      return block(asText(Buffer.from(content).toString('latin1')).replaceAll('\r\n', '\n'))
  }
}

/** Links to the sections of a content, with the number of attachments where it is known, and to the whole as a file. */
export const sectionLinks = (view: Pick<View, 'root'>, queueId: string, shown?: ContentSection, attachments?: number): Html =>
  html`<nav class="choices" aria-label="Sections of the content">
    ${CONTENT_SECTIONS.map(
      ({ name, title }) =>
        html`<a href="${contentLink(view, queueId, name)}" ${name === shown ? html` aria-current="true"` : null}
          >${title}${name === 'attachments' && attachments !== undefined ? ` ${count(attachments)}` : null}</a
        >`,
    )}
    <a href="${linkTo(view, `api/v1/messages/${encodeURIComponent(queueId)}/content`)}" download="${queueId}.eml">${queueId}.eml</a>
  </nav>`

export function contentScreen(view: View, { queueId, shown, beginning: { content, whole } }: ContentFacts): Screen {
  const parts = contentPartsJson(content, whole)
  return {
    title: `Content of ${queueId}`,
    place: 'messages',
    main: html`${heading('Content', html`of <a href="${messageLink(view, queueId)}">${queueId}</a>, as text`, null)}
    ${whole ? null : html`<p role="status">The mail is larger: its first ${byteSize(BEGINNING)} are read, so that the last part is cut.</p>`}
    ${section(
      CONTENT_SECTIONS.find(({ name }) => name === shown)?.title ?? '',
      html`${shown === 'html' && parts.html !== null ? html`<p class="faint">Source: the page renders no HTML of mail.</p>` : null}
      ${sectionPart(shown, parts, content)}`,
      { aside: sectionLinks(view, queueId, shown, parts.attachments.length) },
    )}
    ${asCommand(['queue', 'cat', queueId], { method: 'GET', path: `api/v1/messages/${encodeURIComponent(queueId)}/parts` })}`,
  }
}
