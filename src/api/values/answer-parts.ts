/** Members that several shapes of answers have, and the shape of a problem. Times are seconds since 1970 with a fraction. */
import { FAILURE_CLASSES } from '../../mail/failure-class.ts'
import { z } from 'zod'

export const time = z.number().describe('seconds since 1970')
export const timeOrNull = time.nullable()
export const textOrNull = z.string().nullable()
export const count = z.int().min(0)

export const next = z.string().nullable().describe('cursor of the next page; null after the last one')

export const failureClass = z.enum(FAILURE_CLASSES).describe('class of the failure; see docs/deliverability.md')

export const hint = textOrNull.describe('what an operator has to do, for refusals that concern the login of this relay')

export const problem = z
  .object({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    errors: z.array(z.object({ pointer: z.string(), detail: z.string() })).optional(),
  })
  .meta({ id: 'Problem' })
