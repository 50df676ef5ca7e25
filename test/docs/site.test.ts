/** The site: complete, equal in two runs, without a broken link, and in a browser without a request to another host. */
import { createServer } from 'node:http'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { extname, join, posix } from 'node:path'
import type { AddressInfo } from 'node:net'
import MiniSearch from 'minisearch'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { pageFiles } from '../../scripts/site/pages.ts'
import { render } from '../../scripts/site/render.ts'
import { SEARCH, searchOptions } from '../../scripts/site/search.ts'
import { brokenLinks, writeSite } from '../../scripts/site/write-site.ts'
import { launchBrowser, noBrowser } from '../support/browser.ts'

const ROOT = join(import.meta.dirname, '../..')
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

const folder = mkdtempSync(join(tmpdir(), 'deferd-site-'))
const out = join(folder, 'site')
const homepage = 'https://deferd.example.org'
const site = (version: string, to = out): void => writeSite({ root: ROOT, out: to, version, homepage })

let seconds = 0
beforeAll(() => {
  const begin = performance.now()
  site('1.0.0')
  seconds = (performance.now() - begin) / 1000
  site('1.10.0')
  site('1.9.0')
})

afterAll(() => rmSync(folder, { recursive: true }))

const filesIn = (path: string): readonly string[] =>
  readdirSync(path, { recursive: true, encoding: 'utf8' })
    .filter((name) => statSync(join(path, name)).isFile())
    .toSorted()

const read = (path: string): string => readFileSync(join(out, path), 'utf8')
const pages = (): readonly string[] => filesIn(join(out, '1.0.0')).filter((name) => name.endsWith('.html'))

/** Values of the attributes that name a resource, in the form of the browser. */
const resources = (html: string): readonly string[] =>
  [...html.replaceAll(/<pre[ >][^]*?<\/pre>/g, '').matchAll(/\s(?:href|src|srcset|data|poster|action)="([^"]*)"/g)].map(([, value = '']) =>
    value.replaceAll('&amp;', '&'),
  )

const ids = new Map<string, ReadonlySet<string>>()

