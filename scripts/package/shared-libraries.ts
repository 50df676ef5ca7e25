/**
 * The relation of a package to those of the shared libraries that its binaries need, from the versions of symbols in them: dpkg-shlibdeps(1) would
 * need the libraries of a foreign architecture.
 */

/** Debian's packages of the libraries by the prefix of their symbol versions, and the versions of GCC that added those of libstdc++. */
const PACKAGES: Readonly<Record<string, string>> = { GLIBC: 'libc6', GCC: 'libgcc-s1', GLIBCXX: 'libstdc++6', CXXABI: 'libstdc++6' }

/** First version of libstdc++6 with a symbol version (the table "GCC releases" of the manual of libstdc++, ABI policy and guidelines). */
const LIBSTDCXX: Readonly<Record<string, string>> = {
  'GLIBCXX_3.4.21': '5.2',
  'GLIBCXX_3.4.22': '6',
  'GLIBCXX_3.4.23': '7',
  'GLIBCXX_3.4.24': '7',
  'GLIBCXX_3.4.25': '8',
  'GLIBCXX_3.4.26': '9',
  'GLIBCXX_3.4.27': '9',
  'GLIBCXX_3.4.28': '9',
  'GLIBCXX_3.4.29': '11',
  'GLIBCXX_3.4.30': '12',
  'CXXABI_1.3.9': '5.2',
  'CXXABI_1.3.10': '6',
  'CXXABI_1.3.11': '7',
  'CXXABI_1.3.12': '9',
  'CXXABI_1.3.13': '11',
}

/** Order of two versions that consist of numbers: 2.9 is before 2.28. */
const inOrder = (a: string, b: string): number => a.localeCompare(b, 'en', { numeric: true })

/** The version of the package that has symbols of this version; every version of it has those that are older than the table. */
function packageVersion(prefix: string, number: string): string {
  if (PACKAGES[prefix] !== 'libstdc++6') return number
  const known = LIBSTDCXX[`${prefix}_${number}`]
  if (known !== undefined) return known
  const oldest = Object.keys(LIBSTDCXX).find((name) => name.startsWith(`${prefix}_`)) ?? ''
  if (inOrder(`${prefix}_${number}`, oldest) < 0) return '5'
  throw new Error(`no version of libstdc++6 is known for ${prefix}_${number}: add it to scripts/package/shared-libraries.ts`)
}

/** `libc6 (>= 2.34), libgcc-s1 (>= 3.4), …` from the outputs of `readelf --version-info`. Throws for symbols of another library. */
export function libraryRelation(outputs: readonly string[]): string {
  const needed = new Map<string, string>()
  for (const text of outputs) {
    const [, needs = ''] = /^Version needs section[^\n]*\n([^]*)/m.exec(text) ?? []
    for (const [, prefix = '', number = ''] of needs.matchAll(/\bName: (\w+?)_([\d.]+)\b/g)) {
      const name = PACKAGES[prefix]
      if (name === undefined)
        throw new Error(`no package is known for the symbols ${prefix}_${number}: add it to scripts/package/shared-libraries.ts`)
      const version = packageVersion(prefix, number)
      if (inOrder(version, needed.get(name) ?? '') > 0) needed.set(name, version)
    }
  }
  return [...needed]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, version]) => `${name} (>= ${version})`)
    .join(', ')
}
