/** One row of the table of parameters (options.ts), and the parameters that a later major version will not have (docs/compatibility.md). */
import type { RawSettings } from './sources.ts'
import type * as is from './values.ts'

export interface Option<T, Local extends boolean = boolean> {
  readonly kind: is.Kind<T>
  /** Default in the syntax of the configuration file. */
  readonly default: string
  readonly about: string
  /** True when a `[destination."…"]` table may set the parameter; the name has no `default_` prefix there. */
  readonly perDestination: Local
  /** True when a `[[smtpd]]` table may set the parameter for its listener. */
  readonly perListener?: boolean
}

export const option = <T>(kind: is.Kind<T>, byDefault: string, about: string): Option<T, false> => ({
  kind,
  default: byDefault,
  about,
  perDestination: false,
})

/** A parameter of the SMTP server that a `[[smtpd]]` table may set. */
export const perListener = <T>(kind: is.Kind<T>, byDefault: string, about: string): Option<T, false> & { readonly perListener: true } => ({
  ...option(kind, byDefault, about),
  perListener: true,
})

/** A parameter that a `[destination."…"]` table may set. */
export const perDestination = <T>(kind: is.Kind<T>, byDefault: string, about: string): Option<T, true> => ({
  kind,
  default: byDefault,
  about,
  perDestination: true,
})

export interface Deprecation {
  /** The version since which each start warns: `1.2.0`. */
  readonly since: string
  /** The version that does not have the parameter any more: `2.0.0`. */
  readonly until: string
  /** Text to write in its place: `default_transport_rate`. */
  readonly instead: string
}

/** By the names of the parameters. */
export type Deprecations = Readonly<Record<string, Deprecation>>

/** There is none yet. The changelog has each under "Deprecated", and a release is refused while one is there at its end. */
export const DEPRECATIONS: Deprecations = {}

/** The sentence for warnings and for docs/configuration.md, without the name of the parameter. */
export const deprecationText = ({ since, until, instead }: Deprecation): string =>
  `deprecated since ${since}, and removed in ${until}: use ${instead}`

/** A warning for each deprecated parameter that is set, above the tables or in one, with its position. */
export function deprecationWarnings(
  { parameters, destinations, providers, classes }: Pick<RawSettings, 'parameters' | 'destinations' | 'providers' | 'classes'>,
  deprecations: Deprecations,
): readonly string[] {
  const tables = [...destinations.values(), ...providers.values(), ...classes.values()]
  return Object.entries(deprecations).flatMap(([name, deprecation]) => {
    const inTable = name.replace(/^default_/, '')
    const set = [parameters.get(name), ...tables.map((table) => table.get(inTable))]
    return set.flatMap((given) => (given === undefined ? [] : [`${given.where}: ${name} is ${deprecationText(deprecation)}`]))
  })
}
