/** Man pages and completions are those of the present help texts, and the completion of bash works in bash. */
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { beforeAll, expect, test } from 'vitest'
import { generatedCommandFiles } from '../../scripts/command-files.ts'
import { processShell } from '../../src/cli/process-shell.ts'
import { buildProgram } from '../../src/cli/program.ts'
import { VERSION } from '../../src/system/version.ts'

const root = new URL('../../', import.meta.url)
const read = (path: string) => readFileSync(new URL(path, root), 'utf8')

let files: ReadonlyMap<string, string>
beforeAll(async () => {
  files = generatedCommandFiles(await buildProgram(processShell()), VERSION)
})

test('the files are up to date; node scripts/docs.ts writes them', () => {
  const outdated = [...files].filter(([path, text]) => read(path) !== text).map(([path]) => path)
  expect(outdated).toEqual([])
})

test('package.json has every man page', () => {
  const { man } = JSON.parse(read('package.json')) as { readonly man: readonly string[] }
  const pages = readdirSync(new URL('man', root)).map((name) => `./man/${name}`)
  expect(man).toEqual(pages.toSorted())
  expect([...files.keys()].filter((path) => path.startsWith('man/')).toSorted()).toEqual(pages.map((path) => path.slice(2)).toSorted())
})

test('no line of a man page is taken for an unknown request of roff', () => {
  const requests = new Set(['.\\"', '.TH', '.SH', '.TP', '.B', '.BR', '.br', '.PP', '.nf', '.fi'])
  const unknown = [...files].flatMap(([path, text]) =>
    path.startsWith('man/') ? text.split('\n').filter((line) => /^[.']/.test(line) && !requests.has(line.split(' ')[0] ?? '')) : [],
  )
  expect(unknown).toEqual([])
})

test.each<[string, string, readonly string[]]>([
  ['commands', 'deferd que', ['queue']],
  ['subcommands', 'deferd queue sh', ['show', 'shape', 'shares']],
  ['options', 'deferd queue list --older', ['--older-than']],
  ['values of an option', 'deferd queue list --queue def', ['deferred']],
  ['no words after an option with any value', 'deferd queue list --older-than ', []],
])('bash completes %s', (_, line, expected) => {
  const words = line.split(' ')
  const script = `source contrib/completions/deferd.bash
COMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length - 1}; _deferd; printf '%s\\n' "\${COMPREPLY[@]}"`
  const out = execFileSync('bash', ['--norc', '-c', script], { cwd: root, encoding: 'utf8' })
  expect(out.split('\n').filter((word) => word !== '')).toEqual(expected)
})
