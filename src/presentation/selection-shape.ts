/**
 * Shapes of a selection of messages, as one process sends it to another: at the control socket, and in the token of a plan. They are strict
 * and no key has a default: a request of another version is refused as a whole instead of selecting more mail.
 */
import { z } from 'zod'
import type { Selection } from '../queue/operation-request.ts'
import { CONDITION_KEYS, MESSAGE_CONDITIONS, type ConditionKind, type QueueFilter } from '../store/message-conditions.ts'

/** Queues whose messages an operation may be limited to. */
export const queueShape = z.enum(['incoming', 'active', 'deferred', 'hold', 'corrupt'])

/** Texts of a request have up to 1,000 characters; an internationalized domain is longer in its normal form. */
const text = z.string().max(4_000)

const VALUES: Readonly<Record<ConditionKind, z.ZodType>> = {
  id: text,
  sender: text,
  address: text,
  destination: text,
  queue: queueShape.or(z.literal('trash')),
  age: z.number(),
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
