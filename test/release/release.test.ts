/** A release of a small repository: it passes all steps, stops at each planted fault, and strangers verify its files. */
import { execFileSync } from 'node:child_process'
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { releaseSteps, type ReleaseTerms } from '../../scripts/release/release-steps.ts'
import { runSteps } from '../../scripts/release/steps.ts'
import { verifyRelease } from '../../scripts/release/verify.ts'
import { signature, temporaryKey } from '../../scripts/release/minisign.ts'

const ROOT = join(import.meta.dirname, '../..')

/** Writes one artefact, whose content is that of source.txt. */
const BUILDER = `
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
const content = readFileSync('source.txt', 'utf8')
writeFileSync(process.argv[3] + '/deferd-1.0.0.tgz', content)
console.log(createHash('sha256').update(content).digest('hex') + '  deferd-1.0.0.tgz')
`

const CHANGELOG = '# Changelog\n\n## Unreleased\n\n## 1.0.0 - 2026-12-01\n\n### Added\n\n- All.\n'

class Repository {
  readonly folder = mkdtempSync(join(tmpdir(), 'deferd-repository-'))

  constructor() {
    onTestFinished(() => rmSync(this.folder, { recursive: true, force: true }))
    this.git('init', '--quiet', '--initial-branch=main')
    this.write('package.json', '{ "version": "1.0.0", "type": "module" }\n')
    this.write('CHANGELOG.md', CHANGELOG)
    this.write('source.txt', 'the program\n')
    for (const file of ['queue.db.gz', 'sqlite.json', 'pg.sql.gz', 'postgres.json']) this.write(`test/upgrade/1.0.0/${file}`, '')
    this.write('scripts/package/artefacts.ts', BUILDER)
    this.commit()
    this.figures('2026-11-25')
  }

  git(...args: readonly string[]): string {
    const identity = ['-c', 'user.name=Ann Example', '-c', 'user.email=ann@example.org', '-c', 'core.hooksPath=/dev/null']
    return execFileSync('git', [...identity, ...args], { cwd: this.folder, encoding: 'utf8' }).trim()
  }

  write(file: string, text: string): void {
    mkdirSync(dirname(join(this.folder, file)), { recursive: true })
    writeFileSync(join(this.folder, file), text)
  }

  commit(): string {
    this.git('add', '--all')
    this.git('commit', '--quiet', '--message', 'a change')
    return this.git('rev-parse', 'HEAD')
  }

  figures(date: string, commit = this.git('rev-parse', '--short=7', 'HEAD')): void {
    this.write(
      'RELIABILITY.md',
      `| test | figures | commit | date |\n| --- | --- | --- | --- |\n| SIGKILL | 2,000 | ${commit} | ${date} |\n`,
    )
    this.commit()
  }

  release(changes: Partial<ReleaseTerms> = {}) {
    const out = join(this.folder, '../', `${this.folder.split('/').at(-1)}-files`)
    onTestFinished(() => rmSync(out, { recursive: true, force: true }))
    const owner = join(ROOT, 'release/owner.example.json')
    const terms = {
      root: this.folder,
      out,
      version: '1.0.0',
      owner,
      dryRun: true,
      only: [],
      tests: [],
      generators: [],
      examinations: [],
      ...changes,
    }
    using made = releaseSteps(terms)
    const records = runSteps(made.steps, () => {})
    const last = records.at(-1)
    const publicKey = (): string => readFileSync(join(out, 'release.pub'), 'utf8').split('\n')[1] ?? ''
    return { out, records, stop: last?.exit === 1 ? { step: last.step, result: last.result } : null, publicKey }
  }
}

test('a trial passes all steps, and its files verify', () => {
  const repository = new Repository()
  repository.write('examine.ts', "import { accessSync } from 'node:fs'\naccessSync(process.argv[2])\n")
  repository.commit()
  const examinations = [{ script: 'examine.ts', file: 'deferd-1.0.0.tgz' }]
  const { out, records, stop, publicKey } = repository.release({ tests: ['git --version'], examinations })
  expect(stop).toBeNull()
  expect(records.map(({ step }) => step)).toEqual([
    'values of the owner',
    'clean tree',
    'version',
    'stored queues',
    'changelog',
    'deprecations',
    'figures of reliability',
    'git --version',
    'checkouts',
    'generated files',
    'two builds',
    'examinations',
    'signature',
    'verification of the signature',
  ])
  expect(readFileSync(join(out, 'SHA256SUMS'), 'utf8')).toMatch(/^[0-9a-f]{64} {2}deferd-1\.0\.0\.tgz\n$/)
  const terms = { folder: out, key: publicKey(), source: repository.folder, modules: join(ROOT, 'node_modules'), rebuild: true }
  expect(verifyRelease(terms)).toEqual([])
})

