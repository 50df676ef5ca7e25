/** The pages of the site: the Markdown files that are written for people, by their addresses. */
import { globSync } from 'node:fs'
import { posix } from 'node:path'

/** Pages beside those of docs. */
const OTHERS = [
  'README.md',
  'CHANGELOG.md',
  'RELIABILITY.md',
  'SECURITY.md',
  'CONTRIBUTING.md',
  'ARCHITECTURE.md',
  'GOVERNANCE.md',
  'CODE_OF_CONDUCT.md',
]

/** Paths of the Markdown files in the repository, in the order of their names. */
export const pageFiles = (root: string): readonly string[] => [...OTHERS, ...globSync('docs/*.md', { cwd: root }).toSorted()]

/** Address of a page in the folder of a version: `docs/README.md` is `docs/index.html`. */
export const addressOf = (file: string): string => file.replace(/README\.md$/, 'index.md').replace(/\.md$/, '.html')

/** Address of `to` from the page at `from`. Both are addresses in the folder of a version, `to` with a fragment or not. */
export const relativeAddress = (from: string, to: string): string => posix.relative(posix.dirname(from), to)
