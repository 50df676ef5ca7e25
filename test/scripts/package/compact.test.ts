/** The parts of the compiled sources that the package for npm leaves out. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { compact, compactCode } from '../../../scripts/package/compact.ts'
import { reachedDeclarations } from '../../../scripts/package/declarations.ts'

const folder = mkdtempSync(join(tmpdir(), 'deferd-compact-'))
afterAll(() => rmSync(folder, { recursive: true }))

test('the declarations of a package are those that its entries reach', () => {
  const files: Readonly<Record<string, string>> = {
    'index.d.ts': "import './a.ts';\nexport type B = import('./folder/b.js').B\nexport * from 'zod'\n",
    'a.d.ts': '',
    'folder/b.d.ts': "export { type C } from '../c.ts'\n",
    'c.d.ts': "import type { B } from './folder/b.ts'\n",
  }
  const reached = reachedDeclarations(['index.d.ts'], (path) => {
    const found = files[path]
    if (found === undefined) throw new Error(`${path} is absent`)
    return found
  })
  expect([...reached].toSorted()).toEqual(Object.keys(files).toSorted())
})

const FILES = {
  'index.d.ts': "/** The entry. */\nexport { start } from './start.ts';\n",
  'start.d.ts': "import type { Options } from './options.ts';\n/** Starts. */\nexport declare const start: (options: Options) => void;\n",
  'options.d.ts': 'export interface Options {\n    /** Private words. */\n    readonly type: "*/*";\n}\n',
  'private.d.ts': 'export declare const secret = 1;\n',
  'start.js': '// A comment.\nexport const start = (options) => {\n    return options ?? 1\n}\n',
  'system/node-version.js': '// Read by an old Node.\nexport const a = 1\n',
  'page/browser/page.js': '// A script.\nlet a\n',
}

test('private declarations are left out, and comments but those of the names that entries export', () => {
  for (const [path, text] of Object.entries(FILES)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  compact(folder, JSON.stringify({ exports: { '.': { types: './dist/index.d.ts', default: './dist/index.js' }, './package.json': {} } }))
  const kept = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) => /\.(?:js|ts)$/.test(path))
  const read = (path: string): string => readFileSync(join(folder, path), 'utf8')
  expect(kept.toSorted()).toEqual(
    Object.keys(FILES)
      .filter((path) => path !== 'private.d.ts')
      .toSorted(),
  )
  expect(read('start.d.ts')).toContain('/** Starts. */')
  expect(read('options.d.ts')).toBe('export interface Options {\n    readonly type: "*/*";\n}\n')
  expect(read('start.js')).not.toContain('comment')
  expect([read('system/node-version.js'), read('page/browser/page.js')]).toEqual([
    FILES['system/node-version.js'],
    FILES['page/browser/page.js'],
  ])
})

test('names stay in the code, and lines stay short', () => {
  const code = compactCode(`export function aLongName() {\n  ${'another(1, 2, 3);\n'.repeat(60)}}\n`)
  expect(code).toContain('function aLongName()')
  expect(Math.max(...code.split('\n').map((line) => line.length))).toBeLessThan(240)
})
