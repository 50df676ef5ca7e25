/** Shares of the queue in JSON. */
import { z } from 'zod'
import { count, type Json } from './members.ts'

const part = z.number().min(0).max(1).nullable()

const shareUseShape = z
  .object({
    class: z.string().nullable().describe('class of the mail; null without classes'),
    key: z.string().describe('key of the share (`share_key`); empty for mail without one, such as notices'),
    weight: count.describe('from `share_weight_maps`'),
    waiting: count.describe('recipients in the queue that are not in delivery'),
    in_flight: count.describe('recipients in delivery, at all nodes'),
    started: count.describe('recipients whose deliveries began in the last minute, at all nodes'),
    wanted: part.describe('part of the starts of the class that the weight gives it, beside the other shares with mail; null without mail'),
    got: part.describe('part of the starts of the class in the last minute; null when there were none'),
  })
  .meta({ id: 'ShareUse' })

export type ShareUseJson = Json<typeof shareUseShape>

export const sharesShape = z.object({
  fair_share: z.boolean().describe('whether deliveries are shared fairly; without, no share is listed'),
  total: count.describe('number of shares with mail'),
  shares: z.array(shareUseShape).describe('by class, the most recipients that wait or are in delivery first'),
})

export type SharesJson = Json<typeof sharesShape>