/** Places of a page. */
function idsOf(page: string): ReadonlySet<string> {
  const known = ids.get(page) ?? new Set([...read(`1.0.0/${page}`).matchAll(/\sid="([^"]*)"/g)].map(([, id = '']) => id))
  ids.set(page, known)
  return known
}

test('it is built within half a minute', () => {
  expect(seconds).toBeLessThan(30)
})

test('each page of the repository is there, and is reached by links from the first', () => {
  const expected = pageFiles(ROOT).map((file) => file.replace(/README\.md$/, 'index.md').replace(/\.md$/, '.html'))
  expect(expected.length).toBeGreaterThan(50)
  expect(pages()).toEqual(expected.toSorted())
  const reached = new Set(['index.html'])
  for (const page of reached)
    for (const link of resources(read(`1.0.0/${page}`))) {
      const target = posix.join(posix.dirname(page), link.split('#')[0] ?? '')
      if (!/^\w+:/.test(link) && target.endsWith('.html')) reached.add(target)
    }
  expect([...reached].toSorted()).toEqual(pages())
})

test('each link leads to a page and a place in it, each picture is there, and none is at another host', () => {
  let links = 0
  const problems = pages().flatMap((page) =>
    resources(read(`1.0.0/${page}`)).flatMap((link) => {
      links += 1
      const [path = '', fragment] = link.split('#')
      if (/^\w+:/.test(link)) return /^(?:https?|mailto):/.test(link) ? [] : [`${page}: ${link}`]
      const target = path === '' ? page : posix.join(posix.dirname(page), path)
      if (!existsSync(join(out, '1.0.0', target))) return [`${page}: ${link}`]
      const isThere = fragment === undefined || fragment === '' || idsOf(target).has(decodeURIComponent(fragment))
      return isThere ? [] : [`${page}: ${link}`]
    }),
  )
  expect(problems).toEqual([])
  expect(links).toBeGreaterThan(1000)
  const loaded = pages().flatMap((page) =>
    [...read(`1.0.0/${page}`).matchAll(/<(?:script|link|img|source|iframe)\s[^>]*/g)].map(([tag]) => tag),
  )
  expect(loaded.filter((tag) => /(?:src|href)="(?:\w+:)?\/\//.test(tag))).toEqual([])
})

test('the pictures are those of the pages', () => {
  const pictures = filesIn(join(out, '1.0.0')).filter((name) => /\.(?:png|svg)$/.test(name) && name.startsWith('docs/'))
  expect(pictures).toContain('docs/images/queue-show.svg')
  expect(pictures.filter((name) => name.endsWith('.png')).length).toBeGreaterThan(0)
  for (const name of pictures) expect(readFileSync(join(out, '1.0.0', name)).equals(readFileSync(join(ROOT, name))), name).toBe(true)
})

test('a broken link is found, and named with its page', () => {
  const broken = new Map([['docs/a.md', render('docs/a.md', '# A\n\n[there](b.md), [here](#a), [where](#b), ![p](images/none.png)\n')]])
  expect(brokenLinks(broken, ROOT)).toEqual(['docs/a.md: docs/b.md', 'docs/a.md: docs/a.md#b', 'docs/a.md: docs/images/none.png'])
})

test('two runs give equal files', () => {
  const other = join(folder, 'other')
  site('1.0.0', other)
  const files = filesIn(join(other, '1.0.0'))
  expect(files).toEqual(filesIn(join(out, '1.0.0')))
  for (const name of files) expect(readFileSync(join(other, '1.0.0', name)).equals(readFileSync(join(out, '1.0.0', name))), name).toBe(true)
})

test('a version leaves the others, and the first page leads to the newest', () => {
  expect(JSON.parse(read('versions.json'))).toEqual(['1.10.0', '1.9.0', '1.0.0'])
  expect(read('index.html')).toContain('url=1.10.0/index.html')
})

test('the map of the site has the address of each page', () => {
  const addresses = [...read('1.0.0/sitemap.xml').matchAll(/<loc>([^<]*)<\/loc>/g)].map(([, address = '']) => address)
  expect(addresses.toSorted()).toEqual(pages().map((page) => `${homepage}/1.0.0/${page}`))
})

/** Terms, and the page that is looked for. */
const TERMS: readonly (readonly [string, string])[] = [
  ['maximal_backoff_time', 'docs/configuration.html'],
  ['maximal_queue_lifetime', 'docs/configuration.html'],
  ['smtpd_listen', 'docs/configuration.html'],
  ['queue_database', 'docs/configuration.html'],
  ['greylist', 'docs/faults.html'],
  ['postsuper', 'docs/commands.html'],
  ['mailq', 'docs/commands.html'],
  ['queue show', 'docs/commands.html'],
  ['webhook add', 'docs/commands.html'],
  ['deferd retry', 'docs/commands.html'],
  ['DKIM', 'docs/dkim.html'],
  ['MTA-STS', 'docs/tls.html'],
  ['DANE', 'docs/tls.html'],
  ['Microsoft 365', 'docs/microsoft-365.html'],
  ['import postfix', 'docs/import.html'],
  ['backup and restore', 'docs/operations.html'],
  ['metrics', 'docs/monitoring.html'],
  ['quotas', 'docs/quotas.html'],
  ['suppression list', 'docs/suppression.html'],
  ['GET /messages', 'docs/api.html'],
]

describe('the search', () => {
  test('finds each of twenty terms within the first three results', () => {
    const index = MiniSearch.loadJSON(read('1.0.0/site/search.json'), searchOptions)
    const first = (term: string): readonly string[] =>
      index
        .search(term, SEARCH)
        .slice(0, 3)
        .map((one) => String(one['at']).split('#')[0] ?? '')
    expect(TERMS.length).toBe(20)
    expect(TERMS.flatMap(([term, page]) => (first(term).includes(page) ? [] : [{ term, page, found: first(term) }]))).toEqual([])
  })
})

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css',
  '.js': 'text/javascript',
  '.json': 'application/json',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
}

describe.skipIf(noBrowser !== null)(noBrowser === null ? 'in Chromium' : `in a browser (skipped: ${noBrowser})`, () => {
  const server = createServer((request, response) => {
    const path = join(out, decodeURIComponent(new URL(request.url ?? '/', 'http://x').pathname).replace(/\/$/, '/index.html'))
    if (!existsSync(path)) return void response.writeHead(404).end()
    response.writeHead(200, { 'Content-Type': TYPES[extname(path)] ?? 'text/plain' }).end(readFileSync(path))
  })
  let browser: Browser
  let origin = ''

  beforeAll(async () => {
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    browser = await launchBrowser()
  })

  afterAll(async () => {
    await browser?.close()
    server.closeAllConnections()
    server.close()
  })

  /** A tab, with the requests that it makes and the errors of its scripts. */
  async function tab(): Promise<{ readonly page: Page; readonly requests: readonly string[]; readonly errors: readonly string[] }> {
    const page = await browser.newPage()
    onTestFinished(() => page.close())
    const [requests, errors] = [[] as string[], [] as string[]]
    page.on('request', (request) => void requests.push(request.url()))
    page.on('pageerror', (error) => void errors.push(error.message))
    page.on('response', (response) => {
      if (response.status() >= 400) errors.push(`${response.url()}: ${response.status()}`)
    })
    return { page, requests, errors }
  }

  test('all pages are shown without a request to another host, and without an error', async () => {
    const { page, requests, errors } = await tab()
    for (const name of pages()) await page.goto(`${origin}/1.0.0/${name}`, { waitUntil: 'load' })
    expect(requests.length).toBeGreaterThan(pages().length * 2)
    expect(requests.filter((url) => !url.startsWith(`${origin}/`) && !url.startsWith('data:'))).toEqual([])
    expect(errors).toEqual([])
  })

  test('a search shows results of this version, and leads to the place', async () => {
    const { page, requests, errors } = await tab()
    await page.goto(`${origin}/1.0.0/index.html`)
    expect(requests.filter((url) => url.endsWith('search.json'))).toEqual([])
    await page.getByRole('searchbox', { name: 'Search' }).fill('maximal_backoff')
    await page.getByRole('link', { name: 'maximal_backoff_time', exact: true }).first().click()
    await page.waitForURL(/\/1\.0\.0\/docs\/\w+\.html#/)
    expect(errors).toEqual([])
    expect(requests.filter((url) => !url.startsWith(`${origin}/`))).toEqual([])
  })

  test('another version is chosen, and keeps the page', async () => {
    const { page } = await tab()
    await page.goto(`${origin}/1.0.0/docs/dkim.html`)
    const versions = page.getByLabel('Version')
    await expect.poll(() => versions.locator('option').allTextContents()).toEqual(['1.10.0', '1.9.0', '1.0.0'])
    await versions.selectOption('1.9.0')
    await page.waitForURL(`${origin}/1.9.0/docs/dkim.html`)
  })

  test('the dark mode is that of the system, until another is chosen', async () => {
    const { page } = await tab()
    const ground = () => page.evaluate('getComputedStyle(document.body).backgroundColor')
    await page.emulateMedia({ colorScheme: 'dark' })
    await page.goto(`${origin}/1.0.0/index.html`)
    const dark = await ground()
    await page.getByRole('button', { name: 'Dark' }).click()
    const light = await ground()
    expect(light).not.toBe(dark)
    await page.goto(`${origin}/1.0.0/docs/dkim.html`)
    expect(await ground()).toBe(light)
  })

  test.each(['light', 'dark'] as const)('axe finds no problem in %s mode', async (colorScheme) => {
    const { page } = await tab()
    await page.emulateMedia({ colorScheme })
    for (const name of ['index.html', 'docs/index.html', 'docs/page.html', 'docs/tls.html']) {
      await page.goto(`${origin}/1.0.0/${name}`)
      await page.addScriptTag({ content: AXE })
      const problems = await page.evaluate(
        `axe.run({ runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'] }).then(({ violations }) => violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html.slice(0, 160))]))`,
      )
      expect(problems, name).toEqual([])
    }
  })

  test('from files, without a server, a page is shown and says that the search needs one', async () => {
    const { page, errors } = await tab()
    await page.goto(`file://${join(out, '1.0.0/docs/dkim.html')}`)
    await expect.poll(() => page.locator('h1').textContent()).toMatch(/DKIM/)
    await page.getByRole('searchbox', { name: 'Search' }).fill('queue')
    await page.getByText('the search needs the site on a web server').waitFor()
    expect(errors).toEqual([])
  })
})
