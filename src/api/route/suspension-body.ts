/** The body of requests that suspend a destination or a provider. */
import type { Actor } from '../../store/records/audit-log.ts'
import { z } from 'zod'
import { HTTP_PROBLEMS, Problem } from '../../http/problem-details.ts'
import type { SuspensionRequest } from '../../queue/operations.ts'
import type { WallTime } from '../../system/clock.ts'
import { spanInSeconds } from '../../queries/named-time.ts'

/** End of the year 9999, the last one of ISO 8601 with four digits, in seconds since 1970. */
const LATEST = 253_402_300_799

export const suspensionShape = z.strictObject({
  reason: z.string().min(1).max(1_000).optional(),
  until: z.number().max(LATEST).optional().describe('time at which the suspension ends by itself'),
  for: spanInSeconds().optional().describe('time after which it ends by itself, in place of `until`: 30m, 2h, 1d, or seconds'),
})

export type SuspensionBody = z.output<typeof suspensionShape>

export const SUSPENSION_EXAMPLE = { reason: 'rate limited', until: 1_764_000_000 }

/** The request of an operator. Throws Problem for an end that has passed. */
export function suspensionRequest(body: SuspensionBody, actor: Actor, now: WallTime): SuspensionRequest {
  const remaining = body.until === undefined ? null : Math.round(body.until * 1_000) - now
  const duration = body.for === undefined ? remaining : Math.round(body.for * 1_000)
  if (duration !== null && duration <= 0) throw past()
  return { ...actor, duration, reason: body.reason ?? null }
}

const past = (): Problem => {
  const detail = 'the time has passed: name one in the future, or none'
  return new Problem(HTTP_PROBLEMS.invalid, `invalid request: /until: ${detail}`, { errors: [{ pointer: '/until', detail }] })
}
