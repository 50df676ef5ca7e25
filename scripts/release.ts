/**
 * Makes a release up to its publication, which people do: examines the sources, runs the tests, builds each artefact twice and compares the digests,
 * and signs them. Stops at the first step that fails. Uses no network but the registries from which artefacts are built.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { errorMessage } from '../src/system/caught-error.ts'
import { VERSION } from '../src/system/version.ts'
import { git } from './release/builds.ts'
import { releaseSteps, type ReleaseTerms } from './release/release-steps.ts'
import { runSteps } from './release/steps.ts'

const ROOT = join(import.meta.dirname, '..')

const USAGE = `usage: npm run release -- [--dry-run [--tests] [--only ARTEFACT]...] [--version VERSION] [--date YYYY-MM-DD] [--key FILE]
                      [--owner FILE] [--out FOLDER]
A trial (--dry-run) takes release/owner.example.json and a key made for the run, and runs the tests only with --tests. A release needs --key,
the secret key of minisign(1). Files go to release/VERSION, with release.json: result and time of each step.`

const TESTS = ['npm ci', 'npm run check', 'npm run test:reliability']

/** Scripts that write files of the source. */
const GENERATORS = [
  ['scripts/package/notices.ts'],
  ['scripts/release/frozen-migrations.ts'],
  ['scripts/release/surface.ts'],
  ['scripts/docs.ts'],
]

/** Examinations of files by scripts. */
const examinationsOf = (version: string): ReleaseTerms['examinations'] => [
  { script: 'scripts/package/npm-faults.ts', file: `deferd-${version}.tgz` },
]

function termsOf(args: readonly string[]): ReleaseTerms {
  const { values } = parseArgs({
    args: [...args],
    options: {
      'dry-run': { type: 'boolean', default: false },
      tests: { type: 'boolean', default: false },
      only: { type: 'string', multiple: true, default: [] },
      version: { type: 'string', default: VERSION },
      date: { type: 'string' },
      key: { type: 'string' },
      owner: { type: 'string' },
      out: { type: 'string' },
    },
  })
  const dryRun = values['dry-run']
  if (!dryRun && (values.tests || values.only.length > 0)) throw new Error('--tests and --only are for --dry-run: a release has all')
  return {
    root: ROOT,
    out: resolve(values.out ?? join(ROOT, 'release', values.version)),
    version: values.version,
    date: values.date,
    owner: values.owner ?? join(ROOT, dryRun ? 'release/owner.example.json' : 'release/owner.json'),
    dryRun,
    only: values.only,
    tests: dryRun && !values.tests ? [] : TESTS,
    generators: GENERATORS,
    examinations: examinationsOf(values.version),
    key: values.key,
  }
}

/** Commands for people, after a release. */
const publication = ({ out, version }: ReleaseTerms): string => `
To publish it, after \`helm lint contrib/helm/deferd\`:
  git tag --sign v${version} --message 'deferd ${version}' && git push origin v${version}
  npm publish ${join(out, `deferd-${version}.tgz`)} --access public
Upload the files of ${out} to the release of v${version}, then announce it.
`

function release(terms: ReleaseTerms): boolean {
  using made = releaseSteps(terms)
  const records = runSteps(made.steps, ({ step, exit, seconds, result }) =>
    process.stdout.write(`${exit === 0 ? 'ok  ' : 'STOP'} ${step} (${seconds} s): ${result}\n`),
  )
  const passed = records.every(({ exit }) => exit === 0)
  mkdirSync(terms.out, { recursive: true })
  const facts = { version: terms.version, commit: git(ROOT, 'rev-parse', 'HEAD'), node: process.version, dry_run: terms.dryRun, passed }
  writeFileSync(join(terms.out, 'release.json'), `${JSON.stringify({ ...facts, steps: records }, null, 2)}\n`)
  return passed
}

let terms: ReleaseTerms | undefined
try {
  terms = termsOf(process.argv.slice(2))
} catch (error) {
  process.stderr.write(`${errorMessage(error)}\n${USAGE}\n`)
  process.exitCode = 64
}
if (terms !== undefined) {
  if (!release(terms)) process.exitCode = 1
  else process.stdout.write(terms.dryRun ? `The trial passed: ${terms.out}\n` : publication(terms))
}
