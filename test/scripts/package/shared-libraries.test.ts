/** The relation to the packages of shared libraries, from outputs of readelf(1). */
import { expect, test } from 'vitest'
import { libraryRelation } from '../../../scripts/package/shared-libraries.ts'

const needs = (...names: readonly string[]): string =>
  `Version symbols section '.gnu.version' contains 2 entries:
  000:   0 (*local*)       2 (GLIBC_2.99)

Version needs section '.gnu.version_r' contains 3 entries:
 Addr: 0x000000000040f8a8  Offset: 0x00f8a8  Link: 7 (.dynstr)
  000000: Version: 1  File: libc.so.6  Cnt: ${names.length}
${names.map((name) => `  0x0010:   Name: ${name}  Flags: none  Version: 5`).join('\n')}
`

test('the newest version of each package counts, by numbers', () => {
  expect(libraryRelation([needs('GLIBC_2.2.5', 'GLIBC_2.28', 'GLIBC_2.9'), needs('GLIBC_2.34', 'GCC_3.0', 'GCC_3.4')])).toBe(
    'libc6 (>= 2.34), libgcc-s1 (>= 3.4)',
  )
})

test('symbols of the C++ library have the version of the GCC that added them', () => {
  expect(libraryRelation([needs('GLIBCXX_3.4', 'GLIBCXX_3.4.29', 'CXXABI_1.3.9')])).toBe('libstdc++6 (>= 11)')
  expect(libraryRelation([needs('GLIBCXX_3.4', 'CXXABI_1.3')])).toBe('libstdc++6 (>= 5)')
})

test('what no package is known for is refused', () => {
  expect(() => libraryRelation([needs('OPENSSL_3.0.0')])).toThrow('no package is known for the symbols OPENSSL_3.0.0')
  expect(() => libraryRelation([needs('GLIBCXX_3.4.99')])).toThrow('no version of libstdc++6 is known for GLIBCXX_3.4.99')
})
