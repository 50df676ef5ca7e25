/** The form of CHANGELOG.md: sections of versions with dates, newest first, each with parts of known kinds. */
import { VERSION_FORM } from './version.ts'

export interface ChangelogSection {
  /** `Unreleased`, or a version. */
  readonly title: string
  /** Day of the release as YYYY-MM-DD; undefined for what is unreleased, and for a section without a date. */
  readonly date: string | undefined
  /** Text below the title. */
  readonly text: string
}

export const UNRELEASED = 'Unreleased'

const KINDS = ['Added', 'Changed', 'Deprecated', 'Removed', 'Fixed', 'Security']

/** Lines of a section of a version, its title included. */
const MAXIMUM_LINES = 60

/** The sections in their order. */
export const changelogSections = (changelog: string): readonly ChangelogSection[] =>
  changelog
    .split(/^## /m)
    .slice(1)
    .map((section) => {
      const [head = '', ...lines] = section.split('\n')
      const [, title = head, date] = /^(\S+)(?: - (\S+))?$/.exec(head) ?? []
      return { title, date, text: lines.join('\n').trim() }
    })

const isDay = (date: string | undefined): date is string =>
  date !== undefined && /^\d{4}-\d{2}-\d{2}$/.test(date) && !Number.isNaN(Date.parse(date)) && new Date(date).toISOString().startsWith(date)

function faultsOf({ title, date, text }: ChangelogSection): readonly string[] {
  const parts = text
    .split(/^### /m)
    .slice(1)
    .map((part) => ({ kind: part.split('\n', 1)[0] ?? '', items: part.slice(part.indexOf('\n')) }))
  const faults = parts.flatMap(({ kind, items }) => [
    ...(KINDS.includes(kind) ? [] : [`${title}: the part ${kind} is none of ${KINDS.join(', ')}`]),
    ...(/^- \S/m.test(items) ? [] : [`${title}: the part ${kind} is empty`]),
  ])
  if (title === UNRELEASED) return faults
  const lines = text.split('\n').length + 2
  return [
    ...faults,
    ...(VERSION_FORM.test(title) ? [] : [`${title}: not a version`]),
    ...(isDay(date) ? [] : [`${title}: no date, such as "## ${title} - 2026-12-01"`]),
    ...(parts.length > 0 ? [] : [`${title}: no part, such as "### Added"`]),
    ...(lines <= MAXIMUM_LINES ? [] : [`${title}: ${lines} lines, at most ${MAXIMUM_LINES}`]),
  ]
}

/** The numbers of a version, for an order of versions; a candidate is before its release. */
function versionOrder(one: string, other: string): number {
  const [a, b] = [one, other].map((version) => version.split(/[.-]/))
  for (let n = 0; n < 3; n++) {
    const difference = Number(a?.[n]) - Number(b?.[n])
    if (difference !== 0) return difference
  }
  return Number(!one.includes('-')) - Number(!other.includes('-')) || one.localeCompare(other, 'en', { numeric: true })
}

/** Faults of a changelog, one sentence each; none when its form is right. */
export function changelogFaults(changelog: string): readonly string[] {
  const sections = changelogSections(changelog)
  const versions = sections.filter(({ title }) => title !== UNRELEASED)
  return [
    ...(sections[0]?.title === UNRELEASED ? [] : [`the first section is not "## ${UNRELEASED}"`]),
    ...(sections.length - versions.length > 1 ? [`there are two sections "## ${UNRELEASED}"`] : []),
    ...sections.flatMap(faultsOf),
    ...versions.flatMap((section, n) => {
      const newer = versions[n - 1]
      if (newer === undefined) return []
      const late = isDay(section.date) && isDay(newer.date) && section.date > newer.date
      return [
        ...(versionOrder(newer.title, section.title) > 0 ? [] : [`${section.title} is below ${newer.title}: newer versions are above`]),
        ...(late ? [`${section.title} has a later date than ${newer.title}, which is above it`] : []),
      ]
    }),
  ]
}
