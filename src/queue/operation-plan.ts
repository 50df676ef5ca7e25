/** Plans of operations: what an operator was shown before an operation, and whether it still holds. */
import type { OperationRequest, ShownPlan } from './operation-request.ts'
import { selectedRounds, type SelectionDeps } from './selected-messages.ts'

/** Growth of a selection that needs no new look: this share of what was shown, and at most this number of messages. */
const GROWTH_SHARE = 0.1
const GROWTH = 100

/** Many more messages are selected than the operator was shown (EX_TEMPFAIL). */
export class PlanOutdated extends Error {
  override readonly name = 'PlanOutdated'
  readonly exitCode = 75
  /** Number of messages that are selected now. */
  readonly matched: number

  constructor(shown: number, matched: number) {
    super(`${matched} messages are selected now, ${matched - shown} more than were shown: look again, then repeat the operation`)
    this.matched = matched
  }
}

/** Whether a selection has grown so much that the operator must look again. */
export const hasOutgrown = (shown: number, now: number): boolean => now - shown > GROWTH || now - shown > shown * GROWTH_SHARE

/** Rejects with PlanOutdated when many more messages are selected now than were shown. */
export async function assertNotOutdated(deps: SelectionDeps, request: OperationRequest, { matched: shown, acceptsGrowth }: ShownPlan) {
  if (acceptsGrowth) return
  let matched = 0
  for await (const round of selectedRounds(deps, { ...request, through: null }, [])) matched += round.length
  if (hasOutgrown(shown, matched)) throw new PlanOutdated(shown, matched)
}
