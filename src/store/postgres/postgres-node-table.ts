/**
 * NodeTable over PostgreSQL. Beats, shards and arrivals have a session of their own, so that the commits of mail do not delay them.
 * Takeovers have another one, since they may wait for a transaction of the silent node.
 */
import { DatabaseError } from 'pg'
import type { OwnerId } from '../../mail/message.ts'
import { seconds, type Clock, type Duration } from '../../system/clock.ts'
import type { Recall, TakenBack } from '../membership/taken-back.ts'
import type {
  Arrivals,
  AskedRecall,
  NodeParameters,
  NodeState,
  NodesView,
  NodeTable,
  RecallAnswer,
  Takeover,
} from '../membership/node-table.ts'
import type { Question, QuestionTable } from '../membership/questions.ts'
import type { ShardKeys } from '../membership/shard-keys.ts'
import type { Shard } from '../membership/shards.ts'
import { refreshKeys } from './session/key-changes.ts'
import { Fenced } from '../queue-store.ts'
import { int2s, int8s } from './session/arrays.ts'
import { ArrivalQueue } from './arrivals.ts'
import type { SessionTerms } from './session/client.ts'
import type { Connection, Statements } from './session/database-connection.ts'
import { LastingSession } from './session/lasting-session.ts'
import { leaveNode, takeOverNode } from './node.ts'
import * as nodeSql from './session/node-queries.ts'
import * as sql from './membership-queries.ts'

/** Channel of the hints that arrivals are waiting. The payload lists their shards and nodes that were recalled or drained, separated by commas. */
export const ARRIVALS_CHANNEL = 'deferd_arrivals'

/** Channel of the hints that questions are waiting. The payload is the list of the nodes that are asked. */
export const QUESTIONS_CHANNEL = 'deferd_questions'

/** Time limit of a beat and of other short calls. */
const SHORT: Duration = seconds(2)
/** Time limit of a takeover: it ends many leases. */
const LONG: Duration = seconds(30)

/** SQLSTATE of a lock that was not available within lock_timeout. */
const LOCK_NOT_AVAILABLE = '55P03'
/** SQLSTATE of a deadlock: the other node is taking this one over. */
const DEADLOCK = '40P01'

const nodeHint = (node: OwnerId): string => `n${node}`

/** Sets whether a node gives its shards away, and wakes it. False when there is no such node. */
export async function setDraining(connection: Statements, node: OwnerId, draining: boolean): Promise<boolean> {
  return (await connection.query(sql.setDraining, [node, draining, ARRIVALS_CHANNEL, nodeHint(node)])).length > 0
}

interface NodeTableDeps {
  readonly me: OwnerId
  readonly terms: Omit<SessionTerms, 'application'>
  readonly clock: Clock
  /** Shards of destinations, which arrivals refresh. */
  readonly keys: ShardKeys
}

export class PostgresNodeTable implements NodeTable, QuestionTable {
  readonly me: OwnerId
  readonly #control: LastingSession
  readonly #taker: LastingSession
  readonly #arrivals: ArrivalQueue
  readonly #keys: ShardKeys
  #mine: ReadonlySet<Shard> = new Set()
  #hint: (ofNode: boolean) => void = () => undefined
  #asked: () => void = () => undefined

  constructor({ me, terms, clock, keys }: NodeTableDeps) {
    this.me = me
    this.#keys = keys
    this.#arrivals = new ArrivalQueue(me)
    this.#control = new LastingSession({
      terms: { ...terms, application: `deferd ${me} c`, pipeline: true },
      clock,
      limit: SHORT,
      prepare: async (connection) => {
        await connection.listen(ARRIVALS_CHANNEL, (hints) => this.#notified(hints))
        await connection.listen(QUESTIONS_CHANNEL, (nodes) => nodes.split(',').includes(String(me)) && this.#asked())
      },
    })
    this.#taker = new LastingSession({ terms: { ...terms, application: `deferd ${me} t` }, clock, limit: LONG })
  }

