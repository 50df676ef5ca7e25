/** The frame of a page: navigation, search, version, and the contents of the page. */
import { posix } from 'node:path'
import { addressOf, relativeAddress } from './pages.ts'
import { linksByRow, type Heading, type Rendered } from './render.ts'

const escaped = (text: string): string => text.replaceAll(/[&<>"]/g, (mark) => `&#${mark.codePointAt(0)};`)

export interface Site {
  readonly version: string
  /** The text of docs/README.md. */
  readonly index: string
}

const FOLDER = 'docs'

/** The navigation from the page at `from`. A page has one link, in the first row that names it. */
function navigation({ index }: Site, from: string): string {
  const told = new Set<string>()
  const groups = [...linksByRow(index)].map(([label, links]) => {
    const items = links.flatMap(({ target, text }) => {
      const [path = ''] = target.split('#')
      const address = addressOf(posix.join(FOLDER, path))
      if (path === '' || /^\w+:/.test(target) || told.has(address)) return []
      told.add(address)
      const current = address === from ? ' aria-current="page"' : ''
      return [`<li><a href="${relativeAddress(from, address)}"${current}>${escaped(text)}</a></li>`]
    })
    return items.length === 0 ? '' : `<li><span>${escaped(label)}</span><ul>${items.join('')}</ul></li>`
  })
  return `<ul>${groups.join('\n')}</ul>`
}

const contents = (headings: readonly Heading[]): string => {
  const shown = headings.filter(({ level }) => level === 2 || level === 3)
  if (shown.length < 3) return ''
  const items = shown.map(({ level, anchor, text }) => `<li class="level-${level}"><a href="#${escaped(anchor)}">${escaped(text)}</a></li>`)
  return `<nav class="contents" aria-label="On this page"><ul>${items.join('')}</ul></nav>`
}

/** The whole page at the address `from`. */
export function framed(site: Site, from: string, { html, title, headings }: Rendered): string {
  const to = (address: string): string => relativeAddress(from, address)
  return `<!doctype html>
<html lang="en" data-root="${to('.')}" data-version="${escaped(site.version)}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(title)}${title === 'deferd' ? '' : ' – deferd'}</title>
<link rel="icon" href="${to('site/icon.svg')}" type="image/svg+xml">
<link rel="stylesheet" href="${to('site/site.css')}">
<script src="${to('site/site.js')}" defer></script>
</head>
<body>
<a class="skip" href="#main">Skip to the text</a>
<header>
<a class="home" href="${to('index.html')}">deferd</a>
<form role="search"><label>Search <input type="search" name="q" autocomplete="off" aria-controls="results"></label></form>
<label class="version">Version <select><option>${escaped(site.version)}</option></select></label>
<button type="button" class="mode" aria-pressed="false">Dark</button>
</header>
<section id="results" aria-label="Results" aria-live="polite" hidden></section>
<div class="columns">
<nav class="pages" aria-label="Pages">
<a href="${to('docs/index.html')}">All pages</a>
${navigation(site, from)}
</nav>
<main id="main" tabindex="-1">
${html}</main>
${contents(headings)}
</div>
</body>
</html>
`
}