const emptied = (repository: Repository): string => {
  const owner = JSON.parse(readFileSync(join(ROOT, 'release/owner.example.json'), 'utf8')) as object
  const file = `${repository.folder}-owner.json`
  writeFileSync(file, JSON.stringify({ ...owner, security_contact: '' }))
  onTestFinished(() => rmSync(file))
  return file
}

describe('a release stops', () => {
  test('at an empty value of the owner', () => {
    const repository = new Repository()
    expect(repository.release({ owner: emptied(repository) }).stop).toEqual({
      step: 'values of the owner',
      result: expect.stringContaining('no value for security_contact') as string,
    })
  })

  test('at a tree with a change that is not committed', () => {
    const repository = new Repository()
    repository.write('source.txt', 'another program\n')
    expect(repository.release().stop).toEqual({ step: 'clean tree', result: expect.stringContaining('source.txt') as string })
  })

  test('at a version without stored queues', () => {
    const repository = new Repository()
    repository.git('rm', '--quiet', 'test/upgrade/1.0.0/pg.sql.gz')
    repository.commit()
    expect(repository.release().stop).toEqual({ step: 'stored queues', result: expect.stringContaining('lacks pg.sql.gz') as string })
  })

  test('at a section of the changelog without a date', () => {
    const repository = new Repository()
    repository.write('CHANGELOG.md', CHANGELOG.replace(' - 2026-12-01', ''))
    repository.commit()
    expect(repository.release().stop).toEqual({ step: 'changelog', result: expect.stringContaining('1.0.0: no date') as string })
  })

  test.each([
    ['a section with a TODO', CHANGELOG.replace('- All.', '- TODO: all.'), 'has a TODO'],
    [
      'another date than that of the release',
      CHANGELOG.replace('2026-12-01', '2026-12-02'),
      '1.0.0 has the date 2026-12-02, not 2026-12-01',
    ],
    [
      'a newer section',
      CHANGELOG.replace('## 1.0.0', '## 1.1.0 - 2026-12-03\n\n### Added\n\n- More.\n\n## 1.0.0'),
      'not the newest section',
    ],
  ])('at %s', (_, changelog, why) => {
    const repository = new Repository()
    repository.write('CHANGELOG.md', changelog)
    repository.commit()
    expect(repository.release({ date: '2026-12-01' }).stop).toEqual({ step: 'changelog', result: expect.stringContaining(why) as string })
  })

  test('at changes that are still under Unreleased, which a trial reports', () => {
    const repository = new Repository()
    repository.write('CHANGELOG.md', CHANGELOG.replace('## Unreleased\n', '## Unreleased\n\n### Fixed\n\n- One.\n- Two.\n'))
    repository.commit()
    const { records } = repository.release()
    expect(records.find(({ step }) => step === 'changelog')?.result).toBe('2026-12-01; 2 changes are still under Unreleased')
    expect(repository.release({ dryRun: false }).stop).toEqual({
      step: 'changelog',
      result: 'CHANGELOG.md has 2 changes under Unreleased: move them to 1.0.0',
    })
  })

  test('at figures of reliability that are older than 7 days', () => {
    const repository = new Repository()
    repository.figures('2026-11-23')
    expect(repository.release().stop).toEqual({
      step: 'figures of reliability',
      result: 'RELIABILITY.md: the figures of "SIGKILL" are of 2026-11-23, 8 days before the release: run npm run test:reliability',
    })
  })

  test('at figures of a commit that is not of the release', () => {
    const repository = new Repository()
    repository.figures('2026-11-25', 'deadbee')
    expect(repository.release().stop).toEqual({ step: 'figures of reliability', result: expect.stringContaining('deadbee') as string })
  })

  test('at artefacts whose two builds differ', () => {
    const repository = new Repository()
    repository.write('scripts/package/artefacts.ts', BUILDER.replace("readFileSync('source.txt', 'utf8')", 'process.cwd()'))
    repository.commit()
    expect(repository.release().stop).toEqual({ step: 'two builds', result: 'two builds of this commit differ in deferd-1.0.0.tgz' })
  })

  test('at a version that was released, and at one that package.json has not', () => {
    const repository = new Repository()
    expect(repository.release({ version: '1.0.1' }).stop).toEqual({
      step: 'version',
      result: 'package.json has 1.0.0, not 1.0.1: run node scripts/release/version.ts 1.0.1',
    })
    repository.git('tag', 'v1.0.0')
    expect(repository.release().stop).toEqual({ step: 'version', result: expect.stringContaining('there is a tag v1.0.0') as string })
  })

  test('at a test that fails, and at a generated file that is outdated', () => {
    const repository = new Repository()
    expect(repository.release({ tests: ['git diff --exit-code HEAD~1'] }).stop).toMatchObject({ step: 'git diff --exit-code HEAD~1' })
    repository.write('generate.ts', "import { writeFileSync } from 'node:fs'\nwriteFileSync('source.txt', 'generated')\n")
    repository.commit()
    expect(repository.release({ generators: [['generate.ts']] }).stop).toEqual({
      step: 'generated files',
      result: 'generated files are outdated: source.txt: run generate.ts',
    })
  })
})

