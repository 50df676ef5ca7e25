/**
 * One transaction of the writing session. Collects, for a group of calls, the statements to send, the counts to change, and the
 * actions after the commit.
 */
import type { DestinationName, OwnerId } from '../../../mail/message.ts'
import type { ShardKeys } from '../../membership/shard-keys.ts'
import type { Shard } from '../../membership/shards.ts'
import type { Answers, Arguments, Method } from '../../methods.ts'
import type { Caller } from '../../records/record-table.ts'
import type { Statements } from '../session/database-connection.ts'
import { ShareNotes } from '../session/share-notes.ts'
import { TrafficCounts } from './traffic-counts.ts'
import { TransactionEvents, type WantedTypes } from './transaction-events.ts'

/** The answers of calls whose statements were sent. */
export interface Sent<A> {
  readonly answers: Promise<readonly A[]>
  /** True when all statements were sent, so that the commit may follow them at once. */
  readonly isLast: boolean
}

/** Sends the statements of calls of one method. */
export type Send<M extends Method> = (tx: Transaction, calls: readonly Arguments[M][]) => Sent<Answers[M]>

export const sent = <A>(answers: Promise<readonly A[]>): Sent<A> => ({ answers, isLast: true })

/**
 * The answers of calls that tell whether they had an effect, which a repetition has not. They arrive before the commit is sent, and a
 * transaction with an effect is marked, so that they are known when the answer of the commit is lost.
 */
export const sentOnce = <A>(
  tx: Transaction,
  answers: Promise<readonly A[]>,
  hadEffect = (all: readonly unknown[]): boolean => all.includes(true),
): Sent<A> => ({
  answers: answers.then((all) => {
    if (hadEffect(all)) tx.events.requireMark()
    return all
  }),
  isLast: false,
})

export class Transaction implements Statements {
  readonly #statements: Statements
  readonly caller: Caller
  readonly #afterCommit: (() => void)[] = []
  readonly #told = new Set<Shard>()
  readonly traffic = new TrafficCounts()
  readonly events: TransactionEvents
  readonly shares: ShareNotes

  readonly #keys: Pick<ShardKeys, 'shardOf'>

  constructor(
    statements: Statements,
    terms: {
      readonly node: OwnerId
      readonly name: string
      readonly wanted: WantedTypes
      readonly keys: Pick<ShardKeys, 'shardOf' | 'shares'>
    },
  ) {
    const { node, name, wanted, keys } = terms
    this.caller = { owner: node, name }
    this.#keys = keys
    this.shares = new ShareNotes(keys.shares)
    this.events = new TransactionEvents(wanted)
    this.#statements = statements
  }

  query: Statements['query'] = (text, parameters) => this.#statements.query(text, parameters)

  /** Shard of a destination, as of the last change that the node has seen. */
  shardOf(destination: DestinationName): Shard {
    return this.#keys.shardOf(destination)
  }

  /** Calls `action` when the transaction is committed. */
  onCommit(action: () => void): void {
    this.#afterCommit.push(action)
  }

  /** Notes the shards whose owners find messages of this transaction. */
  told(rows: readonly { readonly shard: Shard }[]): void {
    for (const { shard } of rows) this.#told.add(shard)
  }

  /** Runs the actions, and returns the shards whose owners should be woken. */
  committed(): readonly Shard[] {
    this.shares.committed()
    for (const action of this.#afterCommit) action()
    return [...this.#told]
  }
}
