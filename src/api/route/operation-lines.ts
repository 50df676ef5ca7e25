/** Operations that are answered by lines: the progress at intervals, then the outcome. */
import { z } from 'zod'
import type { Answer } from '../../http/route-table.ts'
import type { OperationSummary, Progress, UndoSummary } from '../../queue/operation-request.ts'
import { passedOverMembers } from '../../resources/operation-json.ts'
import type { Clock, Duration } from '../../system/clock.ts'

/** Time between two lines. */
export const PROGRESS_INTERVAL: Duration = 100

const count = z.int().min(0)
const counts = { matched: count, changed: count }

export const operationLine = z
  .union([
    z.object({ progress: z.object({ ...counts, ids: z.array(z.string()).describe('changed since the last line') }) }),
    z.object({
      done: z.object({
        ...counts,
        in_transfer: count.describe('messages of which a recipient is in transfer: delivered and bounced stand'),
        unknown: z.array(z.string()).describe('ids found neither in the queue nor in the trash'),
        ...passedOverMembers,
        id: z.int().optional().describe('of an undo, which is an operation too'),
      }),
    }),
    z.object({ failed: z.object({ detail: z.string(), exit_code: z.int().describe('as of sysexits(3)') }) }),
  ])
  .meta({ id: 'OperationLine' })
export type OperationLine = z.output<typeof operationLine>

/** Runs an operation. Sends the changed ids of every round, even when a later round fails. */
async function report(
  clock: Pick<Clock, 'monotonic'>,
  run: (progress: (soFar: Progress) => void) => Promise<OperationSummary | UndoSummary>,
  send: (line: OperationLine) => void,
): Promise<void> {
  let unsent = { matched: 0, changed: 0, ids: [] as readonly string[] }
  let sentAt = clock.monotonic()
  const sendProgress = (): void => {
    send({ progress: { ...unsent, ids: [...unsent.ids] } })
    unsent = { ...unsent, ids: [] }
    sentAt = clock.monotonic()
  }
  const running = run(({ matched, changed, ids }) => {
    unsent = { matched, changed, ids: [...unsent.ids, ...ids] }
    if (clock.monotonic() - sentAt >= PROGRESS_INTERVAL) sendProgress()
  })
  const { inTransfer, unknown, ...done } = await running.finally(sendProgress)
  send({ done: { ...done, in_transfer: inTransfer, unknown: [...unknown] } })
}

/** `isSearch` for work that changes nothing. */
export const operationLines = (
  clock: Pick<Clock, 'monotonic'>,
  isSearch: boolean,
  run: (progress: (soFar: Progress) => void) => Promise<OperationSummary | UndoSummary>,
): Answer => ({ kind: 'lines', isSearch, produce: (send) => report(clock, run, send) })
