/** Writes the audit log, the messages that operations have changed, and requests that were carried out. */
import type { MessageId, OwnerId, Placement } from '../../../mail/message.ts'
import type { IdempotentRequest, NewOperation, OperationRound } from '../../audit-log.ts'
import type { QueueTime } from '../../../system/clock.ts'
import { int8s, storableText, texts } from '../session/arrays.ts'
import * as sql from './audit-queries.ts'
import { sent, type Send, type Transaction } from './write-transaction.ts'

/** Maximum number of rows that one call forgets, which takes some milliseconds. */
const FORGOTTEN = 1_000

/** A request with its answer. */
interface Request extends IdempotentRequest {
  readonly at: QueueTime
  readonly answer: string
}

interface AuditWriterDeps {
  readonly owner: OwnerId
  /** Parameter `node_name`. */
  readonly name: string
}

const orNull = (text: string | null): string | null => (text === null ? null : storableText(text))

export class AuditWriter {
  readonly #deps: AuditWriterDeps

  constructor(deps: AuditWriterDeps) {
    this.#deps = deps
  }

  audit: Send<'audit'> = (tx, calls) =>
    sent(
      Promise.all(
        calls.map(async ([{ at, who, action, arguments: words, changed, reason = null }]) => {
          const parameters = [this.#deps.name, at, storableText(who), action, storableText(words), changed, orNull(reason)]
          const [row] = await tx.query<{ id: number }>(sql.insertAudit, parameters)
          return row?.id ?? 0
        }),
      ),
    )

  beginOperation: Send<'beginOperation'> = (tx, calls) => ({
    answers: Promise.all(calls.map(([operation]) => this.#begin(tx, operation))),
    isLast: false,
  })

  endOperation: Send<'endOperation'> = (tx, calls) =>
    sent(
      Promise.all(
        calls.map(async ([id, { state, at, matched = null, inTransfer = 0, unknown = null, error }]) => {
          return (await tx.query(sql.endOperation, [id, state, at, matched, unknown, orNull(error), inTransfer])).length > 0
        }),
      ),
    )

  /** Whether an operation is running. It cannot end before this transaction. */
  async locks(tx: Transaction, { operation }: OperationRound): Promise<boolean> {
    return (await tx.query(sql.lockRunning, [operation])).length > 0
  }

  /** Counts a round of an operation and records the messages that it has changed or added, each with its placement before, and its times before a reschedule. */
  async count(
    tx: Transaction,
    { operation, at, matched }: OperationRound,
    changed: number,
    operated: readonly (readonly [message: MessageId, was: Placement, former: string | null])[],
  ): Promise<void> {
    await Promise.all([
      tx.query(sql.countRound, [operation, changed, matched, at]),
      tx.query(sql.insertOperated, [
        operation,
        int8s(operated.map(([message]) => message)),
        texts(operated.map(([, was]) => was)),
        texts(operated.map(([, , former]) => former)),
      ]),
    ])
  }

  /** Those of the messages in the trash that were on hold when an operation deleted them. */
  async heldBefore(tx: Transaction, messages: readonly MessageId[]): Promise<ReadonlySet<MessageId>> {
    if (messages.length === 0) return new Set()
    const rows = await tx.query<{ id: MessageId; was: Placement | null }>(sql.placementsBefore, [int8s(messages)])
    return new Set(rows.filter(({ was }) => was === 'hold').map(({ id }) => id))
  }

  /** Keeps requests. Fails at a key that is kept, which the writer reports as RequestRepeated. */
  async keep(tx: Transaction, requests: readonly Request[]): Promise<void> {
    if (requests.length === 0) return
    await tx.query(sql.insertRequests, [
      texts(requests.map(({ key }) => key)),
      texts(requests.map(({ digest }) => digest)),
      int8s(requests.map(({ at }) => at)),
      texts(requests.map(({ answer }) => answer)),
    ])
  }

  /** Forgets a slice of old rows. Returns whether more may be left. */
  async forget(
    tx: Transaction,
    { historyBefore, requestsBefore }: { readonly historyBefore: QueueTime; readonly requestsBefore: QueueTime },
  ) {
    const [operated, requests] = await Promise.all([
      tx.query(sql.forgetOperated, [historyBefore, FORGOTTEN]),
      tx.query(sql.forgetRequests, [requestsBefore, FORGOTTEN]),
    ])
    return operated.length > 0 || requests.length === FORGOTTEN
  }

  async #begin(
    tx: Transaction,
    { at, who, action, arguments: words, reason, expected, undoUntil, undoes, request }: NewOperation,
  ): Promise<number> {
    const { name, owner } = this.#deps
    const parameters = [name, owner, at, storableText(who), action, storableText(words), orNull(reason), expected, undoUntil, undoes]
    const [row] = await tx.query<{ id: number }>(sql.beginOperation, parameters)
    const id = row?.id ?? 0
    if (request !== null) await this.keep(tx, [{ ...request, at, answer: String(id) }])
    return id
  }
}
