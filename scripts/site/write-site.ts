/** Writes the site of a version: its pages, its pictures, and the index of its search. Equal sources give equal files. */
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { framed } from './frame.ts'
import { addressOf, pageFiles } from './pages.ts'
import { render, type Rendered } from './render.ts'
import { scriptOptions, searchIndex } from './search.ts'

/** The colours of the page of deferd, in light and dark. Throws when its style sheet has another form. */
function colours(css: string): string {
  const [light, dark] = [...css.matchAll(/:root \{([^}]*)\}/g)].map(([, block = '']) => block)
  if (light === undefined || dark === undefined) throw new Error('page.css has no colours in two blocks of :root')
  return `:root {${light}}\n@media (prefers-color-scheme: dark) {\n  :root:not([data-mode='light']) {${dark}}\n}\n:root[data-mode='dark'] {${dark}}\n`
}

/** Problems of links: a page or picture that the site does not have, or a page without the heading. */
export function brokenLinks(pages: ReadonlyMap<string, Rendered>, root: string): readonly string[] {
  const missing = (target: string): boolean => {
    const [path = '', fragment] = target.split('#')
    const page = pages.get(path)
    if (page === undefined) return !path.startsWith('docs/images/') || !existsSync(join(root, path))
    return fragment !== undefined && !page.headings.some(({ anchor }) => anchor === fragment)
  }
  return [...pages].flatMap(([file, { targets }]) => targets.filter(missing).map((target) => `${file}: ${target}`))
}

/** The pages of the checkout, rendered. */
export const renderedPages = (root: string): ReadonlyMap<string, Rendered> =>
  new Map(pageFiles(root).map((file) => [file, render(file, readFileSync(join(root, file), 'utf8'))]))

/** The versions in a folder of sites, the newest first. */
const versionsIn = (out: string): readonly string[] =>
  readdirSync(out)
    .filter((name) => /^\d+\.\d+\.\d+/.test(name) && existsSync(join(out, name, 'index.html')))
    .toSorted((a, b) => b.localeCompare(a, 'en', { numeric: true }))

/** The first page of the site leads to the newest version. */
const entry = (version: string): string =>
  `<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>deferd</title><meta http-equiv="refresh" content="0; url=${version}/index.html"></head>` +
  `<body><a href="${version}/index.html">deferd ${version}</a></body></html>\n`

export interface SiteOptions {
  readonly root: string
  /** Folder of the sites of all versions. Those of other versions stay. */
  readonly out: string
  readonly version: string
  /** URL of the site for its map; empty when it is unknown, and there is no map. */
  readonly homepage: string
}

/** Throws when a link leads nowhere. */
export function writeSite({ root, out, version, homepage }: SiteOptions): void {
  const folder = join(out, version)
  rmSync(folder, { recursive: true, force: true })
  const write = (path: string, text: string): void => {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  const read = (path: string): string => readFileSync(join(root, path), 'utf8')
  const pages = renderedPages(root)
  const broken = brokenLinks(pages, root)
  if (broken.length > 0) throw new Error(`links that lead nowhere:\n${broken.join('\n')}`)
  const site = { version, index: read('docs/README.md') }
  for (const [file, page] of pages) write(addressOf(file), framed(site, addressOf(file), page))
  const pictures = new Set([...pages.values()].flatMap(({ targets }) => targets.filter((target) => target.startsWith('docs/images/'))))
  for (const path of pictures) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    copyFileSync(join(root, path), join(folder, path))
  }
  write('site/site.css', `${colours(read('src/page/browser/page.css'))}${read('scripts/site/site.css')}`)
  write('site/site.js', `${scriptOptions()}${read('scripts/site/site.js')}`)
  write('site/icon.svg', read('src/page/browser/icon.svg'))
  write('site/minisearch.js', readFileSync(join(dirname(createRequire(import.meta.url).resolve('minisearch')), '../umd/index.js'), 'utf8'))
  write('site/search.json', JSON.stringify(searchIndex(pages)))
  const addresses = [...pages.keys()].map((file) => `<url><loc>${homepage}/${version}/${addressOf(file)}</loc></url>\n`)
  if (homepage !== '')
    write(
      'sitemap.xml',
      `<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n${addresses.join('')}</urlset>\n`,
    )
  const versions = versionsIn(out)
  writeFileSync(join(out, 'versions.json'), JSON.stringify(versions))
  writeFileSync(join(out, 'index.html'), entry(versions[0] ?? version))
}
