/** Links to the files of a whole list, made by its resource of the API. */
import { html, type Html } from '../../presentation/html.ts'
import { linkTo, type Query } from './links.ts'
import type { View } from './view.ts'

const LIST_FILES = { csv: 'CSV', ndjson: 'NDJSON' }

/** `resource` is the path below the API's, such as `history`; `query` the conditions of the list. */
export const downloads = (view: View, resource: string, query: Query, files: Readonly<Record<string, string>> = LIST_FILES): Html =>
  html`<p class="downloads">
    <span class="faint">Download all:</span> ${Object.entries(files).map(
      ([format, text]) => html` <a href="${linkTo(view, `api/v1/${resource}`, { ...query, format })}" download>${text}</a>`,
    )}
  </p>`
