/**
 * The examples in code of the pages about the test kit, as tests of this file. Their imports are replaced by the sources; jest's
 * functions, which vitest has too, are those of vitest. Declarations of types are left out: test/public-types.test.ts compiles some.
 */
import * as assert from 'node:assert/strict'
import * as nodemailer from 'nodemailer'
import * as vitest from 'vitest'
import * as backoff from '../../src/backoff/index.ts'
import * as testkit from '../../src/testkit/index.ts'
import { functionOf } from '../support/example-code.ts'
import { blocksOf } from '../support/fenced-blocks.ts'

const modules: Readonly<Record<string, object>> = {
  nodemailer,
  vitest,
  'deferd/testkit': testkit,
  'deferd/backoff': backoff,
  '@jest/globals': { ...vitest, jest: vitest.vi },
  'node:test': vitest,
  'node:assert/strict': assert,
}

const examples = ['docs/testkit.md', 'docs/testkit-runners.md', 'docs/relay-events.md'].flatMap((page) =>
  blocksOf(page).filter(({ language, text }) => ['ts', 'js'].includes(language) && !text.includes('declare module')),
)

for (const { page, line, text } of examples) {
  const run = functionOf(text, modules)
  // A block with tests registers them; any other block is a test itself.
  if (/^test\(/m.test(text)) await run()
  else vitest.test(`${page}:${line}`, async () => void (await run()))
}
