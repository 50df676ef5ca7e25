/**
 * The examples in code of the pages about the test kit, as tests of this file. Their imports are replaced by the sources; jest's
 * functions, which vitest has too, are those of vitest. Declarations of types are left out: test/public-types.test.ts compiles some. Examples
 * for CommonJS run in a project of that type, with the sources in the place of the package.
 */
import * as assert from 'node:assert/strict'
import * as crypto from 'node:crypto'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as nodemailer from 'nodemailer'
import * as vitest from 'vitest'
import * as backoff from '../../src/backoff/index.ts'
import * as testkit from '../../src/testkit/index.ts'
import { functionOf } from '../support/example-code.ts'
import { blocksOf } from '../support/fenced-blocks.ts'

interface PackageJson {
  readonly name: string
  readonly type: string
  /** A file, or the files of an entry for types and code. */
  readonly exports: Readonly<Record<string, string | { readonly default: string }>>
}

const modules: Readonly<Record<string, object>> = {
  nodemailer,
  vitest,
  'deferd/testkit': testkit,
  'deferd/backoff': backoff,
  '@jest/globals': { ...vitest, jest: vitest.vi },
  'node:test': vitest,
  'node:assert/strict': assert,
  'node:crypto': crypto,
}

const pages = ['docs/testkit.md', 'docs/testkit-oauth.md', 'docs/testkit-runners.md'].flatMap((page) =>
  blocksOf(page).filter(({ language, text }) => ['ts', 'js'].includes(language) && !text.includes('declare module')),
)
const [required, examples] = [true, false].map((wanted) => pages.filter(({ text }) => text.includes(' = require(') === wanted))

for (const { page, line, text } of examples ?? []) {
  const run = functionOf(text, modules)
  // A block with tests registers them; any other block is a test itself.
  if (/^test\(/m.test(text)) await run()
  else vitest.test(`${page}:${line}`, async () => void (await run()))
}

vitest.test('a project with "type": "commonjs" loads the test kit with require', () => {
  const project = mkdtempSync(join(tmpdir(), 'deferd-commonjs-'))
  try {
    const root = join(import.meta.dirname, '../..')
    const { name, type, exports: entries } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as PackageJson
    const sources = Object.entries(entries).flatMap(([entry, code]) =>
      typeof code === 'string' ? [] : [[entry, code.default.replace('/dist/', '/src/').replace(/js$/, 'ts')] as const],
    )
    const deferd = join(project, 'node_modules/deferd')
    mkdirSync(deferd, { recursive: true })
    symlinkSync(join(root, 'src'), join(deferd, 'src'))
    symlinkSync(join(root, 'node_modules/nodemailer'), join(project, 'node_modules/nodemailer'))
    writeFileSync(join(deferd, 'package.json'), JSON.stringify({ name, type, exports: Object.fromEntries(sources) }))
    writeFileSync(join(project, 'package.json'), '{ "type": "commonjs" }')
    for (const [n, { text }] of (required ?? []).entries()) writeFileSync(join(project, `${n}.test.js`), text)
    const { stdout, stderr, status } = spawnSync(process.execPath, ['--test', '--test-reporter=tap'], { cwd: project, encoding: 'utf8' })
    vitest.expect([status, stderr]).toEqual([0, ''])
    vitest.expect(stdout).toContain('# pass 1\n')
  } finally {
    rmSync(project, { recursive: true })
  }
})
