/** The steps of a release, from its sources to signed files. */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { build, changedFiles, checkOut, ENVIRONMENTS, git } from './builds.ts'
import { DEPRECATIONS } from '../../src/config/values/option.ts'
import { changelogGate, cleanGate, deprecationsGate, digestGate, figuresGate, ownerGate, unreleasedChanges, versionGate } from './gates.ts'
import { publicKeyFile, signature, temporaryKey, verified } from './minisign.ts'
import { readOwner } from './owner.ts'
import type { Step } from './steps.ts'

export interface ReleaseTerms {
  /** The repository. */
  readonly root: string
  /** Folder for the files of the release. It is emptied. */
  readonly out: string
  readonly version: string
  /** That of the section of the changelog when absent. */
  readonly date?: string | undefined
  /** File with the values of the owner. */
  readonly owner: string
  readonly dryRun: boolean
  /** Artefacts by name; all when empty. */
  readonly only: readonly string[]
  /** Commands whose success a release needs, run in the repository. */
  readonly tests: readonly string[]
  /** Scripts that write generated files, whose run changes nothing. */
  readonly generators: readonly (readonly string[])[]
  /** Scripts that end with an error for a fault of a file of the release. */
  readonly examinations: readonly { readonly script: string; readonly file: string }[]
  /** File of the secret key for minisign(1). A trial makes a key for the run. */
  readonly key?: string | undefined
}

const SUMS = 'SHA256SUMS'

/** Files of test/upgrade/VERSION that later versions are tested with. */
const STORED = ['queue.db.gz', 'sqlite.json', 'pg.sql.gz', 'postgres.json']

/** Steps that only read the sources. */
function sourceSteps({ root, version, date, owner, dryRun }: ReleaseTerms): readonly Step[] {
  const read = (file: string): string => readFileSync(join(root, file), 'utf8')
  const released = (): string => changelogGate({ changelog: read('CHANGELOG.md'), version, date })
  const isOwn = (commit: string): boolean => {
    try {
      git(root, 'merge-base', '--is-ancestor', commit, 'HEAD')
      return true
    } catch {
      return false
    }
  }
  return [
    { name: 'values of the owner', run: () => ownerGate(readOwner(owner), owner) },
    { name: 'clean tree', run: () => cleanGate(changedFiles(git(root, 'status', '--porcelain'))) },
    {
      name: 'version',
      run: () => {
        const { version: own } = JSON.parse(read('package.json')) as { readonly version: string }
        return versionGate({ own, version, tags: git(root, 'tag', '--list').split('\n') })
      },
    },
    {
      name: 'stored queues',
      run: () => {
        const missing = STORED.filter((file) => !existsSync(join(root, 'test/upgrade', version, file)))
        if (missing.length > 0) throw new Error(`test/upgrade/${version} lacks ${missing.join(', ')}: run node scripts/release/fixture.ts`)
        return STORED.join(', ')
      },
    },
    {
      name: 'changelog',
      run: () => {
        const day = released()
        const above = unreleasedChanges(read('CHANGELOG.md'))
        if (above === 0) return day
        if (!dryRun) throw new Error(`CHANGELOG.md has ${above} changes under Unreleased: move them to ${version}`)
        return `${day}; ${above} changes are still under Unreleased`
      },
    },
    { name: 'deprecations', run: () => deprecationsGate({ changelog: read('CHANGELOG.md'), version, deprecations: DEPRECATIONS }) },
    { name: 'figures of reliability', run: () => figuresGate({ page: read('RELIABILITY.md'), date: released(), isOwn }) },
  ]
}

/** A release passes over no test: each need of test/support/required.ts is met, unless DEFERD_TEST_REQUIRE names fewer. */
const NEEDS = 'interop,postgres,browser,clients,packages,emulation'

const command = (folder: string, [program = '', ...args]: readonly string[]): void =>
  void execFileSync(program, args, {
    cwd: folder,
    env: { DEFERD_TEST_REQUIRE: NEEDS, ...process.env },
    stdio: ['ignore', 'ignore', 'inherit'],
  })

