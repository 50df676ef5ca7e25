/**
 * Resolves a batch whose commit was sent but not answered. A transaction is kept as a whole or not at all, so one call that leaves a
 * trace decides for all.
 */
import type { MessageId, OwnerId, RecipientId } from '../../../mail/message.ts'
import type { AuditId } from '../../audit-log.ts'
import { int8s, storableText } from '../session/arrays.ts'
import type { Statements } from '../session/database-connection.ts'
import { recipientRange } from '../session/id-ranges.ts'
import type { OwnLeases } from './own-leases.ts'
import * as sql from './queries.ts'
import { begunOperation } from './audit-queries.ts'
import type { WriteCall } from './write-batch.ts'

/** Messages that were queued: in the queue, gone, or between this queue and another one. */
export const knownMessages = `
  select id from unnest($1::bigint[]) as asked (id) where (select true from message where message.id = asked.id)
    or (select true from history where history.message = asked.id limit 1) or (select true from moving where moving.message = asked.id)`

/** Messages that are still queued, and whether a notice is due that this node sends. */
export const stateAfter = `
  select m.id, exists (select 1 from shard where shard.id = m.home and shard.owner = $1) and exists (select 1 from recipient r
      where r.home = m.home and r.id ${recipientRange('m.id')} and r.notice_due is not null) as due
  from message m where m.id = any ($2::bigint[])`

/** Message ids that exist only after a commit of the call. */
function newMessages(call: WriteCall): readonly MessageId[] {
  if (call.method === 'enqueue') return [call.args[0].message.id]
  if (call.method === 'report') return call.args[0].notices.map(({ message }) => message.id)
  if (call.method === 'operate') return call.args[0].flatMap(({ operation }) => (operation.kind === 'requeue' ? [operation.newId] : []))
  return []
}

/** Ids of the operations that calls have begun, by the position of the call. */
async function begunOperations(statements: Statements, node: OwnerId, calls: readonly WriteCall[]): Promise<ReadonlyMap<number, AuditId>> {
  const begun = new Map<number, AuditId>()
  for (const [n, call] of calls.entries()) {
    if (call.method !== 'beginOperation') continue
    const [{ at, who, action, arguments: words }] = call.args
    const [row] = await statements.query<{ id: AuditId }>(begunOperation, [node, at, storableText(who), action, storableText(words)])
    if (row !== undefined) begun.set(n, row.id)
  }
  return begun
}

/** Leases that end with a commit of the call. */
function endedLeases(call: WriteCall): readonly RecipientId[] {
  if (call.method === 'settle') return call.args[0].recipients.map(({ recipient }) => recipient)
  return call.method === 'giveBack' ? call.args[0] : []
}

/**
 * Whether the transaction of these calls was committed. False also for calls without a trace: these can be repeated, because they have
 * the same effect twice as once.
 */
export async function wasCommitted(
  statements: Statements,
  { node, leases }: { readonly node: OwnerId; readonly leases: OwnLeases },
  calls: readonly WriteCall[],
): Promise<boolean> {
  const [messages, recipients] = [calls.flatMap(newMessages), calls.flatMap(endedLeases).filter((id) => leases.has(id))]
  const [known, begun, leased] = await Promise.all([
    statements.query(knownMessages, [int8s(messages)]),
    begunOperations(statements, node, calls),
    statements.query(sql.ownLeasesAmong, [node, int8s(recipients)]),
  ])
  if (known.length > 0 || begun.size > 0) return true
  return messages.length === 0 && recipients.length > 0 && leased.length === 0
}

/**
 * The answers of calls that were committed, by position: those that arrived, and those that the tables still show. The others must be
 * repeated.
 */
export async function answersAfterCommit(
  statements: Statements,
  owner: OwnerId,
  calls: readonly WriteCall[],
  arrived: ReadonlyMap<number, unknown>,
): Promise<ReadonlyMap<number, unknown>> {
  const messages = calls.flatMap((call) => (call.method === 'settle' ? [call.args[0].message] : []))
  const rows = await statements.query<{ id: MessageId; due: boolean }>(stateAfter, [owner, int8s(messages)])
  const due = new Map(rows.map((row) => [row.id, row.due]))
  const answers = new Map<number, unknown>([...arrived, ...(await begunOperations(statements, owner, calls))])
  for (const [n, call] of calls.entries()) {
    if (answers.has(n)) continue
    if (call.method === 'settle') {
      const state = due.get(call.args[0].message)
      answers.set(n, { removed: state === undefined, noticeDue: state ?? false })
    } else if (ANSWERED_BY_NOTHING.has(call.method)) answers.set(n, undefined)
  }
  return answers
}

const ANSWERED_BY_NOTHING: ReadonlySet<WriteCall['method']> = new Set<WriteCall['method']>([
  'enqueue',
  'stage',
  'unstage',
  'giveBack',
  'postponeWarning',
  'markDelayNoticeDue',
  'saveDestination',
  'forgetMaildropFiles',
  'tokenUsed',
  'setAccess',
  'keepStsPolicy',
  'noteStsPolicy',
  'ping',
])
