/** The published package: its entries, the files that its pages refer to, and the checks that contributors and CI run. */
import { execFileSync } from 'node:child_process'
import { existsSync, globSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join, posix } from 'node:path'
import { describe, expect, test } from 'vitest'

const root = join(import.meta.dirname, '..')
const read = (path: string): string => readFileSync(join(root, path), 'utf8')

interface PackageJson {
  readonly description: string
  readonly exports: Readonly<Record<string, { readonly types: string; readonly default: string } | string>>
  readonly scripts: Readonly<Record<string, string>>
}

const manifest = JSON.parse(read('package.json')) as PackageJson

/** The entries that are modules. */
const modules = Object.entries(manifest.exports).flatMap(([name, entry]) => (typeof entry === 'string' ? [] : [{ name, ...entry }]))

describe('package.json', () => {
  test('every entry names a source file and its types', () => {
    expect(modules.length).toBeGreaterThan(3)
    for (const { name, types, default: code } of modules) {
      expect(types, name).toBe(code.replace(/\.js$/, '.d.ts'))
      expect(existsSync(join(root, code.replace('./dist/', 'src/').replace(/\.js$/, '.ts'))), name).toBe(true)
    }
  })

  test('docs/compatibility.md has a row for each entry', () => {
    const page = read('docs/compatibility.md')
    const names = modules.map(({ name }) => `deferd${name.slice(1)}`)
    expect(names.filter((name) => !new RegExp(`\\| package \`${name}\` +\\| (stable|experimental) `).test(page))).toEqual([])
  })

  test('`npm run check` runs what CI runs after `npm ci`', () => {
    const commands = (text: string): string[] => text.split(/\s*&&\s*|\n(?:timeout \w+ )?/).filter((command) => command.startsWith('npm '))
    const ci = commands(read('.ci/run'))
    expect(ci.slice(0, 2)).toEqual(['npm ci', 'npm ci --prefix clients/openapi'])
    expect(ci.slice(2)).toEqual(commands(manifest.scripts['check'] ?? ''))
  })
})

describe('the packed files', () => {
  const files = packedFiles()

  test('hold what a relay needs at run time', () => {
    expect(files).toEqual(
      expect.arrayContaining(['bin/deferd.js', 'migrations/0001_queue.sql', 'migrations/0002_move.sql', 'LICENSE', 'README.md']),
    )
  })

  // The other pages are on the site: they would take a fifth of the package.
  test('name files that are there, in the package or beside it', () => {
    const pages = files.filter((file) => file.endsWith('.md'))
    expect(pages).toEqual(expect.arrayContaining(['README.md', 'CHANGELOG.md', 'SECURITY.md']))
    const missing = pages.flatMap((page) =>
      references(page)
        .filter((target) => !existsSync(join(root, target)))
        .map((target) => `${page} -> ${target}`),
    )
    expect(missing).toEqual([])
  })

  test('have no pictures, tests or sources', () => {
    expect(files.filter((file) => /^(?:docs|test|src|scripts|contrib)\//.test(file))).toEqual([])
  })
})

describe('the pages for contributors', () => {
  const folders = [...read('ARCHITECTURE.md').matchAll(/`(src\/[\w/-]+\/README\.md)`/g)].map(([, path = '']) => path)

  test.each(['ARCHITECTURE.md', 'CONTRIBUTING.md', 'test/README.md', ...folders])('%s names existing files only', (page) => {
    const missing = [...read(page).matchAll(/`([\w./-]+)`/g)].flatMap(([, path = '']) => (isPath(path) && !exists(path) ? [path] : []))
    expect(missing).toEqual([])
  })

  test.each(['CONTRIBUTING.md', 'test/README.md'])('each name in a recipe or a row of %s occurs in a file that it names', (page) => {
    const [, text = ''] = /(?:^## Recipes$|^## Which world$)([^]*)/m.exec(read(page)) ?? []
    const sections = page === 'CONTRIBUTING.md' ? text.split(/^### /m) : text.split('\n').filter((line) => line.startsWith('|'))
    const strange = sections.flatMap((section) => {
      const marked = [...section.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code)
      const sources = marked.flatMap((code) => globSync(code, { cwd: root })).flatMap(sourcesAt)
      return marked.filter((code) => NAME.test(code) && !sources.some((source) => source.includes(code)))
    })
    expect(strange).toEqual([])
  })

  test('ARCHITECTURE.md names the README of every folder that has one', () => {
    const found = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('README.md'))
    expect(folders.toSorted()).toEqual(found.map((path) => `src/${path}`).toSorted())
  })

  test('ARCHITECTURE.md is read in ten minutes: at most 1,000 words, and 80 in a paragraph', () => {
    const text = read('ARCHITECTURE.md')
    expect(text.split(/\s+/).length).toBeLessThanOrEqual(1_000)
    const paragraphs = text.split(/\n\n|\n(?=\d+\. |- )/).filter((paragraph) => !/^(?:\||```)/.test(paragraph))
    expect(paragraphs.filter((paragraph) => paragraph.split(/\s+/).length > 80)).toEqual([])
  })
})

/** A folder and a name, but neither a package entry nor a placeholder in capitals. */
const isPath = (text: string): boolean => text.includes('/') && !text.startsWith('deferd/') && !/^\/|[A-Z]{3}/.test(text)

/** A name in TypeScript that is no plain word: `openSmtpd`, `KEYS`, `this.#stopLater(…)` is none. */
const NAME = /^(?:[A-Z]\w*|[a-z]+[A-Z]\w*)$/

/** Text of a file, or of the files in a folder. */
const sourcesAt = (path: string): readonly string[] => {
  const full = join(root, path)
  if (!statSync(full).isDirectory()) return [readFileSync(full, 'utf8')]
  return readdirSync(full, { recursive: true, encoding: 'utf8' }).flatMap((name) =>
    name.endsWith('.ts') ? [readFileSync(join(full, name), 'utf8')] : [],
  )
}

/** Pages name files of `src` with or without the folder and the ending. */
const exists = (path: string): boolean => [path, `src/${path}`, `src/${path}.ts`].some((candidate) => existsSync(join(root, candidate)))

/** Paths in the tarball, by npm itself; the build is not run, so `dist` is absent. */
function packedFiles(): readonly string[] {
  const npm = process.env['npm_execpath']
  const [program, first] = npm === undefined ? ['npm', []] : [process.execPath, [npm]]
  const output = execFileSync(program, [...first, 'pack', '--dry-run', '--json', '--ignore-scripts'], { cwd: root, encoding: 'utf8' })
  const parsed = JSON.parse(output) as readonly Packed[] | Readonly<Record<string, Packed>>
  return Object.values(parsed).flatMap(({ files }) => files.map(({ path }) => path))
}

interface Packed {
  readonly files: readonly { readonly path: string }[]
}

/** Relative links of a page, and the examples, migrations and contributed files that its text names. */
function references(page: string): readonly string[] {
  const text = read(page)
  const links = [...text.matchAll(/\]\((?!\w+:|#)([^)#]+)/g)].map(([, target]) => posix.join(posix.dirname(page), target ?? ''))
  const named = [...text.matchAll(/\b(?:examples|contrib|migrations)\/[\w.-]+(?:\/[\w.-]+)*\.\w+/g)].map(([path]) => path)
  return [...new Set([...links, ...named])]
}
