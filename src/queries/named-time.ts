/** A time in a request: an instant, or a span from now. */
import { z } from 'zod'
import { NAMED_INSTANT, parseNamedInstant, parseNamedTime } from '../mail/message-times.ts'

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

/** An instant in a body. */
export const namedInstant = z.union([z.string(), z.number()]).transform(String).pipe(instantText)

export const namedTime = z.union([z.string().max(50), z.number()]).transform((given, context) => {
  const time = parseNamedTime(given)
  if (time === undefined) context.addIssue({ code: 'custom', message: `expected ${NAMED_TIME}` })
  return time ?? z.NEVER
})
