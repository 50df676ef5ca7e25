import { describe, expect, test } from 'vitest'
import { changelog, controlText, debName } from '../../../scripts/package/control.ts'
import { copyrightText } from '../../../scripts/package/copyright.ts'
import { packageOptions } from '../../../scripts/package/options.ts'
import { isRun, productionDependencies } from '../../../scripts/package/production.ts'

const control = {
  name: 'deferd',
  version: '1.2',
  architecture: 'amd64',
  maintainer: 'A <a@example.com>',
  relations: { Depends: 'adduser' },
  description: ['Relay', 'First line.', '', 'Second line.'],
} as const

test('the control file has sizes in KiB, and a dot for an empty line of the description', () => {
  expect(controlText(control, 1025)).toBe(`Package: deferd
Version: 1.2
Architecture: amd64
Maintainer: A <a@example.com>
Installed-Size: 2
Depends: adduser
Section: mail
Priority: optional
Description: Relay
 First line.
 .
 Second line.
`)
  expect(debName(control)).toBe('deferd_1.2_amd64.deb')
})

test('the changelog has the time of the commit', () => {
  expect(changelog(control, 1_795_365_161)).toMatch(
    /^deferd \(1\.2\) unstable; .*\n -- A <a@example\.com> {2}Sun, 22 Nov 2026 16:32:41 \+0000\n$/s,
  )
})

test('the copyright file refers to Debian’s copy of the Apache licence', () => {
  const text = copyrightText('OWN', '24.0.0', [
    { name: 'a', version: '1.0.0', license: 'Apache-2.0', text: 'LONG' },
    { name: 'b', version: '1.0.0', license: 'MIT', text: 'TEXT' },
  ])
  expect(text).toContain('/usr/share/common-licenses/Apache-2.0')
  expect(text).toMatch(/OWN[^]*Node\.js 24\.0\.0, [^]*\/usr\/lib\/deferd\/THIRD-PARTY-NOTICES[^]*b \(MIT\)\n\nTEXT\n/)
  expect(text).not.toContain('LONG')
})

describe('dependencies', () => {
  test('are those of production, without the tools that compile others', () => {
    const packages = {
      '': {},
      'node_modules/zod': { license: 'MIT' },
      'node_modules/vitest': { dev: true, license: 'MIT' },
      'node_modules/node-addon-api': { license: 'MIT' },
      'node_modules/@zone-eu/mailsplit': { license: 'MIT' },
      'node_modules/pg/node_modules/split2': { license: 'ISC' },
    }
    expect(productionDependencies({ packages })).toMatchObject([
      { folder: 'node_modules/@zone-eu/mailsplit', name: '@zone-eu/mailsplit', license: 'MIT' },
      { folder: 'node_modules/pg/node_modules/split2', name: 'split2', license: 'ISC' },
      { folder: 'node_modules/zod', name: 'zod', license: 'MIT' },
    ])
  })

  test('keep code for this platform', () => {
    const kept = ['index.js', 'build/src/index.js', 'package.json', 'prebuilds/linux-x64.node', 'dist/chart.umd.min.js']
    const left = ['index.d.ts', 'index.js.map', 'README.md', 'test/a.js', 'prebuilds/linux-arm64.node', 'deps/sqlite3.c', '.github/x.js']
    expect([...kept, ...left].filter((path) => isRun(path, 'linux-x64'))).toEqual(kept)
  })
})

describe('the options of the build', () => {
  test('have defaults', () => {
    expect(packageOptions([], '1.2.0-rc.1')).toMatchObject({ out: 'deb', version: '1.2.0~rc.1', compression: 'xz' })
  })

  test('name the architectures by Debian’s names, in any order', () => {
    expect(packageOptions(['--architecture', 'arm64', '--architecture', 'amd64'], '1.0').architectures).toEqual(['x64', 'arm64'])
  })

  test.each([
    ['--version', 'v1'],
    ['--compression', 'zip'],
    ['--architecture', 'x64'],
    ['--colour', 'red'],
  ])('%s %s is refused', (...args) => {
    expect(() => packageOptions(args, '1.0')).toThrow(args[0])
  })
})
