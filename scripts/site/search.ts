/** The index of the search, which the browser loads at the first use. */
import MiniSearch from 'minisearch'
import { addressOf } from './pages.ts'
import type { Rendered } from './render.ts'

/** The words of a text. A name such as maximal_backoff_time is one. The browser has this function as its text. */
const tokenize = (text: string): string[] => text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? []

const FIELDS = { fields: ['title', 'page', 'text'], storeFields: ['title', 'page', 'at'] }

/** Options of the index. */
export const searchOptions = { ...FIELDS, tokenize }

/** Weights of a search: a title is what is looked for. */
export const SEARCH = { boost: { title: 6, page: 2 }, prefix: true, combineWith: 'AND' } as const

/** The options of the index and of a search, for the script of the site. */
export const scriptOptions = (): string =>
  `const OPTIONS = { ...${JSON.stringify(FIELDS)}, tokenize: ${String(tokenize)} }\nconst SEARCH = ${JSON.stringify(SEARCH)}\n`

/** Makes the index of pages by their files. */
export function searchIndex(pages: ReadonlyMap<string, Rendered>): MiniSearch {
  const index = new MiniSearch(searchOptions)
  let id = 0
  for (const [file, { title: page, sections }] of pages)
    for (const { anchor, title, text } of sections) {
      index.add({ id, title, page, text, at: `${addressOf(file)}#${anchor}` })
      id += 1
    }
  return index
}
