/**
 * Tokens of plans: an operation with the messages that it selected when it was shown. The token holds the plan itself, so that any node
 * can carry it out, also after a restart. Rights are checked when a plan is carried out, so a token that a client made up has no more
 * effect than a request without a plan.
 */
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import { z } from 'zod'
import { Problem, type ProblemKind } from '../../http/problem-details.ts'
import { OPERATIONS } from '../../queue/operation-request.ts'
import type { ShownPlan } from '../../queue/operation-request.ts'
import type { QueueFilter } from '../../store/queue-reader.ts'
import type { Asked } from './operation-request-shape.ts'

export const PLAN_PROBLEM: ProblemKind = {
  slug: 'plan',
  status: 422,
  title: 'Not a plan',
  about: 'The member `plan` is not the token of a dry run of this version: repeat the dry run.',
}

/** A plan that was shown. */
export interface Planned extends Asked, Pick<ShownPlan, 'through' | 'matched'> {}

/** Maximum size of a plan in bytes. */
const LARGEST = 64 * 1024 * 1024

const textOrNull = z.string().nullable()
const numberOrNull = z.number().nullable()
const queue = z.enum(['incoming', 'active', 'deferred', 'hold', 'corrupt'])

const shape: z.ZodType<Planned> = z.strictObject({
  operation: z.enum(OPERATIONS),
  selection: z.discriminatedUnion('kind', [
    z.strictObject({ kind: z.literal('ids'), ids: z.array(z.string()) }),
    z.strictObject({
      kind: z.literal('filter'),
      filter: z.strictObject({
        queueId: textOrNull,
        sender: textOrNull,
        recipient: textOrNull,
        destination: textOrNull,
        queue: queue.or(z.literal('trash')).nullable(),
        arrivedBefore: numberOrNull,
        arrivedAfter: numberOrNull,
        attemptsOver: numberOrNull,
        status: textOrNull,
        reply: textOrNull,
      } satisfies Record<keyof QueueFilter, z.ZodType>),
      limit: numberOrNull,
    }),
  ]),
  queues: z.array(queue).nullable(),
  purge: z.boolean(),
  commandLine: z.string(),
  through: z.int().min(0),
  matched: z.int().min(0),
} satisfies Record<keyof Planned, z.ZodType>)

export const planToken = (plan: Planned): string => deflateRawSync(JSON.stringify(plan)).toString('base64url')

/** The plan of a token. Throws Problem for another text. */
export function planOfToken(text: string): Planned {
  try {
    const bytes = inflateRawSync(Buffer.from(text, 'base64url'), { maxOutputLength: LARGEST })
    return shape.parse(JSON.parse(bytes.toString()))
  } catch (cause) {
    throw new Problem(PLAN_PROBLEM, 'the plan is not the token of a dry run: repeat the dry run', { cause })
  }
}
