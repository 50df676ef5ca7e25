/**
 * Runs the tests of each client in clients/ whose tools are on this machine, and the examples of its language in docs/lab.md, with the `deferd` of
 * this checkout in PATH, and prints a line for each other one. With `clients` in DEFERD_TEST_REQUIRE, an absent tool is a failure.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join, resolve } from 'node:path'
import { blocksOf, blockWith } from '../test/support/fenced-blocks.ts'
import { requiredNeeds } from '../test/support/required.ts'

const root = join(import.meta.dirname, '..')

interface Client {
  readonly name: string
  /** The reason why its tests cannot run here; null when they can. */
  readonly missing: () => string | null
  /** Runs its tests in a folder for files. Throws when they fail. */
  readonly test: (run: Run, folder: string) => void
}

/** Runs a program in a folder of clients/, or in one with an absolute path. */
type Run = (folder: string, program: string, args: readonly string[]) => void

const answers = (program: string, ...args: readonly string[]): boolean => spawnSync(program, args, { stdio: 'ignore' }).status === 0

const PAGE = 'docs/lab.md'

/** The examples of a language on the page. Throws when there are none. */
function examplesIn(language: string): readonly string[] {
  const examples = blocksOf(PAGE).filter((block) => block.language === language)
  if (examples.length === 0) throw new Error(`${PAGE} has no example in ${language}`)
  return examples.map(({ text }) => text)
}

/** The example of a language on the page. Throws unless there is exactly one. */
function exampleIn(language: string): string {
  const [example = '', ...others] = examplesIn(language)
  if (others.length > 0) throw new Error(`${PAGE} has more than one example in ${language}`)
  return example
}

/** Writes the files of a project as a reader of the page has. Returns its folder. */
function projectWith(files: Readonly<Record<string, string>>, folder: string): string {
  mkdirSync(folder)
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content)
  return folder
}

const JUNIT = '/usr/share/java/junit-platform-console-standalone.jar'

const javaSources = (folder: string): readonly string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.java'))
    .map((name) => join(folder, name))

/** Compiles sources for the oldest Java that the client supports, and runs the tests among them. */
function testJava(
  run: Run,
  { folder, classes, sources }: { readonly folder: string; readonly classes: string; readonly sources: readonly string[] },
): void {
  run(folder, 'javac', ['--release', '11', '-encoding', 'UTF-8', '-Xlint:all,-path', '-Werror', '-d', classes, '-cp', JUNIT, ...sources])
  const options = ['--scan-class-path', '--fail-if-no-tests', '--disable-banner', '--disable-ansi-colors']
  run(folder, 'java', ['-jar', JUNIT, '--class-path', classes, ...options])
}

function missingOfJava(): string | null {
  if (!answers('javac', '-version')) return 'javac is not installed'
  return existsSync(JUNIT) ? null : `JUnit 5 is not installed as ${JUNIT}`
}

const CLIENTS: readonly Client[] = [
  {
    name: 'python',
    missing: () => (answers('python3', '-c', 'import pytest, venv') ? null : 'python3 with pytest is not installed'),
    test: (run, folder) => {
      const python = join(folder, 'venv/bin/python')
      run('python', 'python3', ['-m', 'venv', '--system-site-packages', join(folder, 'venv')])
      run('python', python, ['-m', 'pip', 'install', '--quiet', '--no-index', '.'])
      const examples = Object.fromEntries(examplesIn('python').map((text, n) => [`test_example_${n}.py`, text]))
      const example = projectWith(examples, join(folder, 'python'))
      for (const tests of ['tests', example]) run('python', python, ['-m', 'pytest', '-q', '-p', 'no:cacheprovider', tests])
    },
  },
  {
    name: 'go',
    missing: () => (answers('go', 'version') ? null : 'go is not installed'),
    test: (run, folder) => {
      const module = `module app\n\ngo 1.19\n\n${blockWith(PAGE, 'replace deferd').text.replace('../deferd', root)}`
      const example = projectWith({ 'welcome_test.go': exampleIn('go'), 'go.mod': module }, join(folder, 'go'))
      for (const tests of ['go', example]) run(tests, 'go', ['test', '-count=1', './...'])
    },
  },
  {
    name: 'java',
    missing: missingOfJava,
    test: (run, folder) => {
      const client = join(root, 'clients/java/src')
      const example = projectWith({ 'WelcomeTest.java': exampleIn('java') }, join(folder, 'java'))
      testJava(run, { folder: 'java', classes: join(folder, 'classes'), sources: javaSources(client) })
      const sources = [...javaSources(join(client, 'main')), ...javaSources(example)]
      testJava(run, { folder: example, classes: join(folder, 'example-classes'), sources })
    },
  },
]

/** A folder with the program `deferd` of this checkout. */
function programFolder(folder: string): string {
  const program = join(folder, 'deferd')
  writeFileSync(program, `#!/bin/sh\nexec "${process.execPath}" "${join(root, 'bin/deferd.js')}" "$@"\n`)
  chmodSync(program, 0o755)
  return folder
}

const folder = mkdtempSync(join(tmpdir(), 'deferd-clients-'))
try {
  const path = `${programFolder(folder)}${delimiter}${process.env['PATH'] ?? ''}`
  const env = { ...process.env, PATH: path, PYTHONDONTWRITEBYTECODE: '1' }
  const run: Run = (where, program, args) =>
    void execFileSync(program, args, { cwd: resolve(root, 'clients', where), env, stdio: 'inherit' })
  for (const { name, missing, test } of CLIENTS) {
    const reason = missing()
    if (reason !== null && requiredNeeds().includes('clients')) throw new Error(`DEFERD_TEST_REQUIRE has clients, but ${reason}`)
    console.log(reason === null ? `client ${name}:` : `client ${name}: not tested, because ${reason}`)
    if (reason === null) test(run, folder)
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
