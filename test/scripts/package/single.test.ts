import { expect, test } from 'vitest'
import { singleOptions } from '../../../scripts/package/single/options.ts'

test('both architectures are built into ./single, unless one is named', () => {
  expect(singleOptions([])).toEqual({ out: 'single', architectures: ['x64', 'arm64'] })
  expect(singleOptions(['--out', 'a', '--architecture', 'arm64'])).toEqual({ out: 'a', architectures: ['arm64'] })
  expect(() => singleOptions(['--architecture', 'mips'])).toThrow('--architecture mips: expected x64 or arm64')
})
