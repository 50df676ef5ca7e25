/** CHANGELOG.md has the form of a changelog, and the version of package.json is in each file that has it. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { changelogFaults, changelogSections } from '../../scripts/release/changelog.ts'
import { versionTexts } from '../../scripts/release/version.ts'
import { VERSION } from '../../src/system/version.ts'

const ROOT = join(import.meta.dirname, '../..')
const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8')
const changelog = read('CHANGELOG.md')

describe('CHANGELOG.md', () => {
  test('has the form of a changelog', () => {
    expect(changelogFaults(changelog)).toEqual([])
  })

  test('has a section of the version of package.json, as its newest one', () => {
    expect(changelogSections(changelog)[1]).toMatchObject({ title: VERSION, date: expect.stringMatching(/^\d/) as string })
  })
})

const WELL = '# Changelog\n\n## Unreleased\n\n## 1.1.0 - 2026-12-09\n\n### Added\n\n- b\n\n## 1.0.0 - 2026-12-01\n\n### Fixed\n\n- a\n'

test('a changelog with two dated versions has no fault', () => {
  expect(changelogFaults(WELL)).toEqual([])
})

test.each([
  ['a section without a date', WELL.replace(' - 2026-12-09', ''), /^1\.1\.0: no date/],
  ['a day that the calendar lacks', WELL.replace('2026-12-09', '2026-02-30'), /^1\.1\.0: no date/],
  ['versions in the wrong order', WELL.replace('1.1.0', '0.9.0'), /^1\.0\.0 is below 0\.9\.0/],
  ['a candidate above its release', WELL.replace('1.1.0', '1.0.0-rc.1'), /^1\.0\.0 is below 1\.0\.0-rc\.1/],
  ['dates in the wrong order', WELL.replace('2026-12-09', '2026-11-30'), /^1\.0\.0 has a later date than 1\.1\.0/],
  ['an unknown kind', WELL.replace('Fixed', 'Improved'), /the part Improved is none of Added, Changed/],
  ['a part without an entry', WELL.replace('- a', ''), /^1\.0\.0: the part Fixed is empty/],
  ['a section without a part', WELL.replace('### Fixed', ''), /^1\.0\.0: no part/],
  ['a section of 61 lines', WELL.replace('- a', Array.from({ length: 57 }, (_, n) => `- ${n}`).join('\n')), /^1\.0\.0: 61 lines/],
  ['no section for what is unreleased', WELL.replace('## Unreleased\n', ''), /the first section is not/],
])('%s is a fault', (_, text, why) => {
  expect(changelogFaults(text)).toEqual([expect.stringMatching(why)])
})

test('a section of 60 lines is none', () => {
  expect(changelogFaults(WELL.replace('- a', Array.from({ length: 56 }, (_, n) => `- ${n}`).join('\n')))).toEqual([])
})

test('each file with the version of deferd has that of package.json', () => {
  for (const [file, text] of versionTexts(VERSION)) expect(read(file), file).toBe(text)
})

test('another version is written into the manifests, the clients and the commands of pages', () => {
  const texts = versionTexts('7.8.9')
  const changed = [...texts].filter(([file, text]) => text !== read(file)).map(([file]) => file)
  expect(changed).toEqual(
    expect.arrayContaining([
      'package.json',
      'package-lock.json',
      'clients/java/pom.xml',
      'clients/python/pyproject.toml',
      'contrib/compose/compose.yaml',
      'contrib/helm/deferd/Chart.yaml',
      'docs/lab.md',
    ]),
  )
  const lock = JSON.parse(texts.get('package-lock.json') ?? '') as { version: string; packages: Record<string, { version: string }> }
  expect([lock.version, lock.packages['']?.version]).toEqual(['7.8.9', '7.8.9'])
  expect([...texts.values()].join('\n')).not.toContain(`deferd_${VERSION}_`)
  for (const file of ['docs/install.md', 'docs/operations.md', 'contrib/compose/compose-lab.yaml', 'contrib/helm/deferd/Chart.yaml'])
    expect(texts.get(file), file).not.toContain(VERSION)
})
