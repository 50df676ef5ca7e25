/** Renders a page with markdown-it: anchors as GitHub makes them, and links between the pages. */
import { posix } from 'node:path'
import MarkdownIt from 'markdown-it'
import { addressOf, relativeAddress } from './pages.ts'

export interface Heading {
  readonly level: number
  readonly anchor: string
  readonly text: string
}

/** A part of a page that can be found: what is below a heading, or a row of a table that begins with code. */
export interface Section {
  readonly anchor: string
  readonly title: string
  readonly text: string
}

export interface Rendered {
  readonly html: string
  readonly title: string
  readonly headings: readonly Heading[]
  readonly sections: readonly Section[]
  /** Files in the repository that the page shows or leads to, with their fragments. */
  readonly targets: readonly string[]
}

type Token = ReturnType<InstanceType<typeof MarkdownIt>['parse']>[number]

const markdown = new MarkdownIt({ html: true })

const attribute = (token: Token, name: string): string | null => {
  const value = token.attrGet(name)
  return value === null ? null : String(value)
}

/** Tables and code may be wider than the window: their places are scrolled with the keyboard too. */
markdown.renderer.rules['table_open'] = () => '<div class="wide" tabindex="0"><table>\n'
markdown.renderer.rules['table_close'] = () => '</table></div>\n'
markdown.renderer.rules['fence'] = (tokens, at) =>
  `<pre tabindex="0"><code>${markdown.utils.escapeHtml(tokens[at]?.content ?? '')}</code></pre>\n`

/** The text of a heading or cell without markup. */
const plain = (token: Token | undefined): string =>
  (token?.children ?? [])
    .map(({ type, content }) => (type === 'text' || type === 'code_inline' ? content : type === 'softbreak' ? ' ' : ''))
    .join('')

/** GitHub's anchor of a heading: letters, digits, hyphens and underscores, in lower case. */
export const slugOf = (text: string): string =>
  text
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\p{M}\s_-]/gu, '')
    .replaceAll(/\s/g, '-')

/** Gives the headings their anchors. The second of two equal ones has `-1` at its end. */
function anchored(tokens: readonly Token[]): readonly Heading[] {
  const used = new Map<string, number>()
  return tokens.flatMap((token, at) => {
    if (token.type !== 'heading_open') return []
    const text = plain(tokens[at + 1])
    const slug = slugOf(text)
    const times = used.get(slug) ?? 0
    used.set(slug, times + 1)
    const anchor = times === 0 ? slug : `${slug}-${times}`
    token.attrSet('id', anchor)
    return [{ level: Number(token.tag.slice(1)), anchor, text }]
  })
}

/** Rewrites the links to pages, and returns the files in the repository to which the links and pictures lead. */
function linked(tokens: readonly Token[], file: string): readonly string[] {
  return tokens.flatMap((token) => {
    const inside = linked(token.children ?? [], file)
    const name = token.type === 'link_open' ? 'href' : token.type === 'image' ? 'src' : null
    const target = name === null ? null : attribute(token, name)
    if (name === null || target === null || /^\w+:/.test(target)) return inside
    const [path = '', fragment] = target.split('#')
    const full = path === '' ? file : posix.join(posix.dirname(file), path)
    const end = fragment === undefined ? '' : `#${fragment}`
    token.attrSet(name, path === '' ? end : `${relativeAddress(addressOf(file), addressOf(full))}${end}`)
    return [...inside, `${full}${end}`]
  })
}

/** Parts of a page, in its order. The text of a row is also in that of its heading. */
function sectionsOf(tokens: readonly Token[], headings: readonly Heading[]): readonly Section[] {
  const found: Section[] = []
  const texts = new Map<Heading, string[]>()
  let heading = headings[0]
  let next = 0
  let row: string[] | null = null
  for (const [at, token] of tokens.entries()) {
    if (token.type === 'heading_open') {
      heading = headings[next]
      next += 1
    } else if (token.type === 'tr_open') row = []
    else if (token.type === 'tr_close') {
      const [first = '', ...rest] = row ?? []
      if (heading !== undefined && isCode(tokens, at, first)) found.push({ anchor: heading.anchor, title: first, text: rest.join(' ') })
      row = null
    } else if (token.type === 'inline' || token.type === 'fence') {
      const text = token.type === 'fence' ? token.content : plain(token)
      row?.push(text)
      if (heading !== undefined) texts.set(heading, [...(texts.get(heading) ?? []), text])
    }
  }
  return [...headings.map((one) => ({ anchor: one.anchor, title: one.text, text: (texts.get(one) ?? []).join(' ') })), ...found]
}

/** Whether the first cell of the row that ends at `end` is code alone. */
function isCode(tokens: readonly Token[], end: number, first: string): boolean {
  const begin = tokens.findLastIndex(({ type }, at) => at < end && type === 'tr_open')
  const cell = tokens.slice(begin, end).find(({ type }) => type === 'inline')
  return first !== '' && cell?.children?.[0]?.type === 'code_inline' && cell.children.length === 1
}

/** Renders the text of a file of the repository. */
export function render(file: string, text: string): Rendered {
  const tokens = markdown.parse(text, {})
  const headings = anchored(tokens)
  const targets = linked(tokens, file)
  return {
    html: markdown.renderer.render(tokens, markdown.options, {}),
    title: headings[0]?.text ?? file,
    headings,
    sections: sectionsOf(tokens, headings),
    targets,
  }
}

/** Links of a page by the first cell of the row of a table: the navigation of the site is the table of docs/README.md. */
export function linksByRow(text: string): ReadonlyMap<string, readonly { readonly target: string; readonly text: string }[]> {
  const rows = new Map<string, { target: string; text: string }[]>()
  let label: string | null = null
  for (const token of markdown.parse(text, {})) {
    if (token.type === 'tr_open') label = null
    if (token.type !== 'inline') continue
    const links = (token.children ?? []).flatMap((child, at, children) => {
      const target = child.type === 'link_open' ? attribute(child, 'href') : null
      return target === null ? [] : [{ target, text: children[at + 1]?.content ?? '' }]
    })
    label ??= plain(token)
    if (links.length > 0) rows.set(label, [...(rows.get(label) ?? []), ...links])
  }
  return rows
}
