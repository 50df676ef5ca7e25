/** A time in a request: an instant, or a span from now. */
import { z } from 'zod'
import { isRange, NAMED_INSTANT, parseNamedInstant, parseNamedTime } from '../mail/message-times.ts'
import { SECOND, type WallTime } from '../system/clock.ts'
import { parseDuration } from '../system/duration.ts'

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

/** In seconds. A longer time would end at an instant that the queue cannot store as an integer of milliseconds. */
export const LONGEST_TIME = 8_000_000_000_000

/** A span in a body, in seconds: a text with a unit as in queries, or a number that `seconds` accepts. */
export const spanInSeconds = (seconds: z.ZodType<number, number> = z.number().positive().max(LONGEST_TIME)) =>
  z
    .union([z.string().max(50), z.number()])
    .transform((given, context) => {
      const span = typeof given === 'number' ? given : (parseDuration(given) ?? Number.NaN) / SECOND
      if (!Number.isNaN(span)) return span
      context.addIssue({ code: 'custom', message: 'expected seconds, or a time such as 30m, 2h or 1d' })
      return z.NEVER
    })
    .pipe(seconds)

/** The member `expires_in` of a request, in seconds. `what` is the consequence of the end, such as `the entry ends`. */
export const expiresIn = (what: string) =>
  spanInSeconds().nullable().default(null).describe(`time after which ${what}: 30m, 2h, 1d, or seconds; null for never`)