  beat(): Promise<NodesView | null> {
    return this.#control.run(async (connection) => {
      const [beaten, nodes, [shards]] = await connection.together(() =>
        Promise.all([
          connection.query(sql.beat, [this.me]),
          connection.query<NodeState>(sql.nodes),
          connection.query<{ free: number; mine: Shard[]; databaseTime: number }>(sql.shards, [this.me]),
        ]),
      )
      if (beaten.length === 0 || shards === undefined) return null
      this.#mine = new Set(shards.mine)
      return { nodes, freeShards: shards.free, mine: shards.mine, databaseTime: shards.databaseTime }
    })
  }

  async takeOver(node: OwnerId, seenBeat: number): Promise<Takeover | null> {
    try {
      const taken = await this.#taker.run((connection) => takeOverNode(connection, node, seenBeat, this.me))
      return taken === null ? null : { shards: taken.shards, leases: taken.leases, corrupt: taken.corrupt }
    } catch (error) {
      const code = error instanceof Error && error.cause instanceof DatabaseError ? error.cause.code : undefined
      if (code !== LOCK_NOT_AVAILABLE && code !== DEADLOCK) throw error
      // The next try finds the row without a lock.
      if (code === LOCK_NOT_AVAILABLE) await this.#taker.run((connection) => connection.query(sql.endSessions, [node]))
      return null
    }
  }

  async takeShards(limit: number): Promise<readonly Shard[]> {
    const taken = await this.#asNode(nodeSql.shareNode, (connection) =>
      connection.query<{ id: Shard }>(nodeSql.takeShards, [this.me, limit]),
    )
    const shards = taken.map(({ id }) => id)
    this.#mine = new Set([...this.#mine, ...shards])
    return shards
  }

  async releaseShards(shards: readonly Shard[]): Promise<void> {
    await this.#asNode(nodeSql.lockNode, (connection) => connection.query(nodeSql.releaseShards, [this.me, int2s(shards)]))
  }

  arrivals(): Promise<Arrivals> {
    return this.#control.run(async (connection) => {
      // Mail of a destination that has moved to an own shard would be ignored before that change is known, which is read last.
      const [arrivals, exists] = await connection.together(() =>
        Promise.all([this.#arrivals.take(connection), refreshKeys(connection, this.me, this.#keys)]),
      )
      if (!exists) throw new Fenced(`node ${this.me} was taken over`)
      return arrivals
    })
  }

  recall(number: number, { messages, destination, rests }: Recall): Promise<readonly OwnerId[]> {
    return this.#control.run(async (connection) => {
      const parameters = [this.me, number, int8s(messages), destination, rests]
      const [, rows] = await connection.together(() =>
        Promise.all([connection.query(sql.recall, parameters), connection.query<{ node: OwnerId }>(sql.recalledNodes, [this.me, number])]),
      )
      const nodes = rows.map(({ node }) => node)
      if (nodes.length > 0) await connection.query('select pg_notify($1, $2)', [ARRIVALS_CHANNEL, nodes.map(nodeHint).join(',')])
      return nodes
    })
  }

  recallAnswers(number: number, asked: readonly OwnerId[]): Promise<readonly RecallAnswer[]> {
    return this.#control.run(async (connection) => {
      const rows = await connection.query<{ node: OwnerId; answer: string | null }>(sql.recallAnswers, [this.me, number, int8s(asked)])
      return rows.map(({ node, answer }) => ({ node, answer: answer === null ? null : (JSON.parse(answer) as TakenBack) }))
    })
  }

  async endRecall(number: number): Promise<void> {
    await this.#control.run((connection) => connection.query(sql.endRecall, [this.me, number]))
  }

  async answerRecall({ asker, number }: Pick<AskedRecall, 'asker' | 'number'>, answer: TakenBack): Promise<void> {
    await this.#control.run((connection) => connection.query(sql.answerRecall, [this.me, asker, number, JSON.stringify(answer)]))
  }

  onHint(listener: (ofNode: boolean) => void): void {
    this.#hint = listener
  }

  onQuestion(listener: () => void): void {
    this.#asked = listener
  }

  questions(): Promise<readonly Question[]> {
    return this.#control.run((connection) => connection.query<Question>(sql.questions, [this.me]))
  }

  async answer({ id }: Question, text: string): Promise<void> {
    await this.#control.run((connection) => connection.query(sql.answer, [id, text]))
  }

  setDraining(node: OwnerId, draining: boolean): Promise<boolean> {
    return this.#control.run((connection) => setDraining(connection, node, draining))
  }

  async setParameters({ settings, hostname }: NodeParameters): Promise<void> {
    await this.#asNode(nodeSql.lockNode, (connection) => connection.query(sql.setParameters, [this.me, settings, hostname]))
  }

  /** Also closes the sessions of the table. */
  async leave(): Promise<void> {
    try {
      await this.#taker.run((connection) => leaveNode(connection, this.me))
    } finally {
      await this.close()
    }
  }

  /** Closes the sessions of the table. The node stays, and is taken over. */
  async close(): Promise<void> {
    await Promise.all([this.#control.close(), this.#taker.close()])
  }

  /** Runs a transaction that begins with a lock of this node's row. Rejects with Fenced when there is none. */
  #asNode<T>(lock: string, work: (connection: Connection) => Promise<T>): Promise<T> {
    return this.#control.run(async (connection) => {
      await connection.command('begin')
      if ((await connection.query(lock, [this.me])).length === 0) throw new Fenced(`node ${this.me} was taken over`)
      const result = await work(connection)
      await connection.command('commit')
      return result
    })
  }

  #notified(hints: string): void {
    const all = hints.split(',')
    const ofNode = all.includes(nodeHint(this.me))
    if (ofNode || all.some((hint) => this.#mine.has(Number(hint)))) this.#hint(ofNode)
  }
}
