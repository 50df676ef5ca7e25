/** Chooses the header fields that a signature covers (RFC 6376 §5.4, RFC 8058 §4). Pure. */

import type { RawField } from '../mail/headers.ts'

/** Named in `h=` once more than present, so that a signature fails when such a field is added. */
const ALWAYS = ['From', 'Reply-To', 'To', 'Cc', 'Subject', 'Date', 'Message-ID']
/** Named once more than present, when present. */
const WHEN_PRESENT = ['In-Reply-To', 'References', 'MIME-Version', 'Content-Type', 'Content-Transfer-Encoding']
/** Named as often as present. Mailing lists add or replace these. */
const AS_PRESENT = ['Sender', 'Auto-Submitted']
const AS_PRESENT_PREFIXES = /^(?:list-|resent-)./

/** Lower-case names of the fields whose change makes a signature invalid, apart from those with a prefix. */
const NAMED: ReadonlySet<string> = new Set([...ALWAYS, ...WHEN_PRESENT, ...AS_PRESENT].map((name) => name.toLowerCase()))

export const isSigned = (name: string): boolean => NAMED.has(name) || AS_PRESENT_PREFIXES.test(name)

/** The names of the tag `h=`, From first. */
export function signedNames(fields: readonly RawField[]): readonly string[] {
  const counts = new Map<string, number>()
  for (const { name } of fields) if (isSigned(name)) counts.set(name, (counts.get(name) ?? 0) + 1)
  const present = (name: string): number => counts.get(name.toLowerCase()) ?? 0
  const prefixed = [...counts.keys()].filter((name) => !NAMED.has(name)).map(capitalized)
  return [
    ...ALWAYS.flatMap((name) => repeated(name, present(name) + 1)),
    ...WHEN_PRESENT.flatMap((name) => (present(name) === 0 ? [] : repeated(name, present(name) + 1))),
    ...[...AS_PRESENT, ...prefixed].flatMap((name) => repeated(name, present(name))),
  ]
}

const repeated = (name: string, count: number): readonly string[] => Array.from({ length: count }, () => name)

const capitalized = (name: string): string => name.replaceAll(/(?<=^|-)[a-z]/g, (letter) => letter.toUpperCase())

/** The fields that `names` select: of fields with one name the last first (RFC 6376 §5.4.2). Names without a field select none. */
export function selectFields(fields: readonly RawField[], names: readonly string[]): readonly RawField[] {
  const left = new Map<string, RawField[]>()
  for (const field of fields) {
    const same = left.get(field.name)
    if (same === undefined) left.set(field.name, [field])
    else same.push(field)
  }
  return names.map((name) => left.get(name.toLowerCase())?.pop()).filter((field) => field !== undefined)
}
