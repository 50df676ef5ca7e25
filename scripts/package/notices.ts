/**
 * The notices of the software that deferd is given away with: names, versions, licences and copyright lines, and each text of a licence once.
 * `node scripts/package/notices.ts` writes THIRD-PARTY-NOTICES, that of a package without Node.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { NOTICES } from '../../src/system/packaged-files.ts'
import { licences, type Licence } from './licences.ts'

const RULE = '-'.repeat(72)

/** A line that names the holder of a copyright. Sentences of a text do not, and neither does its form to fill in. */
const isHolder = (line: string): boolean => /^\s*Copyright\s+(?:\([cC]\)|©|\d{4}|[A-Z])/.test(line)

const isForm = (line: string): boolean => /^\s*Copyright \[yyyy\]/.test(line)

/** The name of a licence above its text, which many packages write in other words. */
const isTitle = (line: string): boolean => /^[#\s(]*(?:the )?[\w-]+ licen[cs]e(?: \(\w+\))?[)\s]*$/i.test(line)

const holders = (text: string): readonly string[] =>
  text
    .split('\n')
    .filter(isHolder)
    .map((line) => line.trim())

/** A text without its holders. */
const terms = (text: string): string =>
  text
    .split('\n')
    .filter((line) => !isHolder(line))
    .map((line) => line.trimEnd())
    .join('\n')
    .replaceAll(/\n{3,}/g, '\n\n')
    .replace(/^\n+/, '')
    .trimEnd()

/** Equal for texts that differ in their titles, lines, quotation marks and brackets only. */
const wording = (text: string): string =>
  text
    .split('\n')
    .filter((line) => !isForm(line) && !isTitle(line))
    .join(' ')
    .replaceAll(/["'“”[\]{}]/g, '')
    .replaceAll(/\s+/g, ' ')
    .trim()

export interface Notices {
  /** The licence of deferd. */
  readonly own: string
  readonly packages: readonly Licence[]
  /** The Node in a package, with the text of its licences and those of its parts; null without one. */
  readonly node: { readonly version: string; readonly licence: string } | null
}

/** Equal packages give equal texts. */
export function noticesText({ own, packages, node }: Notices): string {
  const texts = new Map<string, { readonly name: string; readonly text: string }>()
  const entries = packages.map(({ name, version, license, text }) => {
    const key = wording(terms(text))
    const known = texts.get(key) ?? { name: `text ${texts.size + 1} below`, text: terms(text) }
    texts.set(key, known)
    return [`${name} ${version}`, `${license}, ${known.name}`, ...holders(text)].join('\n  ')
  })
  return [
    `deferd, an SMTP relay with a durable deferred queue\n\n${own.trim()}`,
    `${RULE}\nThe software below has licences of its own.`,
    ...(node === null ? [] : [`Node.js ${node.version}\n  its licence, and those of its parts, at the end`]),
    ...entries,
    ...[...texts.values()].map(({ name, text }) => `${RULE}\n${name.replace('t', 'T').replace(' below', '')}\n\n${text}`),
    ...(node === null ? [] : [`${RULE}\nNode.js ${node.version}\n\n${node.licence.trim()}`]),
  ]
    .join('\n\n')
    .concat('\n')
}

/** The notices of the packages of a checkout. `others` are development dependencies that are part of the program. */
export const noticesOf = (root: string, node: Notices['node'], others: readonly string[] = []): string =>
  noticesText({ own: readFileSync(join(root, 'LICENSE'), 'utf8'), packages: licences(root, others), node })

if (import.meta.main) {
  const root = join(import.meta.dirname, '../..')
  writeFileSync(join(root, NOTICES), noticesOf(root, null))
}
