/**
 * Resolves a batch whose commit was sent but not answered. A transaction is kept as a whole or not at all, so one call that leaves a
 * trace decides for all.
 */
import type { MessageId, OwnerId } from '../../../mail/message.ts'
import { recordCall } from '../../records/records.ts'
import { int8s } from '../session/arrays.ts'
import type { Statements } from '../session/database-connection.ts'
import { recipientRange } from '../../sql/id-ranges.ts'
import type { OwnLeases } from '../writing/own-leases.ts'
import * as sql from '../writing/queries.ts'
import { endedLeases, newMessages } from '../session/call-traces.ts'
import { markedBatch } from '../writing/outbox-queries.ts'
import type { WriteCall } from './call-batching.ts'

/** Messages that were queued: in the queue, gone, or between this queue and another one. */
export const knownMessages = `
  select id from unnest($1::bigint[]) as asked (id) where (select true from message where message.id = asked.id)
    or (select true from history where history.message = asked.id limit 1) or (select true from moving where moving.message = asked.id)`

/** Messages that are still queued, and whether a notice is due that this node sends. */
export const stateAfter = `
  select m.id, exists (select 1 from shard where shard.id = m.home and shard.owner = $1) and exists (select 1 from recipient r
      where r.home = m.home and r.id ${recipientRange('m.id')} and r.notice_due is not null) as due
  from message m where m.id = any ($2::bigint[])`

/**
 * Whether the transaction `number` with these calls was committed. False also for calls without a trace: these can be repeated, because they have
 * the same effect twice as once.
 */
export async function wasCommitted(
  statements: Statements,
  { node, leases, number }: { readonly node: OwnerId; readonly leases: OwnLeases; readonly number: number },
  calls: readonly WriteCall[],
): Promise<boolean> {
  const [messages, recipients] = [calls.flatMap(newMessages), calls.flatMap(endedLeases).filter((id) => leases.has(id))]
  const [known, leased, marked] = await Promise.all([
    statements.query(knownMessages, [int8s(messages)]),
    statements.query(sql.ownLeasesAmong, [node, int8s(recipients)]),
    statements.query(markedBatch, [node, number]),
  ])
  if (known.length + marked.length > 0) return true
  return messages.length === 0 && recipients.length > 0 && leased.length === 0
}

/**
 * The answers of calls that were committed, by position: those that arrived, and those that the tables still show. The others must be
 * repeated.
 */
export async function answersAfterCommit(
  statements: Statements,
  node: OwnerId,
  calls: readonly WriteCall[],
  arrived: ReadonlyMap<number, unknown>,
): Promise<ReadonlyMap<number, unknown>> {
  const messages = calls.flatMap((call) => (call.method === 'settle' ? [call.args[0].message] : []))
  const rows = await statements.query<{ id: MessageId; due: boolean }>(stateAfter, [node, int8s(messages)])
  const due = new Map(rows.map((row) => [row.id, row.due]))
  const answers = new Map<number, unknown>(arrived)
  for (const [n, call] of calls.entries()) {
    if (answers.has(n)) continue
    if (call.method === 'settle') {
      const state = due.get(call.args[0].message)
      answers.set(n, { removed: state === undefined, noticeDue: state ?? false })
    } else if (isAnsweredByNothing(call)) answers.set(n, undefined)
  }
  return answers
}

const isAnsweredByNothing = (call: WriteCall): boolean =>
  call.method === 'record' ? recordCall(call.args).kind === 'write' : ANSWERED_BY_NOTHING.has(call.method)

const ANSWERED_BY_NOTHING: ReadonlySet<WriteCall['method']> = new Set<WriteCall['method']>([
  'enqueue',
  'stage',
  'unstage',
  'giveBack',
  'postponeWarning',
  'markDelayNoticeDue',
  'saveDestination',
  'forgetMaildropFiles',
  'recordEvents',
  'ping',
])
