/** Use of quotas in JSON. */
import { z } from 'zod'
import { QUOTA_ACTIONS, QUOTA_KEYS, type QuotaLimit, type QuotaTable } from '../../config/values/tables/quota-table.ts'
import { SECOND, type QueueTime } from '../../system/clock.ts'
import type { WallView } from '../../system/wall-view.ts'
import { count, timeOrNull, type Json } from '../members.ts'

const quotaUseShape = z
  .object({
    quota: z.string().describe('name of the `[quota.NAME]` table'),
    key: z.string().describe('whose mail it is'),
    keys: z.string().describe(`origin of the key: ${QUOTA_KEYS.join(', ')}, or header:NAME`),
    action: z.enum(QUOTA_ACTIONS).describe('what becomes of mail without room'),
    limit: z.string().describe('the limit as it is written, such as 1000/1h'),
    measure: z.enum(['messages', 'recipients']),
    span: count.describe('in seconds'),
    used: count.describe('in the last 13 twelfths of the span'),
    planned: count.describe('mail that is held, and that is charged to later slices'),
    maximum: count,
    refuses: z
      .boolean()
      .describe('true while such a message is refused: also by a quota that holds, when it would be held longer than `hold_limit`'),
    room_time: timeOrNull.describe('time from which there is room for a message with one recipient; null for now'),
  })
  .meta({ id: 'QuotaUse' })

export type QuotaUseJson = Json<typeof quotaUseShape>

export const quotaUsesShape = z.object({ uses: z.array(quotaUseShape).describe('the fullest limits first') })

export type QuotaUsesJson = Json<typeof quotaUsesShape>

interface LimitUse {
  readonly table: QuotaTable
  readonly key: string
  readonly limit: QuotaLimit
  readonly used: number
  readonly planned: number
  /** Null for now. */
  readonly roomAt: QueueTime | null
  /** True when mail without room is refused until then. */
  readonly refuses: boolean
}

export const quotaUseJson = ({ table, key, limit, used, planned, roomAt, refuses }: LimitUse, wall: WallView): QuotaUseJson => ({
  quota: table.name,
  key,
  keys: table.key,
  action: table.action,
  limit: limit.text,
  measure: limit.measure,
  span: limit.span / SECOND,
  used,
  planned,
  maximum: limit.most,
  refuses,
  room_time: wall.secondsOrNull(roomAt),
})
