/** Fields of forms as the requests of the API have them: spans in seconds, and null for what was left empty. */
import { z } from 'zod'
import { SECOND } from '../system/clock.ts'
import { parseDuration } from '../system/duration.ts'

const LONGEST = 4_000

/** A text without blanks around it; empty for a field that the form does not have. */
export const textField = z.string().max(LONGEST).trim().default('')

/** Null when it was left empty. */
export const optionalField = textField.transform((text) => (text === '' ? null : text))

/** Seconds above 0; null when it was left empty. */
export const spanField = textField.transform((text, context) => {
  if (text === '') return null
  const time = parseDuration(text)
  if (time !== undefined && time > 0) return time / SECOND
  context.addIssue({ code: 'custom', message: 'expected a time above 0, such as 30m, 2h or 1d' })
  return z.NEVER
})

export const checkField = z
  .literal('yes')
  .optional()
  .transform((value) => value !== undefined)
