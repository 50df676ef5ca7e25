/** The effect that an erasure would have. */
import { z } from 'zod'
import type { ErasurePlan } from '../../queue/erasing.ts'
import type { WallView } from '../../system/wall-view.ts'
import type { QueueTime } from '../../system/clock.ts'
import { count, time, type Json } from '../members.ts'

const planShape = z.object({
  messages: count.describe('messages of the history that would be changed'),
  rows: z
    .array(z.object({ table: z.string(), rows: count }))
    .describe('rows that would be changed or deleted, by table of the queue; docs/erasure.md tells what they are'),
  live_messages: count.describe('messages of such addresses in the queue and in the trash, which stay: delete them first'),
  before: time.describe('mail that leaves the queue later is not changed, when this condition is repeated'),
})

export const erasurePlanShape = z
  .object({ operation: z.literal('erase'), dry_run: z.literal(true), plan: planShape })
  .meta({ id: 'ErasurePlan' })

export type ErasurePlanJson = Json<typeof planShape>

export const erasurePlanJson = ({ rows, live }: ErasurePlan, before: QueueTime, wall: WallView): ErasurePlanJson => ({
  messages: rows.get('history') ?? 0,
  rows: [...rows].map(([table, number]) => ({ table, rows: number })),
  live_messages: live,
  before: wall.seconds(before),
})
