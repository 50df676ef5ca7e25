/**
 * The examples in code of the pages about the test kit, as tests of this file. Their imports are replaced by the sources; jest's
 * functions, which vitest has too, are those of vitest. Declarations of types are left out: test/public-types.test.ts compiles some.
 */
import { stripTypeScriptTypes } from 'node:module'
import * as assert from 'node:assert/strict'
import * as nodemailer from 'nodemailer'
import * as vitest from 'vitest'
import * as backoff from '../../src/backoff/index.ts'
import * as testkit from '../../src/testkit/index.ts'
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

type Body = (modules: object) => Promise<void>
const AsyncFunction = (async () => undefined).constructor as new (parameter: string, text: string) => Body

/** The code of a block as a function. Throws for an import that is not listed. */
function functionOf(text: string): Body {
  const code = stripTypeScriptTypes(text)
  const body = code.replaceAll(/^import (\w+|\{[^}]+\}) from '([^']+)'/gm, (_, names: string, from: string) => {
    if (modules[from] === undefined) throw new Error(`an example imports ${from}, which this test does not know`)
    return `const ${names.startsWith('{') ? names : `{ default: ${names} }`} = modules[${JSON.stringify(from)}]`
  })
  return new AsyncFunction('modules', body)
}

const examples = ['docs/testkit.md', 'docs/testkit-runners.md', 'docs/events.md'].flatMap((page) =>
  blocksOf(page).filter(({ language, text }) => ['ts', 'js'].includes(language) && !text.includes('declare module')),
)

for (const { page, line, text } of examples) {
  const run = functionOf(text)
  // A block with tests registers them; any other block is a test itself.
  if (/^test\(/m.test(text)) await run(modules)
  else vitest.test(`${page}:${line}`, () => run(modules))
}
