/**
 * Claims of moves: of several nodes, one at a time moves messages out of the queue, or into it from a source. A transaction of a move
 * holds a lock of its claim, so that the next mover waits for it. Without that, a round of a mover that was killed could be committed
 * after the next mover has found that it was not.
 */
import type { OwnerId } from '../../../mail/message.ts'
import type { MoveState, QueueIdentity } from '../../move-store.ts'
import { StoreUnavailable } from '../../queue-store.ts'
import type { Statements } from '../session/database-connection.ts'
import * as sql from './move-queries.ts'
import type { Answers, Arguments, Method } from '../../methods.ts'
import type { Send, Transaction } from '../writing/write-transaction.ts'

/** The claim of moves out of this queue. */
export const OUT: QueueIdentity = ''

export class MoveClaims {
  readonly #node: OwnerId

  constructor(node: OwnerId) {
    this.#node = node
  }

  claimMoves: Send<'claimMoves'> = (tx, calls) => ({
    answers: Promise.all(calls.map(async ([source]) => void (await tx.query(sql.claimMoves, [source ?? OUT, this.#node])))),
    isLast: false,
  })

  /** Sends a call of the mover. It rejects with StoreUnavailable when another node is the mover. */
  sender<M extends Method>(
    claimOf: (args: Arguments[M]) => QueueIdentity,
    run: (tx: Transaction, args: Arguments[M]) => Promise<Answers[M]>,
  ): Send<M> {
    const once = async (tx: Transaction, args: Arguments[M]): Promise<Answers[M]> => {
      await this.#assertMover(tx, claimOf(args))
      return run(tx, args)
    }
    return (tx, calls) => ({ answers: Promise.all(calls.map((args) => once(tx, args))), isLast: false })
  }

  async #assertMover(tx: Transaction, source: QueueIdentity): Promise<void> {
    const [claim] = await tx.query<{ node: OwnerId }>(sql.lockMover, [source])
    if (claim !== undefined && claim.node !== this.#node)
      throw new StoreUnavailable('another deferd queue move has taken this move over: see the outcome of that command')
  }
}

export async function moveState(reading: Statements): Promise<MoveState> {
  const [state] = await reading.query<MoveState>(sql.moveState)
  if (state === undefined) throw new Error('the database returned no state of moves')
  return state
}
