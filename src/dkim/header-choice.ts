/** Chooses the header fields that a signature covers (RFC 6376 §5.4, RFC 8058 §4). Pure. */
import type { SignedFields } from '../config/values/signed-fields.ts'
import type { RawField } from '../mail/headers.ts'

export class HeaderChoice {
  readonly #fields: SignedFields
  /** Lower-case names that are chosen, apart from those by a prefix. */
  readonly #named: ReadonlySet<string>

  constructor(fields: SignedFields) {
    this.#fields = fields
    const { oversigned, oversignedWhenPresent, signed } = fields
    this.#named = new Set([...oversigned, ...oversignedWhenPresent, ...signed].map((name) => name.toLowerCase()))
  }

  /** The prefix of a lower-case name, as it is written in the parameter; undefined without one. */
  #prefixOf(name: string): string | undefined {
    return this.#fields.prefixes.find((prefix) => name.length > prefix.length && name.startsWith(prefix.toLowerCase()))
  }

  #isSigned(name: string): boolean {
    return this.#named.has(name) || this.#prefixOf(name) !== undefined
  }

  /** A name that a prefix has chosen, as it is written in `h=`. */
  #written(name: string): string {
    const prefix = this.#prefixOf(name) ?? ''
    return prefix + capitalized(name.slice(prefix.length))
  }

  /** The names of the tag `h=`, in the order of the parameters. */
  names(fields: readonly RawField[]): readonly string[] {
    const { oversigned, oversignedWhenPresent, signed } = this.#fields
    const counts = new Map<string, number>()
    for (const { name } of fields) if (this.#isSigned(name)) counts.set(name, (counts.get(name) ?? 0) + 1)
    const present = (name: string): number => counts.get(name.toLowerCase()) ?? 0
    const prefixed = [...counts.keys()].filter((name) => !this.#named.has(name)).map((name) => this.#written(name))
    return [
      ...oversigned.flatMap((name) => repeated(name, present(name) + 1)),
      ...oversignedWhenPresent.flatMap((name) => (present(name) === 0 ? [] : repeated(name, present(name) + 1))),
      ...[...signed, ...prefixed].flatMap((name) => repeated(name, present(name))),
    ]
  }
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
