/** Operations of operators on messages in memory, and moves of recipients to other destinations. */
import { messageOf } from '../../mail/message.ts'
import { formerOf } from '../decisions/operation-changes.ts'
import { formerText } from '../former-times.ts'
import type { MessageOperation, Move } from '../message-operation.ts'
import type { OperationRound } from '../records/audit-log.ts'
import type { Operated } from '../records/audit-records.ts'
import { BEGIN_ROUND, END_ROUND } from '../records/operation-round.ts'
import type { HeldMail } from './held-mail.ts'
import type { Housekeeping } from './housekeeping.ts'
import { applyOperation } from './operate.ts'
import type { QueueOwner } from './queue-owner.ts'
import type { MemoryQueue } from './queue-state.ts'

interface OperatingParts {
  readonly queue: MemoryQueue
  readonly owner: QueueOwner
  readonly mail: HeldMail
  readonly housekeeping: Housekeeping
}

export class Operating {
  readonly #queue: MemoryQueue
  readonly #owner: QueueOwner
  readonly #mail: HeldMail
  readonly #housekeeping: Housekeeping

  constructor({ queue, owner, mail, housekeeping }: OperatingParts) {
    this.#queue = queue
    this.#owner = owner
    this.#mail = mail
    this.#housekeeping = housekeeping
  }

  async operate(operations: readonly MessageOperation[], round?: OperationRound) {
    if (round !== undefined && !BEGIN_ROUND.held(this.#queue.records, round)) return null
    const operated: Operated[] = []
    const results = operations.map((one) => {
      const held = this.#queue.messages.get(one.message)
      const was = held?.placement ?? 'queued'
      const former = held === undefined ? null : formerOf(held, one.operation)
      const result = applyOperation(this.#queue, one)
      for (const due of result.woken) this.#owner.due({ ...due, revive: one.operation.kind === 'flush' })
      if (result.changed) operated.push([one.message, was, former && formerText(former)])
      if (result.changed && one.operation.kind === 'requeue') operated.push([one.operation.newId, 'queued', null])
      return result
    })
    if (round !== undefined) END_ROUND.held(this.#queue.records, round, results.filter(({ changed }) => changed).length, operated)
    return results
  }

  async move(moves: readonly Move[]) {
    for (const { recipient, destination, expiresAt } of moves) {
      const one = this.#queue.messages.get(messageOf(recipient))?.recipients.find(({ id }) => id === recipient)
      if (one?.state === 'waiting' || one?.state === 'parked') {
        Object.assign(one, { destination, expiresAt, dueAt: Math.min(one.dueAt, expiresAt) })
        this.#mail.tellDue(one)
      }
    }
    const touched = new Set(moves.map(({ destination }) => destination))
    return (await this.#housekeeping.destinationsDue()).filter(({ destination }) => touched.has(destination))
  }
}
