/** The decisions of a release about its sources. Each function throws one sentence for the first fault, and otherwise returns the facts found. */
import { changelogFaults, changelogSections, UNRELEASED } from './changelog.ts'
import { emptyValues, type Owner } from './owner.ts'
import type { Deprecation } from '../../src/config/values/option.ts'
import { versionNumber } from '../../src/system/version.ts'
import { VERSION_FORM } from './version.ts'

/** Days after which the figures of RELIABILITY.md are too old for a release. */
const FIGURES_KEPT = 7

export function ownerGate(owner: Owner, file: string): string {
  const empty = emptyValues(owner)
  if (empty.length > 0) throw new Error(`${file}: no value for ${empty.join(', ')}: only the owner of the project knows them`)
  return `${Object.keys(owner).length} values`
}

/** `changed` are the files that differ from the commit. */
export function cleanGate(changed: readonly string[]): string {
  if (changed.length > 0) throw new Error(`the tree is not clean: ${changed.join(', ')}: commit or remove that first`)
  return 'no change'
}

export interface VersionFacts {
  /** The version of package.json. */
  readonly own: string
  /** That of --version. */
  readonly version: string
  readonly tags: readonly string[]
}

export function versionGate({ own, version, tags }: VersionFacts): string {
  if (!VERSION_FORM.test(version)) throw new Error(`${version} is no version, such as 1.0.0`)
  if (own !== version) throw new Error(`package.json has ${own}, not ${version}: run node scripts/release/version.ts ${version}`)
  if (tags.includes(`v${version}`)) throw new Error(`there is a tag v${version} already: ${version} was released`)
  return version
}

export interface ChangelogFacts {
  readonly changelog: string
  readonly version: string
  /** That of --date; that of the section when absent. */
  readonly date: string | undefined
}

/** Returns the date of the release. */
export function changelogGate({ changelog, version, date }: ChangelogFacts): string {
  const [fault] = changelogFaults(changelog)
  if (fault !== undefined) throw new Error(`CHANGELOG.md: ${fault}`)
  const sections = changelogSections(changelog)
  const section = sections.find(({ title }) => title === version)
  if (section?.date === undefined) throw new Error(`CHANGELOG.md has no section "## ${version} - DATE"`)
  if (date !== undefined && section.date !== date) throw new Error(`CHANGELOG.md: ${version} has the date ${section.date}, not ${date}`)
  if (sections.find(({ title }) => title !== UNRELEASED) !== section) throw new Error(`CHANGELOG.md: ${version} is not the newest section`)
  if (/\bTODO\b/.test(section.text)) throw new Error(`CHANGELOG.md: the section of ${version} has a TODO`)
  return section.date
}

export interface DeprecationFacts {
  readonly changelog: string
  readonly version: string
  /** Deprecated parameters by name. */
  readonly deprecations: Readonly<Record<string, Deprecation>>
}

/** Parts of a changelog below "### Deprecated". */
const deprecatedParts = (changelog: string): string => [...changelog.matchAll(/^### Deprecated$([^]*?)(?=^##|$(?![^]))/gm)].join('')

export function deprecationsGate({ changelog, version, deprecations }: DeprecationFacts): string {
  const entries = Object.entries(deprecations)
  const told = deprecatedParts(changelog)
  for (const [name, { since, until }] of entries) {
    const isMajor = /^\d+\.0\.0$/.test(until) && versionNumber(until) > versionNumber(since)
    if (!isMajor) throw new Error(`${name} is deprecated since ${since} until ${until}, which is no later major version`)
    if (!told.includes(`\`${name}\``)) throw new Error(`CHANGELOG.md does not have \`${name}\` under "Deprecated"`)
    if (versionNumber(until) <= versionNumber(version)) throw new Error(`${name} is deprecated until ${until}: remove it from ${version}`)
  }
  return `${entries.length} deprecated parameters`
}

/** Changes that the changelog has above the version. A release with such is made only as a trial. */
export const unreleasedChanges = (changelog: string): number =>
  (
    changelogSections(changelog)
      .find(({ title }) => title === UNRELEASED)
      ?.text.match(/^- /gm) ?? []
  ).length

interface Figure {
  readonly test: string
  readonly commit: string
  readonly date: string
}

/** The rows of figures of RELIABILITY.md. */
export const figuresOf = (page: string): readonly Figure[] =>
  [...page.matchAll(/^\| ([^|]+?) +\|.*\| ([0-9a-f]{7,40}) +\| (\d{4}-\d{2}-\d{2}) +\|$/gm)].map(
    ([, test = '', commit = '', date = '']) => ({
      test,
      commit,
      date,
    }),
  )

export interface FigureFacts {
  readonly page: string
  /** Date of the release. */
  readonly date: string
  /** Whether a commit is part of the release. */
  readonly isOwn: (commit: string) => boolean
}

export function figuresGate({ page, date, isOwn }: FigureFacts): string {
  const figures = figuresOf(page)
  if (figures.length === 0) throw new Error('RELIABILITY.md has no figures with a commit and a date')
  for (const { test, commit, date: measured } of figures) {
    const days = (Date.parse(date) - Date.parse(measured)) / 86_400_000
    if (days > FIGURES_KEPT)
      throw new Error(
        `RELIABILITY.md: the figures of "${test}" are of ${measured}, ${days} days before the release: run npm run test:reliability`,
      )
    if (!isOwn(commit)) throw new Error(`RELIABILITY.md: the figures of "${test}" are of ${commit}, which is no commit of this release`)
  }
  return `${figures.length} figures`
}

/** Lines of sha256sum(1): digests by file. Throws for another line. */
export const digestsOf = (lines: string): ReadonlyMap<string, string> =>
  new Map(
    lines
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => {
        const [, digest = '', file = ''] = /^([0-9a-f]{64}) [ *]([\w.~+-]+)$/.exec(line) ?? []
        if (file === '') throw new Error(`${JSON.stringify(line)} is no line of sha256sum(1)`)
        return [file, digest] as const
      }),
  )

/** Names of files that two builds do not have with one digest. */
export const differing = (one: ReadonlyMap<string, string>, other: ReadonlyMap<string, string>): readonly string[] =>
  [...new Set([...one.keys(), ...other.keys()])].filter((file) => one.get(file) !== other.get(file)).toSorted()

export function digestGate(one: ReadonlyMap<string, string>, other: ReadonlyMap<string, string>): string {
  if (one.size === 0) throw new Error('no artefact was built')
  const files = differing(one, other)
  if (files.length > 0) throw new Error(`two builds of this commit differ in ${files.join(', ')}`)
  return `${one.size} files`
}
