/** Deprecated parameters: a warning at each start with the replacement and the version, the page, and the gate of a release. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { deprecationsGate } from '../../scripts/release/gates.ts'
import { DEPRECATIONS } from '../../src/config/values/option.ts'
import { isOption } from '../../src/config/expansion.ts'
import { configurationPage } from '../../src/config/documentation.ts'
import { loadConfig, type LoadedConfig } from '../../src/config/load.ts'
import { prepareFiles } from '../../src/daemon/preparation.ts'

const DEPRECATED = {
  default_destination_concurrency_limit: { since: '1.2.0', until: '2.0.0', instead: 'default_concurrency' },
  smtpd_banner: { since: '1.3.0', until: '2.0.0', instead: 'myhostname' },
} as const

const SENTENCE = 'default_destination_concurrency_limit is deprecated since 1.2.0, and removed in 2.0.0: use default_concurrency'

function load(toml: string, deprecations = {}): LoadedConfig {
  const folder = mkdtempSync(join(tmpdir(), 'deferd-deprecated-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'deferd.toml')
  writeFileSync(file, toml)
  return loadConfig({ file, env: {}, overrides: [], uid: 1000, calledAs: 'deferd', hostname: 'host.example' }, deprecations)
}

const warnings = (toml: string): readonly string[] => load(toml, DEPRECATED).warnings.map((text) => text.replace(/^.*\//, ''))

test('a deprecated parameter that is set is told once with its place, its replacement and the version that removes it', () => {
  const loaded = load('default_destination_concurrency_limit = 5\n', DEPRECATED)
  expect(loaded.warnings).toEqual([expect.stringMatching(/deferd\.toml:1: /)])
  const prepared = prepareFiles(loaded)
  expect(prepared.kind).toBe('ready')
  expect(prepared.warnings.filter(({ text }) => text.includes('deprecated'))).toEqual([
    { part: 'configuration', text: expect.stringContaining(SENTENCE) },
  ])
})

test('so is one in a table, without default_', () => {
  expect(warnings('[destination."a.example"]\ndestination_concurrency_limit = 5\n')).toEqual([`deferd.toml:2: ${SENTENCE}`])
  expect(warnings('[provider.p]\nmx = [".a.example"]\ndestination_concurrency_limit = 5\n')).toEqual([`deferd.toml:3: ${SENTENCE}`])
})

test('each is a parameter', () => {
  expect(Object.keys(DEPRECATIONS).filter((name) => !isOption(name))).toEqual([])
})

test('one that is not set is not told, and without deprecations nothing is', () => {
  expect(warnings('maximal_queue_lifetime = "5d"\n')).toEqual([])
  expect(load('default_destination_concurrency_limit = 5\n').warnings).toEqual([])
})

test('the page of parameters has the sentence in the row', () => {
  const [row = ''] = configurationPage(DEPRECATED)
    .split('\n')
    .filter((line) => line.startsWith('| `smtpd_banner` '))
  expect(row).toMatch(/ _Deprecated since 1\.3\.0, and removed in 2\.0\.0: use myhostname\._ \|$/)
})

describe('the gate of a release', () => {
  const changelog =
    '# Changelog\n\n## Unreleased\n\n## 1.3.0 - 2027-06-01\n\n### Deprecated\n\n- `smtpd_banner`: use myhostname.\n\n### Fixed\n\n- A.\n'
  const gate = (version: string, deprecations: Parameters<typeof deprecationsGate>[0]['deprecations'], text = changelog): string =>
    deprecationsGate({ changelog: text, version, deprecations })
  const { smtpd_banner } = DEPRECATED

  test('passes while the version that removes it is to come', () => {
    expect(gate('1.9.0', { smtpd_banner })).toBe('1 deprecated parameters')
    expect(gate('0.9.0', DEPRECATIONS)).toBe(`${Object.keys(DEPRECATIONS).length} deprecated parameters`)
  })

  test('stops when it is still there then, when the changelog does not tell it, and when no major version removes it', () => {
    expect(() => gate('2.0.0', { smtpd_banner })).toThrow('smtpd_banner is deprecated until 2.0.0: remove it from 2.0.0')
    expect(() => gate('1.9.0', { smtpd_banner }, changelog.replace('Deprecated', 'Changed'))).toThrow(
      'does not have `smtpd_banner` under "Deprecated"',
    )
    expect(() => gate('1.9.0', { smtpd_banner: { ...smtpd_banner, until: '1.10.0' } })).toThrow('which is no later major version')
  })
})
