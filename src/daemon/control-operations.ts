/** Requests at the control socket for operations on messages: carry one out, undo one, cancel one. */
import { z } from 'zod'
import { jsonBody } from '../http/request-body.ts'
import type { Failure } from '../http/failure-line.ts'
import { route, type Route } from '../http/route-table.ts'
import { OPERATIONS, type BulkOperation, type CommandedUndo, type OperationSummary, type Progress } from '../queue/operation-request.ts'
import type { Operations } from '../queue/operations.ts'
import { queueShape, selectionShape } from '../presentation/selection-shape.ts'
import type { Clock, Duration } from '../system/clock.ts'

/** One line of the response to an operation or an undo. */
export type OperationReply<S extends OperationSummary = OperationSummary> =
  | { readonly kind: 'progress'; readonly soFar: Progress }
  | { readonly kind: 'done'; readonly summary: S }
  | Failure

/** In bytes. A million queue ids fit. */
export const BODY_LIMIT = 32 * 1024 * 1024

export const PROGRESS_INTERVAL: Duration = 100

const textOrNull = z.string().nullable()

/** The shape is strict and no key has a default. A request of another version is refused as a whole instead of being executed in part. */
const operationShape: z.ZodType<BulkOperation> = z.strictObject({
  operation: z.enum(OPERATIONS),
  selection: selectionShape,
  queues: z.array(queueShape).nullable(),
  purge: z.boolean(),
  dryRun: z.boolean(),
  who: z.string(),
} satisfies Record<keyof BulkOperation, z.ZodType>)

const operationId = z.int().positive()

const undoShape: z.ZodType<CommandedUndo> = z.strictObject({
  operation: operationId,
  who: z.string(),
  reason: textOrNull,
} satisfies Record<keyof CommandedUndo, z.ZodType>)

const cancellationShape = z.strictObject({ operation: operationId, who: z.string() })

export const operationRoutes = (operations: Operations, clock: Clock): readonly Route[] => [
  route({
    method: 'POST',
    path: '/operations',
    role: 'local',
    body: jsonBody(operationShape, BODY_LIMIT, Infinity),
    handler: ({ body }) => ({
      kind: 'lines',
      produce: (send) => reported(clock, send, (progress) => operations.perform(body, progress)),
    }),
  }),
  route({
    method: 'POST',
    path: '/operations/undo',
    role: 'local',
    body: jsonBody(undoShape, BODY_LIMIT),
    handler: ({ body }) => ({
      kind: 'lines',
      produce: (send) => reported(clock, send, (progress) => operations.undo(body, progress)),
    }),
  }),
  route({
    method: 'POST',
    path: '/operations/cancel',
    role: 'local',
    body: jsonBody(cancellationShape, BODY_LIMIT),
    handler: async ({ body: { operation, who } }) => ({
      kind: 'json',
      status: 200,
      value: { outcome: await operations.jobs.cancel(operation, who) },
    }),
  }),
]

/** Runs an operation. Sends the changed ids of every round, even when a later round fails. */
async function reported<S extends OperationSummary>(
  clock: Clock,
  send: (reply: OperationReply<S>) => void,
  run: (progress: (soFar: Progress) => void) => Promise<S>,
): Promise<void> {
  let unsent: Progress = { matched: 0, changed: 0, unknown: [], ids: [] }
  let sentAt = clock.monotonic()
  const sendProgress = () => {
    send({ kind: 'progress', soFar: unsent })
    unsent = { ...unsent, ids: [] }
    sentAt = clock.monotonic()
  }
  const running = run(({ matched, changed, ids }) => {
    unsent = { matched, changed, unknown: [], ids: [...unsent.ids, ...ids] }
    if (clock.monotonic() - sentAt >= PROGRESS_INTERVAL) sendProgress()
  })
  const summary = await running.finally(sendProgress)
  send({ kind: 'done', summary })
}
