/** The form that suspends a destination or a provider: the members of the API's request. */
import type { Actor } from '../store/records/audit-log.ts'
import { z } from 'zod'
import { suspensionRequest, suspensionShape } from '../api/route/suspension-body.ts'
import type { SuspensionRequest } from '../queue/operations.ts'
import type { WallTime } from '../system/clock.ts'
import { optionalField, spanField } from './form-fields.ts'

const { reason } = suspensionShape.shape

export const suspensionForm = z.strictObject({ reason: optionalField.pipe(reason.unwrap().nullable()), for: spanField })

export const suspensionOf = (
  { reason: given, for: time }: z.output<typeof suspensionForm>,
  actor: Actor,
  now: WallTime,
): SuspensionRequest => suspensionRequest({ reason: given ?? undefined, for: time ?? undefined }, actor, now)
