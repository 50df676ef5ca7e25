/**
 * Tokens of plans: an operation with the messages that it selected when it was shown. The token holds the plan itself, so that any node
 * can carry it out, also after a restart. It has nothing but the operation: rights are checked, and the record of the audit log is made, when
 * the plan is carried out, so a token that a client made up has no more effect than a request without a plan.
 */
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import { z } from 'zod'
import { Problem, type ProblemKind } from '../../http/problem-details.ts'
import { byteSize, grouped } from '../../presentation/text.ts'
import { OPERATIONS } from '../../queue/operation-request.ts'
import type { ShownPlan } from '../../queue/operation-request.ts'
import { queueShape, selectionShape } from '../../presentation/selection-shape.ts'
import { errorCode } from '../../system/caught-error.ts'
import type { Asked } from './operation-request-shape.ts'

export const PLAN_PROBLEM: ProblemKind = {
  slug: 'plan',
  status: 422,
  title: 'Not a plan',
  about:
    'The member `plan` is not the token of a dry run of this version: repeat the dry run. Or the dry run names more than 50,000 messages, which no plan holds.',
}

export interface Planned extends Asked, Pick<ShownPlan, 'through' | 'matched'> {}

/** In bytes. */
const LARGEST_PLAN = 2 * 1024 * 1024
/** In ids that a plan names. */
const MOST_IDS = 50_000

const shape: z.ZodType<Planned> = z.strictObject({
  operation: z.enum(OPERATIONS),
  selection: selectionShape,
  queues: z.array(queueShape).nullable(),
  purge: z.boolean(),
  release: z
    .discriminatedUnion('kind', [
      z.strictObject({ kind: z.literal('span'), span: z.number().min(0) }),
      z.strictObject({ kind: z.literal('instant'), at: z.number().min(0) }),
    ])
    .nullable(),
  class: z.string().nullable(),
  through: z.int().min(0),
  matched: z.int().min(0),
} satisfies Record<keyof Planned, z.ZodType>)

/** Throws Problem for a plan that names too many messages. */
export function planToken(plan: Planned): string {
  const { selection } = plan
  if (selection.kind === 'ids' && selection.ids.length > MOST_IDS)
    throw new Problem(
      PLAN_PROBLEM,
      `a plan names at most ${grouped(MOST_IDS)} messages: select them by a filter, or send them without a dry run`,
    )
  return deflateRawSync(JSON.stringify(plan)).toString('base64url')
}

/** The plan of a token. Throws Problem for another text. */
export function planOfToken(text: string): Planned {
  try {
    const bytes = inflateRawSync(Buffer.from(text, 'base64url'), { maxOutputLength: LARGEST_PLAN })
    return shape.parse(JSON.parse(bytes.toString()))
  } catch (cause) {
    const isLarge = errorCode(cause) === 'ERR_BUFFER_TOO_LARGE'
    const detail = isLarge
      ? `the plan has more than ${byteSize(LARGEST_PLAN)}, which no dry run makes`
      : 'the plan is not the token of a dry run'
    throw new Problem(PLAN_PROBLEM, `${detail}: repeat the dry run`, { cause })
  }
}
