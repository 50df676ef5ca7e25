/** One row of the table of parameters (options.ts). */
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
