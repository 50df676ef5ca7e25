/** The directory of nodes in PostgreSQL. A command that only reads is no node itself. */
import type { DestinationName, OwnerId } from '../../mail/message.ts'
import { sleep, type Clock, type Duration } from '../../system/clock.ts'
import type { Takeover } from '../membership/node-table.ts'
import { shardUnder } from '../membership/shard-keys.ts'
import { PROVIDER_MEMBERS } from '../records/provider-state.ts'
import { runRecord } from './session/record-calls.ts'
import type { AuditRecord } from '../records/audit-log.ts'
import { AUDIT } from '../records/audit-records.ts'
import { int8s } from './session/arrays.ts'
import type { Connection } from './session/database-connection.ts'
import * as sql from './membership-queries.ts'
import { finishUpgrade, schemaOf } from './migrations.ts'
import type { Answers, Finish, ListedNode, LostNode, NodeDirectory, Schema } from '../membership/node-directory.ts'
import { takeOverNode } from './node.ts'
import { removeLost } from './session/node-queries.ts'
import { releaseTables } from './writing/subscription-writer.ts'
import { QUESTIONS_CHANNEL, setDraining } from './postgres-node-table.ts'

/** Pause between two looks for answers. */
const PAUSE: Duration = 20

export class PostgresNodeDirectory implements NodeDirectory {
  readonly #connection: Connection
  readonly #clock: Clock

  constructor(connection: Connection, clock: Clock) {
    this.#connection = connection
    this.#clock = clock
  }

  list(): Promise<readonly ListedNode[]> {
    return this.#connection.query<ListedNode>(sql.listedNodes)
  }

  async owners(): Promise<(destination: DestinationName) => string | null> {
    const [row] = await this.#connection.query<{ names: readonly (string | null)[] }>(sql.shardOwners)
    const members = new Map(
      (await runRecord(this.#connection, PROVIDER_MEMBERS.all)).map(({ destination, provider }) => [destination, provider]),
    )
    return (destination) => row?.names[shardUnder(destination, members.get(destination) ?? null)] ?? null
  }

  setDraining(node: OwnerId, draining: boolean): Promise<boolean> {
    return setDraining(this.#connection, node, draining)
  }

  takeOver(node: OwnerId, seenBeat: number): Promise<Takeover | null> {
    return takeOverNode(this.#connection, node, seenBeat)
  }

  lost(): Promise<readonly LostNode[]> {
    return this.#connection.query<LostNode>(sql.lostNodes)
  }

  async forget(name: string): Promise<boolean> {
    if ((await this.list()).some((node) => node.name === name)) return false
    const tables = await releaseTables(this.#connection, name)
    const lost = await this.#connection.query(removeLost, [name])
    return tables + lost.length > 0
  }

  async audit(record: AuditRecord, node: string): Promise<void> {
    const caller = { owner: 0, name: node }
    await runRecord({ query: (...asked) => this.#connection.query(...asked), caller }, AUDIT.add, record)
  }

  async ask(what: string, patience: Duration): Promise<Answers> {
    const nodes = await this.list()
    if (nodes.length === 0) return { answers: [], silent: [] }
    const numbers = nodes.map(({ id }) => id)
    const asked = await this.#connection.query<{ id: number; node: OwnerId }>(sql.ask, [int8s(numbers), what])
    await this.#connection.query('select pg_notify($1, $2)', [QUESTIONS_CHANNEL, numbers.join(',')])
    const ids = int8s(asked.map(({ id }) => id))
    const deadline = this.#clock.monotonic() + patience
    const answered = new Map<OwnerId, unknown>()
    while (answered.size < nodes.length && this.#clock.monotonic() < deadline) {
      await sleep(this.#clock, PAUSE)
      for (const { node, answer } of await this.#connection.query<{ node: OwnerId; answer: string }>(sql.answers, [ids])) {
        if (!answered.has(node)) answered.set(node, JSON.parse(answer))
      }
    }
    await this.#connection.query(sql.removeQuestions, [ids])
    const answerOf = (id: OwnerId): unknown => answered.get(id) ?? null
    return {
      answers: nodes.filter(({ id }) => answerOf(id) !== null).map((node) => ({ node, answer: answerOf(node.id) })),
      silent: nodes.filter(({ id }) => answerOf(id) === null).map(({ name }) => name),
    }
  }

  schema(): Promise<Schema> {
    return schemaOf(this.#connection)
  }

  finishUpgrade(): Promise<Finish> {
    return finishUpgrade(this.#connection)
  }

  close(): Promise<void> {
    return this.#connection.end()
  }
}
