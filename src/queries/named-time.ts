/** A time in a request: an instant, or a span from now. */
import { z } from 'zod'
import { isRange, NAMED_INSTANT, parseNamedInstant, parseNamedTime } from '../mail/message-times.ts'
import type { WallTime } from '../system/clock.ts'

export const NAMED_TIME = 'seconds since 1970, RFC 3339, or a time from now such as 2h'

/** An instant in the text of a query. */
export const instantText = z
  .string()
  .max(50)
  .transform((given, context) => {
    const at = parseNamedInstant(given)
    if (at !== undefined) return at
    context.addIssue({ code: 'custom', message: `expected ${NAMED_INSTANT}` })
    return z.NEVER
  })

type Range<Name extends string> = { readonly [End in `${Name}_${'after' | 'before'}`]?: WallTime | undefined }

/** Arguments of `refine` for a query with the instants `NAME_after` and `NAME_before`: the end is after the begin. */
export const ordered = <Name extends string>(name: Name): [(query: Range<Name>) => boolean, { path: string[]; error: string }] => [
  (query) => isRange(query[`${name}_after`], query[`${name}_before`]),
  { path: [`${name}_before`], error: `expected a time after ${name}_after` },
]

/** An instant in a body. */
export const namedInstant = z.union([z.string(), z.number()]).transform(String).pipe(instantText)

export const namedTime = z.union([z.string().max(50), z.number()]).transform((given, context) => {
  const time = parseNamedTime(given)
  if (time === undefined) context.addIssue({ code: 'custom', message: `expected ${NAMED_TIME}` })
  return time ?? z.NEVER
})
