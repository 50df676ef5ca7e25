/** Builds the artefacts of a commit in a checkout of its own, in another environment each time. */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { digestsOf } from './gates.ts'

/** Output of git(1) in a folder. */
export const git = (folder: string, ...args: readonly string[]): string =>
  execFileSync('git', args, { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trimEnd()

/** Names of the files in the output of `git status --porcelain`. */
export const changedFiles = (status: string): readonly string[] =>
  status.split('\n').flatMap((line) => (line === '' ? [] : [line.slice(3)]))

/** The builder of all artefacts: writes them into the folder of --out, and prints a line of sha256sum(1) for each. */
const BUILDER = 'scripts/package/artefacts.ts'

export interface BuildTerms {
  /** Artefacts by name; all when empty. */
  readonly only: readonly string[]
  readonly environment: Readonly<Record<string, string>>
  /** Mask of the modes of new files, such as `077`. */
  readonly umask: string
}

/** Environments in which equal sources have to give equal files. */
export const ENVIRONMENTS: readonly [BuildTerms, BuildTerms] = [
  { only: [], environment: { TZ: 'UTC', LANG: 'C.UTF-8', LC_ALL: 'C.UTF-8' }, umask: '022' },
  { only: [], environment: { TZ: 'Pacific/Kiritimati', LANG: 'tr_TR.UTF-8', LC_ALL: 'tr_TR.UTF-8' }, umask: '077' },
]

/** Checks a commit out into a new folder, with the dependencies of `modules`. */
export function checkOut(source: string, commit: string, folder: string, modules: string): void {
  git('.', 'clone', '--quiet', '--no-checkout', source, folder)
  git(folder, 'checkout', '--quiet', commit)
  if (existsSync(modules)) symlinkSync(modules, join(folder, 'node_modules'))
}

/** Builds the artefacts of a checkout, and returns their digests by file. Throws with the output of the builder when it fails. */
export function build(folder: string, out: string, { only, environment, umask }: BuildTerms): ReadonlyMap<string, string> {
  mkdirSync(out, { recursive: true })
  const args = [process.execPath, BUILDER, '--out', out, ...only.flatMap((name) => ['--only', name])]
  const env = { ...process.env, SOURCE_DATE_EPOCH: git(folder, 'log', '-1', '--format=%ct'), ...environment }
  return digestsOf(
    execFileSync('sh', ['-c', `umask ${umask}; exec "$@"`, 'sh', ...args], {
      cwd: folder,
      env,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'inherit'],
    }),
  )
}
