/** The artefacts of this commit, built twice: here, and by another user in another folder with another mask of modes, time zone and language. */
import { execFileSync } from 'node:child_process'
import { chownSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { downloadPackages } from '../../scripts/package/image/debian.ts'
import { must, root } from './tools.ts'

/** nobody(4), a user without privileges. */
const NOBODY = 65534

/** Not part of the sources: made by commands in the checkout. */
const MADE: ReadonlySet<string> = new Set(['.git', 'dist', 'deb', 'single', 'image', 'deferd-queue'])

const OTHER = { TZ: 'Pacific/Kiritimati', LANG: 'tr_TR.UTF-8', LC_ALL: 'tr_TR.UTF-8' }

export interface TwoBuilds {
  /** Folder of the files of the first build. */
  readonly files: string
  /** Lines of sha256sum(1). */
  readonly first: readonly string[]
  readonly second: readonly string[]
}

const lines = (text: string): readonly string[] => text.trim().split('\n')

/** A copy of the checkout with links to its files, where the file system has them. */
function copyOfCheckout(copy: string): void {
  mkdirSync(copy)
  for (const name of readdirSync(root).filter((one) => !MADE.has(one))) {
    const [from, to] = [join(root, name), join(copy, name)]
    try {
      execFileSync('cp', ['--archive', '--link', from, to], { stdio: 'ignore' })
    } catch {
      execFileSync('cp', ['--archive', '--force', '--no-target-directory', from, to])
    }
  }
}

/** A repository with the last commit only, which another user may read. */
function lastCommit(folder: string): Readonly<Record<string, string>> {
  execFileSync('git', ['clone', '--quiet', '--bare', '--depth=1', `file://${root}`, folder])
  return { GIT_DIR: folder, GIT_CONFIG_COUNT: '1', GIT_CONFIG_KEY_0: 'safe.directory', GIT_CONFIG_VALUE_0: '*' }
}

const artefacts = (out: string, debian: string): readonly string[] => [
  'scripts/package/artefacts.ts',
  '--compression',
  'gzip',
  '--out',
  out,
  '--debian',
  debian,
]

/** A build by the user nobody where root runs the tests, otherwise by the user of the tests. */
async function otherBuild(folder: string, debian: string): Promise<readonly string[]> {
  const [copy, home] = [join(folder, 'a copy'), join(folder, 'home')]
  copyOfCheckout(copy)
  mkdirSync(home)
  const isRoot = process.getuid?.() === 0
  if (isRoot) chownSync(home, NOBODY, NOBODY)
  const identity = isRoot ? ['setpriv', `--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups'] : []
  const program = [...identity, join(copy, 'node_modules/node/bin/node'), ...artefacts(join(home, 'out'), debian)]
  const { npm_execpath: _, NODE_COMPILE_CACHE: __, ...inherited } = process.env
  const env = {
    ...inherited,
    ...OTHER,
    ...lastCommit(join(folder, 'commit')),
    HOME: home,
    TMPDIR: home,
    npm_config_cache: join(home, 'npm'),
  }
  return lines(await must('sh', ['-c', 'umask 077; cd "$1"; shift; exec "$@"', 'sh', copy, ...program], env))
}

/** Builds twice, in a folder that others may read. */
export async function twoBuilds(folder: string): Promise<TwoBuilds> {
  const [files, debian] = [join(folder, 'files'), join(folder, 'debian')]
  downloadPackages(['x64', 'arm64'], folder, debian)
  const first = lines(await must(process.execPath, artefacts(files, debian), process.env))
  return { files, first, second: await otherBuild(folder, debian) }
}
