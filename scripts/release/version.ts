/**
 * Writes a version into each file of the source that has it: package.json and its lock file, the clients of the lab, and the commands of
 * pages. `node scripts/release/version.ts 1.0.0`, then `node scripts/docs.ts` for the generated files.
 */
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ownerTexts } from './owner-texts.ts'
import { readOwner } from './owner.ts'

const ROOT = join(import.meta.dirname, '../..')

type Rewrite = (text: string, version: string) => string

const NUMBER = String.raw`\d+\.\d+\.\d+(?:-[a-z]+\.\d+)?`

/** The form of versions: three numbers, and `-rc.1` for a candidate. */
export const VERSION_FORM = new RegExp(`^${NUMBER}$`)

/** Packages of deferd by name and version, as in `deferd_1.0.0_amd64.deb`, `deferd-1.0.0.tgz` and `deferd-lab:1.0.0`, and output of `deferd status`. */
const PACKAGE = new RegExp(`\\b(deferd(?:-mta|-lab)?[-_: ])${NUMBER}(?=\\.tgz|_|"|\`| is running)`, 'g')

/** Images by name, as in `deferd-1.0.0-image.tar:1.0.0` and `registry.example.com/deferd:1.0.0-lab`. */
const IMAGE = new RegExp(`\\b(deferd[-:]|image:|image\\.tar:)${NUMBER}(?=-image|-lab|-amd64|\\s|\`|$)`, 'gm')

const named: Rewrite = (text, version) =>
  text
    .replaceAll(PACKAGE, `$1${version}`)
    .replaceAll(IMAGE, `$1${version}`)
    .replaceAll(/(<artifactId>deferd-lab<\/artifactId>\s*<version>)[^<]+/g, `$1${version}`)

/** The version of the package itself, in its manifest and in both members of its lock file. */
const manifest: Rewrite = (text, version) =>
  text.replace(/("version": ")[^"]+/, `$1${version}`).replace(/("": \{\s*"name": "deferd",\s*"version": ")[^"]+/, `$1${version}`)

const HISTORY = 'docs/changes-before-1.0.md'

/** Files with the version, and how each is written. */
function versioned(): ReadonlyMap<string, Rewrite> {
  const pages = ['README.md', ...globSync('docs/*.md', { cwd: ROOT })].filter((page) => page !== HISTORY)
  return new Map<string, Rewrite>([
    ['package.json', manifest],
    ['package-lock.json', manifest],
    ['clients/java/pom.xml', named],
    ['contrib/helm/deferd/Chart.yaml', (text, version) => text.replaceAll(/^((?:app)?version: ).*$/gim, `$1${version}`)],
    ['clients/python/pyproject.toml', (text, version) => text.replace(/^(version = ")[^"]+/m, `$1${version}`)],
    ...[...pages, ...globSync('contrib/compose/*.yaml', { cwd: ROOT })].map((page) => [page, named] as const),
  ])
}

/** All files with the version, as they have to be. */
export const versionTexts = (version: string): ReadonlyMap<string, string> =>
  new Map([...versioned()].map(([file, rewrite]) => [file, rewrite(readFileSync(join(ROOT, file), 'utf8'), version)]))

if (import.meta.main) {
  const [version = ''] = process.argv.slice(2)
  if (!VERSION_FORM.test(version)) {
    process.stderr.write(
      `usage: node scripts/release/version.ts VERSION, such as 1.0.0 or 1.0.0-rc.1: ${JSON.stringify(version)} is none\n`,
    )
    process.exitCode = 64
  } else {
    for (const [file, text] of versionTexts(version)) writeFileSync(join(ROOT, file), text)
    for (const [file, text] of ownerTexts(readOwner(join(ROOT, 'release/owner.json')))) writeFileSync(join(ROOT, file), text)
  }
}
