/** Fields of forms as the requests of the API have them: spans in seconds, and null for what was left empty. */
import { z } from 'zod'
import { span } from '../presentation/text.ts'
import { LONGEST_TIME } from '../queries/named-time.ts'
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
  const seconds = (parseDuration(text) ?? 0) / SECOND
  if (seconds > 0 && seconds <= LONGEST_TIME) return seconds
  const message = seconds > 0 ? `expected at most ${span(LONGEST_TIME * SECOND, 1)}` : 'expected a time above 0, such as 30m, 2h or 1d'
  context.addIssue({ code: 'custom', message })
  return z.NEVER
})

export const checkField = z
  .literal('yes')
  .optional()
  .transform((value) => value !== undefined)
