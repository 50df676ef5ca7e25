/**
 * The part of the audit log that is written in the transaction of mail: rounds of operations with the messages that they have changed, and
 * requests that queue mail. Also what recovery, housekeeping and moves of the queue change in the audit log.
 */
import type { MessageId, OwnerId } from '../../mail/message.ts'
import type { QueueTime } from '../../system/clock.ts'
import type { AuditEntry, AuditId, OperationRound } from './audit-log.ts'
import { ERASURES } from './erasure.ts'
import {
  addHeld,
  AUDIT_ROWS,
  changeHeld,
  heldOperated,
  insertedEntry,
  OPERATED_ROWS,
  REQUEST_ROWS,
  rowOfTaken,
  type Operated,
} from './audit-records.ts'

/** Rows that one call forgets, which takes some milliseconds. */
const FORGOTTEN = 500

const ABANDONED = 'the process that carried it out ended'

const COUNT = 'update audit set changed = changed + :changed where id = :id'
/** Locks the row, so that the operation cannot end before this transaction. */
const BEGIN_ROUND_TEXT = `
  update audit set matched = :matched, last_at = :at where id = :operation and (state = 'running') is true returning id`
const INSERT_OPERATED = `
  insert into operated (operation, message, was, former)
  select :operation, cast(c.value ->> 0 as bigint), c.value ->> 1, c.value ->> 2 from json_each(:operated) as c where true
  on conflict do nothing`
const END_ABANDONED_TEXT = `
  update audit set state = 'failed', error = :error, runner = null
  where state = 'running' and (cast(:owner as bigint) is null or runner = :owner) and id not in (select operation from erasure)`

const HELD_BEFORE_TEXT = `
  select asked.id from (select cast(cast(c.value as text) as bigint) as id from json_each(:messages) as c) as asked
  where (select was from operated where message = asked.id and was <> 'trash' order by operation desc limit 1) = 'hold'`

const OLDEST_OPERATED = '(select operation from operated order by operation limit 1)'
const FORGET_OPERATED_TEXT = `
  delete from operated where operation = (select id from audit where id = ${OLDEST_OPERATED} and at < :before)
    and message <= (select max(message) from (
      select message from operated where operation = ${OLDEST_OPERATED} order by message limit ${FORGOTTEN}) as first_ones)
  returning message`
const FORGET_REQUESTS_TEXT = `
  delete from kept_request where at <= (select max(at) from (
    select at from kept_request where at < :before order by at limit ${FORGOTTEN}) as oldest) returning key`

/** The statements on tables that grow, for the test of their plans. */
export const ROUND_TEXTS = {
  beginRound: BEGIN_ROUND_TEXT,
  countChanged: COUNT,
  endAbandoned: END_ABANDONED_TEXT,
  heldBefore: HELD_BEFORE_TEXT,
  forgetOperated: FORGET_OPERATED_TEXT,
}

/** Begins a round. False when the operation has ended. */
export const BEGIN_ROUND = AUDIT_ROWS.once<[round: OperationRound]>({
  statements: ({ operation, at, matched }) => [{ text: BEGIN_ROUND_TEXT, values: { operation, at, matched } }],
  held: (rows, { operation, at, matched }) => changeHeld(rows, operation, () => ({ matched, lastAt: at })),
})

/** Counts changed messages. */
export const COUNT_CHANGED = AUDIT_ROWS.write<[id: AuditId, changed: number]>({
  statements: (id, changed) => [{ text: COUNT, values: { id, changed } }],
  held: (rows, id, changed) => {
    const row = AUDIT_ROWS.heldIn(rows).get(String(id))
    if (row !== undefined) AUDIT_ROWS.heldIn(rows).set(String(id), { ...row, changed: row.changed + changed })
  },
})

/** Counts a round and records the messages that it has changed or added. The first record of a message stays. */
export const END_ROUND = AUDIT_ROWS.write<[round: OperationRound, changed: number, operated: readonly Operated[]]>({
  statements: ({ operation }, changed, operated) => [
    ...COUNT_CHANGED.statements(operation, changed),
    ...(operated.length === 0 ? [] : [{ text: INSERT_OPERATED, values: { operation, operated: JSON.stringify(operated) } }]),
  ],
  held: (rows, { operation }, changed, operated) => {
    COUNT_CHANGED.held(rows, operation, changed)
    const held = OPERATED_ROWS.heldIn(rows)
    for (const [message, was, former] of operated) {
      const id = OPERATED_ROWS.idOf({ operation, message })
      if (!held.has(id)) held.set(id, { operation, message, was, former })
    }
  },
})

/** Adds a record of another queue. */
export const TAKE_ENTRY = AUDIT_ROWS.write<[entry: AuditEntry]>({
  statements: (entry) => [insertedEntry(rowOfTaken(entry))],
  held: (rows, entry) => void addHeld(rows, rowOfTaken(entry)),
})

/** Ends the operations of an owner of the queue that did not end them, but for erasures, which the next owner goes on with; null for all. */
export const END_ABANDONED = AUDIT_ROWS.write<[owner: OwnerId | null]>({
  statements: (owner) => [{ text: END_ABANDONED_TEXT, values: { owner, error: ABANDONED } }],
  held: (rows, owner) => {
    const goesOn = new Set(ERASURES.all.held(rows).map(({ operation }) => operation))
    for (const [id, row] of AUDIT_ROWS.heldIn(rows)) {
      if (row.state === 'running' && !goesOn.has(row.id) && row.runner === (owner ?? row.runner))
        AUDIT_ROWS.heldIn(rows).set(id, { ...row, state: 'failed', error: ABANDONED, runner: null })
    }
  },
})

/** Those of the messages in the trash that were on hold when an operation deleted them. */
export const HELD_BEFORE = AUDIT_ROWS.read<[messages: readonly MessageId[]], readonly MessageId[]>({
  statements: (messages) => [{ text: HELD_BEFORE_TEXT, values: { messages: JSON.stringify(messages) } }],
  answer: (rows) => (rows as readonly { readonly id: MessageId }[]).map(({ id }) => id),
  held: (rows, messages) =>
    messages.filter((message) => {
      const before = heldOperated(rows, { message }).filter(({ was }) => was !== 'trash')
      return before.toSorted((a, b) => a.operation - b.operation).at(-1)?.was === 'hold'
    }),
})

/** Forgets a slice of the messages that the oldest operations, before a time, have changed. Returns whether more may be left. */
export const FORGET_OPERATED = AUDIT_ROWS.once<[before: QueueTime]>({
  statements: (before) => [{ text: FORGET_OPERATED_TEXT, values: { before } }],
  held: (rows, before) => {
    const held = OPERATED_ROWS.heldIn(rows)
    for (const [id, { operation }] of held) if ((AUDIT_ROWS.heldIn(rows).get(String(operation))?.at ?? 0) < before) held.delete(id)
    return false
  },
})

/** Forgets a slice of the requests before a time. Returns whether more may be left. */
export const FORGET_REQUESTS = AUDIT_ROWS.effect<[before: QueueTime], boolean>({
  statements: (before) => [{ text: FORGET_REQUESTS_TEXT, values: { before } }],
  answer: ({ length }) => length >= FORGOTTEN,
  held: (rows, before) => {
    const held = REQUEST_ROWS.heldIn(rows)
    for (const [key, { at }] of held) if (at < before) held.delete(key)
    return false
  },
})
