/** Kept MTA-STS policies in JSON. */
import { z } from 'zod'
import type { StsPolicy } from '../../store/records/sts-policy.ts'
import { SECOND } from '../../system/clock.ts'
import type { WallView } from '../../system/wall-view.ts'
import { textOrNull, time, timeOrNull, type Json } from '../members.ts'

const stsPolicyShape = z.object({
  domain: z.string(),
  id: z.string(),
  mode: z.string(),
  mx: z.array(z.string()),
  max_age: z.number().describe('in seconds'),
  fetched_time: time,
  expire_time: time,
  used_time: time,
  failed_time: timeOrNull,
  failure: textOrNull,
})

export const stsPoliciesShape = z.object({ policies: z.array(stsPolicyShape) }).meta({ id: 'StsPolicies' })

export type StsPolicyJson = Json<typeof stsPolicyShape>
export type StsPoliciesJson = Json<typeof stsPoliciesShape>

export const stsPolicyJson = (
  { domain, id, mode, mx, fetchedAt, expiresAt, usedAt, failedAt, failure }: StsPolicy,
  wall: WallView,
): StsPolicyJson => ({
  domain,
  id,
  mode,
  mx,
  max_age: (expiresAt - fetchedAt) / SECOND,
  fetched_time: wall.seconds(fetchedAt),
  expire_time: wall.seconds(expiresAt),
  used_time: wall.seconds(usedAt),
  failed_time: wall.secondsOrNull(failedAt),
  failure,
})
