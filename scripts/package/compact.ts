/**
 * Makes the package for npm small: removes declarations and comments that are of no use to a program that has it, and the indentation of its
 * code. Names and short lines stay, for the stacks of errors.
 * `node scripts/package/compact.ts`
 */
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { transformSync } from 'esbuild'
import { packedDeclarations } from './declarations.ts'

/** Columns of a line, which Node prints before the stack of an error that ends the process. */
const COLUMNS = 120

const OPTIONS = {
  format: 'esm',
  target: 'node22',
  minifyWhitespace: true,
  minifySyntax: true,
  lineLimit: COLUMNS,
  legalComments: 'none',
  charset: 'utf8',
} as const

/** The code of a module without comments. */
export const compactCode = (code: string): string => transformSync(code, OPTIONS).code

/** Modules that stay as they are: an old Node reads the first one to refuse itself, and the scripts of the page are plain files. */
const isKept = (path: string): boolean => path === 'system/node-version.js' || path.startsWith('page/browser/')

/** Changes the files of a `dist`. `manifest` is the text of package.json. */
export function compact(dist: string, manifest: string): void {
  for (const [path, text] of packedDeclarations(dist, manifest))
    if (text === null) rmSync(join(dist, path))
    else writeFileSync(join(dist, path), text)
  for (const path of readdirSync(dist, { recursive: true, encoding: 'utf8' }))
    if (path.endsWith('.js') && !isKept(path)) writeFileSync(join(dist, path), compactCode(readFileSync(join(dist, path), 'utf8')))
}

if (import.meta.main) {
  const root = join(import.meta.dirname, '../..')
  compact(join(root, 'dist'), readFileSync(join(root, 'package.json'), 'utf8'))
}
