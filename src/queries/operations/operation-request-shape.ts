/** The body of a request for an operation, and its meaning. */
import { queueShape } from '../../presentation/selection-shape.ts'
import { z } from 'zod'
import { invalidPart } from '../../http/problem-details.ts'
import { filterOf, isFiltered } from '../../store/message-conditions.ts'
import { OPERATIONS, type AskedOperation, type Selection } from '../../queue/operation-request.ts'
import type { Moment } from '../../mail/message-times.ts'
import { NAMED_TIME, namedTime } from '../named-time.ts'
import { bodyConditionShape } from '../message-query.ts'

const selectionShape = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('ids'), ids: z.array(z.string().min(1).max(255)).min(1) }),
  z.strictObject({
    kind: z.literal('filter'),
    filter: bodyConditionShape,
    limit: z.int().min(0).nullable().optional().describe('at most so many messages, the oldest first'),
    all: z.boolean().optional().describe('required for a filter without conditions'),
  }),
])

const choices = {
  reason: z.string().min(1).max(1_000).optional().describe('reason of the operator, for the audit log'),
  accept_growth: z.boolean().optional().describe('carry a plan out also when many more messages match than were shown'),
}

/** An operation that names its messages, or the dry run of such an operation. */
const directShape = z.strictObject({
  operation: z.enum(OPERATIONS),
  selection: selectionShape,
  queues: z.array(queueShape).nullable().optional().describe('queues whose messages may be changed'),
  not_before: namedTime.nullable().optional().describe(`for \`reschedule\`, time before which no delivery begins: ${NAMED_TIME}`),
  class: z.string().min(1).max(100).nullable().optional().describe('for `reclass`, name of the class that the messages get'),
  purge: z.boolean().optional().describe('delete permanently, without the trash'),
  all: z.boolean().optional().describe('required for a filter without conditions'),
  dry_run: z.boolean().optional().describe('answer with a plan, and change nothing'),
  ...choices,
})
/** As a client writes it. */
export type DirectBody = z.input<typeof directShape>
export type DirectRequest = z.output<typeof directShape>

const plannedShape = z.strictObject({ plan: z.string().min(1).describe('token of a dry run'), ...choices })
export type PlannedRequest = z.output<typeof plannedShape>

export const operationRequestShape = z.union([directShape, plannedShape])

/** An operation as the client requests it, before the server adds the name of the operator. */
export type Asked = AskedOperation

/** The operation that a request asks for. Throws Problem for a filter without conditions that does not say `all`. */
export function askedBy(request: DirectRequest, moment: Moment): Asked {
  const { operation, selection, queues = null, purge = false, not_before: release = null, class: named = null, all = false } = request
  if (purge && operation !== 'delete') throw invalidPart('/purge', 'purge is for the operation delete')
  if ((operation === 'reschedule') !== (release !== null))
    throw invalidPart('/not_before', 'the operation reschedule, and no other, needs the time before which no delivery begins')
  if ((operation === 'reclass') !== (named !== null))
    throw invalidPart('/class', 'the operation reclass, and no other, needs the name of a class')
  const rest = { operation, queues, purge, release, class: named }
  if (selection.kind === 'ids') return { ...rest, selection }
  const filter = filterOf(selection.filter, moment)
  if (!isFiltered(filter) && !all && selection.all !== true)
    throw invalidPart('/selection/filter', 'an empty filter selects all mail: add a condition, or "all": true')
  const chosen: Selection = { kind: 'filter', filter, limit: selection.limit ?? null }
  return { ...rest, selection: chosen }
}
