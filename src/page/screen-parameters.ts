/**
 * The parameters in the queries of the screens. Each screen declares its own. A query with another one, or with a value that a parameter
 * cannot have, is refused: ignored, it would show or select other mail than was asked for.
 */
import { clipped } from '../presentation/text.ts'
import { shown } from '../system/shown-value.ts'

/** A value of any text, which the screen checks itself. */
export const TEXT = 'text'

/** The parameters of a screen by their names, each with the values that it can have. */
export type ScreenParameters = Readonly<Record<string, typeof TEXT | readonly string[]>>

/** The values of a query without blanks around them; empty for an absent parameter. */
export type AskedParameters<Declared extends ScreenParameters> = {
  readonly [Name in keyof Declared]: Declared[Name] extends readonly (infer Value extends string)[] ? Value | '' : string
}

/** Declares parameters of any text. */
export const texts = <Name extends string>(...names: readonly Name[]): Readonly<Record<Name, typeof TEXT>> =>
  Object.fromEntries(names.map((name) => [name, TEXT])) as Record<Name, typeof TEXT>

/** Declares the parameters that a shape of the API has, which also checks their values. */
export const textsOf = <Name extends string>(members: Readonly<Record<Name, unknown>>): Readonly<Record<Name, typeof TEXT>> =>
  texts(...(Object.keys(members) as Name[]))

/** In characters, of a name or a value in an error. */
const LONGEST_QUOTED = 100

const quoted = (text: string): string => clipped(shown(text), LONGEST_QUOTED)

const unknownName = (name: string, known: readonly string[]): string =>
  `Unknown parameter ${quoted(name)}; ${known.length === 0 ? 'this screen has none' : `known: ${known.join(', ')}`}.`

const unknownValue = (name: string, value: string, values: readonly string[]): string =>
  `Parameter ${name}: expected one of ${values.join(', ')}, got ${quoted(value)}.`

type Checked<Declared extends ScreenParameters> =
  | { readonly kind: 'valid'; readonly asked: AskedParameters<Declared> }
  /** `parameter` is the name of the one to leave out. */
  | { readonly kind: 'refused'; readonly parameter: string; readonly problem: string }

/** The declared parameters of a query. Of one that is given several times, the first value counts. */
export function checkedQuery<Declared extends ScreenParameters>(query: URLSearchParams, declared: Declared): Checked<Declared> {
  const known = Object.keys(declared)
  for (const [name, given] of query) {
    const values = Object.hasOwn(declared, name) ? declared[name] : undefined
    const value = given.trim()
    if (values === undefined) return { kind: 'refused', parameter: name, problem: unknownName(name, known) }
    if (values !== TEXT && value !== '' && !values.includes(value))
      return { kind: 'refused', parameter: name, problem: unknownValue(name, value, values) }
  }
  const asked = Object.fromEntries(known.map((name) => [name, query.get(name)?.trim() ?? '']))
  return { kind: 'valid', asked: asked as AskedParameters<Declared> }
}
