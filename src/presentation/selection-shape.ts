/**
 * Shapes of a selection of messages in the token of a plan, which a daemon of another version may get. The shapes are
 * strict and without defaults: a request of another version is refused as a whole instead of selecting more mail.
 */
import { QUEUE_NAMES } from '../mail/message.ts'
import { z } from 'zod'
import type { Selection } from '../queue/operation-request.ts'
import { CONDITION_KEYS, MESSAGE_CONDITIONS, type ConditionKind, type QueueFilter } from '../store/message-conditions.ts'

/** An operation may be limited to messages in these queues. */
export const queueShape = z.enum(QUEUE_NAMES)

/** A text in a request has up to 1,000 characters. The normal form of an internationalized domain is longer. */
const text = z.string().max(4_000)

const VALUES: Readonly<Record<ConditionKind, z.ZodType>> = {
  id: text,
  sender: text,
  address: text,
  destination: text,
  queue: queueShape.or(z.literal('trash')),
  name: text,
  age: z.number(),
  rest: z.number(),
  instant: z.number(),
  count: z.int(),
  status: text,
  text,
}

const filterShape = z.strictObject(
  Object.fromEntries(CONDITION_KEYS.map((key) => [key, VALUES[MESSAGE_CONDITIONS[key].kind].nullable()])),
) as unknown as z.ZodType<QueueFilter>

export const selectionShape: z.ZodType<Selection> = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('ids'), ids: z.array(z.string()) }),
  z.strictObject({ kind: z.literal('filter'), filter: filterShape, limit: z.int().nullable() }),
])
