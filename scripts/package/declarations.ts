/** Finds the declarations that the entries of the package reach. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'

/** Modules that a declaration names, in the forms `from '…'`, `import '…'` and `import('…')`. */
const IMPORTS = /(?:\bfrom |\bimport |\bimport\()'(\.[^']+)'/g

const importsOf = (path: string, text: string): readonly string[] =>
  [...text.matchAll(IMPORTS)].map(([, name = '']) => posix.join(posix.dirname(path), name.replace(/\.[jt]s$/, '.d.ts')))

/** Paths of the declarations that those of `entries` reach, in a folder of which `read` returns the text of a file. Throws when one is absent. */
export function reachedDeclarations(entries: readonly string[], read: (path: string) => string): ReadonlySet<string> {
  const reached = new Set<string>()
  const open = [...entries]
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    if (reached.has(path)) continue
    reached.add(path)
    open.push(...importsOf(path, read(path)))
  }
  return reached
}

/** The declarations of the entries in package.json, from the folder `dist`. */
const entriesOf = (manifest: string): readonly string[] =>
  Object.values((JSON.parse(manifest) as { readonly exports: Readonly<Record<string, { readonly types?: string }>> }).exports).flatMap(
    ({ types }) => (types === undefined ? [] : [types.replace('./dist/', '')]),
  )

/** A declaration without its comments, which tsc(1) writes on lines of their own. */
export const withoutComments = (text: string): string => text.replaceAll(/^[ \t]*\/\*\*[^]*?\*\/\r?\n/gm, '')

/**
 * The declarations below `dist`, with the text that the package has: null for those that no entry reaches, as the types of private modules are of no use
 * to a program. Comments stay in the entries, and in the modules whose names they export.
 */
export function packedDeclarations(dist: string, manifest: string): ReadonlyMap<string, string | null> {
  // A module of JavaScript may have no declaration.
  const read = (path: string): string =>
    existsSync(join(dist, path)) || !existsSync(join(dist, path.replace('.d.ts', '.js'))) ? readFileSync(join(dist, path), 'utf8') : ''
  const entries = entriesOf(manifest)
  const reached = reachedDeclarations(entries, read)
  const exported = new Set([...entries, ...entries.flatMap((entry) => importsOf(entry, read(entry)))])
  const paths = readdirSync(dist, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.d.ts'))
  return new Map(paths.map((path) => [path, exported.has(path) ? read(path) : reached.has(path) ? withoutComments(read(path)) : null]))
}
