/**
 * Runs the tests of each client in clients/ whose tools are on this machine, with the `deferd` of this checkout in PATH, and prints a line for
 * each other one. With `clients` in DEFERD_TEST_REQUIRE, an absent tool is a failure.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { requiredNeeds } from '../test/support/required.ts'

const root = join(import.meta.dirname, '..')

interface Client {
  readonly name: string
  /** The reason why its tests cannot run here; null when they can. */
  readonly missing: () => string | null
  /** Runs its tests in a folder for files. Throws when they fail. */
  readonly test: (run: Run, folder: string) => void
}

/** Runs a program in a folder of clients/. */
type Run = (folder: string, program: string, args: readonly string[]) => void

const answers = (program: string, ...args: readonly string[]): boolean => spawnSync(program, args, { stdio: 'ignore' }).status === 0

const CLIENTS: readonly Client[] = [
  {
    name: 'python',
    missing: () => (answers('python3', '-c', 'import pytest, venv') ? null : 'python3 with pytest is not installed'),
    test: (run, folder) => {
      const python = join(folder, 'venv/bin/python')
      run('python', 'python3', ['-m', 'venv', '--system-site-packages', join(folder, 'venv')])
      run('python', python, ['-m', 'pip', 'install', '--quiet', '--no-index', '.'])
      run('python', python, ['-m', 'pytest', '-q', '-p', 'no:cacheprovider', 'tests'])
    },
  },
  {
    name: 'go',
    missing: () => (answers('go', 'version') ? null : 'go is not installed'),
    test: (run) => run('go', 'go', ['test', '-count=1', './...']),
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
  const run: Run = (where, program, args) => void execFileSync(program, args, { cwd: join(root, 'clients', where), env, stdio: 'inherit' })
  for (const { name, missing, test } of CLIENTS) {
    const reason = missing()
    if (reason !== null && requiredNeeds().includes('clients')) throw new Error(`DEFERD_TEST_REQUIRE has clients, but ${reason}`)
    console.log(reason === null ? `client ${name}:` : `client ${name}: not tested, because ${reason}`)
    if (reason === null) test(run, folder)
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
