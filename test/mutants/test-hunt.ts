/** Runs one test file on a copy of the repository with a bug planted in it. */
import { execFile } from 'node:child_process'
import { chmodSync, cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { planted } from './hunt.ts'
import type { Mutant } from './mutants.ts'
import type { SafetyMutant } from './safety-mutants.ts'

const ROOT = resolve(import.meta.dirname, '../..')
/** Much longer than any of the tests takes. */
const TIME_LIMIT = 400_000

/** Name of the first failed test in a list; empty when the bug was not found. */
export const failedTests = (mutant: SafetyMutant): Promise<readonly string[]> => withPlanted(mutant, (folder) => run(folder, mutant.test))

/** Runs `action` on a copy of the repository with the bug planted in it. */
export async function withPlanted<T>(mutant: Mutant, action: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'deferd-mutant-'))
  // The user of a PostgreSQL server reads its programs there.
  chmodSync(folder, 0o755)
  try {
    for (const part of ['src', 'scripts', 'test', 'migrations', 'bin', 'package.json', 'vitest.config.ts'])
      cpSync(join(ROOT, part), join(folder, part), { recursive: true })
    symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
    writeFileSync(join(folder, mutant.file), planted(mutant))
    return await action(folder)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

interface Report {
  readonly testResults: readonly { readonly assertionResults: readonly { readonly title: string; readonly status: string }[] }[]
}

async function run(folder: string, test: string): Promise<readonly string[]> {
  const vitest = join(ROOT, 'node_modules/vitest/vitest.mjs')
  const report = join(folder, 'report.json')
  const args = [vitest, 'run', test, '--bail=1', '--reporter=json', `--outputFile=${report}`]
  const output = await new Promise<string>((done) => {
    execFile(process.execPath, args, { cwd: folder, timeout: TIME_LIMIT }, (_error, stdout, stderr) => done(stdout + stderr))
  })
  const results = existsSync(report) ? resultsIn(readFileSync(report, 'utf8')) : []
  // A file that does not load has no tests: that finds nothing.
  if (results.length === 0) throw new Error(`no test of ${test} ran: ${output}`)
  return results.filter(({ status }) => status === 'failed').map(({ title }) => title)
}

const resultsIn = (report: string) => (JSON.parse(report) as Report).testResults.flatMap(({ assertionResults }) => assertionResults)