describe('an examination', () => {
  test('that finds a fault stops the release', () => {
    const repository = new Repository()
    repository.write('examine.ts', 'process.exitCode = 1\n')
    repository.commit()
    expect(repository.release({ examinations: [{ script: 'examine.ts', file: 'deferd-1.0.0.tgz' }] }).stop).toMatchObject({
      step: 'examinations',
    })
  })
})

describe('a stranger', () => {
  const made = () => {
    const repository = new Repository()
    const { out, publicKey } = repository.release()
    const terms = { folder: out, key: publicKey(), source: repository.folder, modules: join(ROOT, 'node_modules'), rebuild: true }
    return { repository, out, terms }
  }

  test('sees a file that was changed, that is missing, and that was added', () => {
    const { out, terms } = made()
    writeFileSync(join(out, 'deferd-extra.tgz'), '')
    appendFileSync(join(out, 'deferd-1.0.0.tgz'), 'x')
    expect(verifyRelease(terms)).toEqual(['deferd-1.0.0.tgz is not the file of the release', 'deferd-extra.tgz is not of the release'])
    rmSync(join(out, 'deferd-extra.tgz'))
    rmSync(join(out, 'deferd-1.0.0.tgz'))
    expect(verifyRelease(terms)).toEqual(['deferd-1.0.0.tgz is missing'])
  })

  test('sees that SHA256SUMS was changed, or signed by another key', () => {
    const { out, terms } = made()
    const sums = join(out, 'SHA256SUMS')
    expect(() => verifyRelease({ ...terms, key: temporaryKey().publicKey })).toThrow('by another key than the release key')
    const text = readFileSync(sums, 'utf8')
    writeFileSync(
      sums,
      text.replace(/^./, (digit) => (digit === '0' ? '1' : '0')),
    )
    expect(() => verifyRelease(terms)).toThrow('the file was changed')
  })

  test('sees files that were built from a tree of which one byte differs', () => {
    const { repository, out, terms } = made()
    const commit = repository.git('rev-parse', 'HEAD')
    repository.write('source.txt', 'the Program\n')
    execFileSync(process.execPath, ['scripts/package/artefacts.ts', '--out', out], { cwd: repository.folder })
    const key = temporaryKey()
    const sums = execFileSync('sha256sum', ['deferd-1.0.0.tgz'], { cwd: out })
    writeFileSync(join(out, 'SHA256SUMS'), sums)
    writeFileSync(join(out, 'SHA256SUMS.minisig'), signature(sums, `deferd 1.0.0, commit ${commit}`, key))
    expect(verifyRelease({ ...terms, key: key.publicKey })).toEqual([`deferd-1.0.0.tgz differs from that of a build of ${commit}`])
    expect(verifyRelease({ ...terms, key: key.publicKey, rebuild: false })).toEqual([])
  })
})