function testSteps({ root, tests }: ReleaseTerms): readonly Step[] {
  return tests.map((line) => ({
    name: line,
    run: () => {
      command(root, line.split(' '))
      return 'passed'
    },
  }))
}

/** Steps that build the commit in two checkouts of `work`. */
function buildSteps({ root, out, only, generators, examinations }: ReleaseTerms, work: string): readonly Step[] {
  const folders = [join(work, 'checkout'), join(work, 'another folder')] as const
  const modules = join(root, 'node_modules')
  return [
    {
      name: 'checkouts',
      run: () => {
        for (const folder of folders) checkOut(root, 'HEAD', folder, modules)
        return git(root, 'rev-parse', 'HEAD')
      },
    },
    {
      name: 'generated files',
      run: () => {
        for (const script of generators) command(folders[0], [process.execPath, ...script])
        const changed = changedFiles(git(folders[0], 'status', '--porcelain', '--untracked-files=no'))
        if (changed.length > 0) throw new Error(`generated files are outdated: ${changed.join(', ')}: run ${generators.join(', ')}`)
        return `${generators.length} generators`
      },
    },
    {
      name: 'two builds',
      run: () => {
        rmSync(out, { recursive: true, force: true })
        const [first, second] = ENVIRONMENTS.map((terms, n) =>
          build(folders[n === 0 ? 0 : 1], n === 0 ? out : join(work, 'files of another build'), { ...terms, only }),
        )
        const result = digestGate(first ?? new Map(), second ?? new Map())
        writeFileSync(join(out, SUMS), [...(first ?? [])].map(([file, digest]) => `${digest}  ${file}\n`).join(''))
        return result
      },
    },
    {
      name: 'examinations',
      run: () => {
        // A trial may build some artefacts only.
        const built = examinations.filter(({ file }) => only.length === 0 || existsSync(join(out, file)))
        for (const { script, file } of built) command(folders[0], [process.execPath, script, join(out, file)])
        return `${built.length} files`
      },
    },
  ]
}

const hasMinisign = (): boolean => ['/usr/bin/minisign', '/usr/local/bin/minisign'].some((path) => existsSync(path))

function signSteps({ root, out, version, owner, dryRun, key }: ReleaseTerms): readonly Step[] {
  const [sums, signed] = [join(out, SUMS), join(out, `${SUMS}.minisig`)]
  let publicKey = ''
  return [
    {
      name: 'signature',
      run: () => {
        const comment = `deferd ${version}, commit ${git(root, 'rev-parse', 'HEAD')}`
        if (dryRun) {
          const own = temporaryKey()
          publicKey = own.publicKey
          writeFileSync(signed, signature(readFileSync(sums), comment, own))
        } else {
          publicKey = readOwner(owner).release_key
          if (key === undefined) throw new Error('--key is missing: the file of the secret key of minisign(1)')
          execFileSync('minisign', ['-S', '-s', key, '-m', sums, '-t', comment], { stdio: 'inherit' })
        }
        writeFileSync(join(out, 'release.pub'), publicKeyFile(publicKey))
        return dryRun ? 'by a key made for this run' : `by ${publicKey}`
      },
    },
    {
      name: 'verification of the signature',
      run: () => {
        const comment = verified(readFileSync(sums), readFileSync(signed, 'utf8'), publicKey)
        if (!hasMinisign()) return `${comment}; minisign(1) is not installed, and was not asked`
        execFileSync('minisign', ['-V', '-q', '-P', publicKey, '-m', sums], { stdio: ['ignore', 'ignore', 'pipe'] })
        return `${comment}; minisign(1) agrees`
      },
    },
  ]
}

/** All steps, and the end of the temporary folder that they use. */
export function releaseSteps(terms: ReleaseTerms): { readonly steps: readonly Step[]; readonly [Symbol.dispose]: () => void } {
  const work = mkdtempSync(join(tmpdir(), 'deferd-release-'))
  mkdirSync(work, { recursive: true })
  return {
    steps: [...sourceSteps(terms), ...testSteps(terms), ...buildSteps(terms, work), ...signSteps(terms)],
    [Symbol.dispose]: () => rmSync(work, { recursive: true, force: true }),
  }
}
