import { expect, test } from 'vitest'
import { noticesText } from '../../../scripts/package/copyright.ts'
import { licences } from '../../../scripts/package/licences.ts'
import { singleOptions } from '../../../scripts/package/single/options.ts'

test('both architectures are built into ./single, unless one is named', () => {
  expect(singleOptions([])).toEqual({ out: 'single', architectures: ['x64', 'arm64'] })
  expect(singleOptions(['--out', 'a', '--architecture', 'arm64'])).toEqual({ out: 'a', architectures: ['arm64'] })
  expect(() => singleOptions(['--architecture', 'mips'])).toThrow('--architecture mips: expected x64 or arm64')
})

test('the notices have the texts of Node, of the dependencies and of what made the executables', () => {
  const text = noticesText('OWN', { version: '24.0.0', licence: 'TEXT OF NODE' }, licences('.', ['esbuild', 'postject']))
  expect(text).toMatch(/OWN[^]*Node\.js 24\.0\.0 \(MIT\)\n\nTEXT OF NODE\n[^]*\nbetter-sqlite3 \(MIT\)\n\nThe MIT License/)
  // An executable is given away without Debian's copy.
  expect(text).toMatch(/\nprom-client \(Apache-2\.0\)\n\n\s*Apache License\s/)
  expect(text).toMatch(/\nesbuild \(MIT\)\n\nMIT License[^]*\npostject \(MIT\)\n\n\w/)
})
