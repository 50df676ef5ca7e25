/**
 * Writes the values of release/owner.json into the texts that need them: parts of pages between `<!-- owner: NAME -->` and `<!-- end -->`, members
 * of package.json, and .github/CODEOWNERS. Without a value, a text says so. `node scripts/release/owner-texts.ts`
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { emptyValues, readOwner, type Owner } from './owner.ts'

const ROOT = join(import.meta.dirname, '../..')

const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8')

const NOT_SET = 'Not set before the first release.'

/** The text, or that its values are not set. */
const given = (owner: Owner, names: readonly (keyof Owner)[], written: string): string =>
  emptyValues(owner).some((name) => (names as readonly string[]).includes(name)) ? NOT_SET : written

/** Before 1.0, only the last minor version gets fixes. */
function supported(version: string): string {
  const [major = '0', minor = '0'] = version.split('.')
  return major === '0'
    ? `${major}.${minor}.x gets fixes of security. Before 1.0, a new minor version ends the one before it.`
    : `${major}.${minor}.x gets fixes of security, and the last minor version before ${major}.0 does for 12 months after ${major}.0.`
}

type Parts = Readonly<Record<string, (owner: Owner, version: string) => string>>

/** The parts of pages, by file and name. */
const PARTS: Readonly<Record<string, Parts>> = {
  'SECURITY.md': {
    versions: (_, version) => supported(version),
    contact: (owner) =>
      given(
        owner,
        ['security_contact', 'security_key'],
        `Write to ${owner.security_contact}, encrypted with the key at ${owner.security_key}.`,
      ),
    times: (owner) =>
      given(
        owner,
        ['answer_days', 'assessment_days', 'fix_days'],
        `A report is answered within ${owner.answer_days} working days and assessed within ${owner.assessment_days} days. A fix, or a plan with a date, follows within ${owner.fix_days} days.`,
      ),
    key: (owner) => given(owner, ['release_key'], `\`${owner.release_key}\``),
  },
  'GOVERNANCE.md': {
    maintainers: (owner) => given(owner, ['maintainers'], owner.maintainers.map((one) => `- ${one}`).join('\n')),
  },
  'CODE_OF_CONDUCT.md': {
    contact: (owner) => given(owner, ['conduct_contact'], `Write to ${owner.conduct_contact}.`),
  },
}

const MARKED = /(<!-- owner: (\w+) -->\n\n).*?(\n\n<!-- end -->)/gs

/** A page with its parts written. Throws for a part that the page lacks, and for one without a text. */
function withParts(file: string, parts: Parts, owner: Owner, version: string): string {
  const written = new Set<string>()
  const page = read(file).replaceAll(MARKED, (_, begin: string, name: string, end: string) => {
    const part = parts[name]
    if (part === undefined) throw new Error(`${file} has a part ${name}, for which there is no text`)
    written.add(name)
    return `${begin}${part(owner, version)}${end}`
  })
  const missing = Object.keys(parts).filter((name) => !written.has(name))
  if (missing.length > 0) throw new Error(`${file} lacks the parts ${missing.join(', ')}`)
  return page
}

interface PackageFile {
  readonly version: string
  readonly [member: string]: unknown
}

/** package.json with the members of the owner behind `license`; without those that have no value. */
function withOwner(file: PackageFile, { project, repository, homepage, issues }: Owner): string {
  const members = {
    ...(project === '' ? {} : { author: project }),
    ...(homepage === '' ? {} : { homepage }),
    ...(repository === '' ? {} : { repository: { type: 'git', url: `git+${repository}.git` } }),
    ...(issues === '' ? {} : { bugs: { url: issues } }),
  }
  const owned = new Set(['author', 'homepage', 'repository', 'bugs'])
  const entries = Object.entries(file).flatMap(([name, value]) =>
    owned.has(name) ? [] : name === 'license' ? [[name, value], ...Object.entries(members)] : [[name, value]],
  )
  return `${JSON.stringify(Object.fromEntries(entries as [string, unknown][]), null, 2)}\n`
}

/** The reviewers of each change: the addresses of the maintainers. */
const codeOwners = (owner: Owner): string => {
  const addresses = owner.maintainers.map((one) => /<([^<>]+)>$/.exec(one)?.[1] ?? one)
  const rule = given(owner, ['maintainers'], `* ${addresses.join(' ')}`)
  return `# Written by scripts/release/owner-texts.ts from release/owner.json.\n${rule === NOT_SET ? `# ${NOT_SET}` : rule}\n`
}

/** All texts with values of the owner, by file. */
export function ownerTexts(owner: Owner): ReadonlyMap<string, string> {
  const file = JSON.parse(read('package.json')) as PackageFile
  const pages = Object.entries(PARTS).map(([page, parts]) => [page, withParts(page, parts, owner, file.version)] as const)
  return new Map([...pages, ['package.json', withOwner(file, owner)], ['.github/CODEOWNERS', codeOwners(owner)]])
}

if (import.meta.main) {
  const owner = readOwner(join(ROOT, 'release/owner.json'))
  for (const [file, written] of ownerTexts(owner)) writeFileSync(join(ROOT, file), written)
  const empty = emptyValues(owner)
  if (empty.length > 0) process.stderr.write(`without a value: ${empty.join(', ')}\n`)
}
