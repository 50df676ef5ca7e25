/** Senders of queued mail in JSON. */
import { z } from 'zod'
import { count, time, type Json } from './members.ts'

export const sendersShape = z
  .object({
    senders: z.array(z.object({ sender: z.string(), messages: count })).describe('those with the most messages first'),
    senders_counted: count.describe('number of senders; 20,000 at most'),
    messages: count.describe('messages of all senders'),
    as_of: time,
  })
  .meta({ id: 'Senders' })

export type SendersJson = Json<typeof sendersShape>
