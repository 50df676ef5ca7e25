/**
 * The parameters in the queries of the screens. Each screen declares its own. A query with another one, or with a value that a parameter
 * cannot have, is refused: ignored, it would show or select other mail than was asked for.
 */
import { clipped } from '../../presentation/text.ts'
import { shown } from '../../system/shown-value.ts'

/** A value of any text, which the screen checks itself. */
export const TEXT = 'text'

/** The same of a parameter that may be given several times. */
export const SEVERAL_TEXTS = 'texts'

/** The parameters of a screen by their names, each with the values that it can have. */
export type ScreenParameters = Readonly<Record<string, typeof TEXT | typeof SEVERAL_TEXTS | readonly string[]>>

/** The values of a query without blanks around them, of several the first; empty for an absent parameter. */
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

/** Null for a valid value of a declared parameter; otherwise a sentence. */
function problemOf(declared: ScreenParameters, name: string, given: readonly string[]): string | null {
  const values = Object.hasOwn(declared, name) ? declared[name] : undefined
  if (values === undefined) return unknownName(name, Object.keys(declared))
  if (values === SEVERAL_TEXTS) return null
  if (given.length > 1) return `Parameter ${name}: expected one value, got ${given.length}.`
  const value = given[0]?.trim() ?? ''
  return values === TEXT || value === '' || values.includes(value) ? null : unknownValue(name, value, values)
}

/** The declared parameters of a query. */
export function checkedQuery<Declared extends ScreenParameters>(query: URLSearchParams, declared: Declared): Checked<Declared> {
  for (const name of new Set(query.keys())) {
    const problem = problemOf(declared, name, query.getAll(name))
    if (problem !== null) return { kind: 'refused', parameter: name, problem }
  }
  const asked = Object.fromEntries(Object.keys(declared).map((name) => [name, query.get(name)?.trim() ?? '']))
  return { kind: 'valid', asked: asked as AskedParameters<Declared> }
}
