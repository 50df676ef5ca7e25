/** The audit log, the messages that its operations have changed, and the requests that were carried out. */
import type { MessageId, OwnerId, Placement } from '../../mail/message.ts'
import { likePattern } from '../../patterns/filter-pattern.ts'
import type { QueueTime } from '../../system/clock.ts'
import {
  matchesEntry,
  OPERATIONS_PER_MESSAGE,
  RequestRepeated,
  takenEntry,
  type AuditEntry,
  type AuditFilter,
  type AuditId,
  type AuditRecord,
  type IdempotentRequest,
  type KeptRequest,
  type NewOperation,
  type OperationEnd,
} from './audit-log.ts'
import {
  column,
  NODE_NAME,
  OWNER,
  RecordTable,
  reserved,
  type HeldRows,
  type RecordCall,
  type Statement,
  type Values,
} from './record-table.ts'

/** `runner` carries the operation out; null unless it is running. */
type AuditRow = Omit<AuditEntry, 'undoneBy'> & { readonly runner: OwnerId | null }

/** A message that an operation has changed or added, with its placement before, and its times before a reschedule (formerText). */
export type Operated = readonly [message: MessageId, was: Placement, former: string | null]

interface OperatedRow {
  readonly operation: AuditId
  readonly message: MessageId
  readonly was: Placement
  readonly former: string | null
}

export const AUDIT_ROWS = new RecordTable<AuditRow, 'id'>(
  'audit',
  {
    id: 'number',
    node: 'text',
    runner: 'number',
    at: 'number',
    lastAt: 'number',
    who: 'text',
    requestId: 'text',
    action: 'text',
    arguments: 'text',
    changed: 'number',
    matched: 'number',
    inTransfer: 'number',
    unknown: 'number',
    expected: 'number',
    state: 'text',
    reason: 'text',
    error: 'text',
    undoUntil: 'number',
    undoes: 'number',
  },
  { key: ['id'] },
)
export const OPERATED_ROWS = new RecordTable<OperatedRow, 'operation' | 'message'>(
  'operated',
  { operation: 'number', message: 'number', was: 'text', former: 'text' },
  { key: ['operation', 'message'] },
)
export const REQUEST_ROWS = new RecordTable<KeptRequest, 'key'>(
  'kept_request',
  { key: 'text', digest: 'text', at: 'number', answer: 'text' },
  { key: ['key'] },
)

// --- statements

type NewRow = Omit<AuditRow, 'id' | 'node' | 'runner' | 'inTransfer'>

const OF_ACTION = { unknown: 0, expected: null, reason: null, error: null, undoUntil: null, undoes: null }

const rowOfAction = ({
  at,
  who,
  requestId = null,
  action,
  arguments: words,
  reason = null,
  changed,
  error = null,
}: AuditRecord): NewRow => ({
  ...OF_ACTION,
  at,
  lastAt: at,
  who,
  requestId,
  action,
  arguments: words,
  reason,
  changed,
  matched: changed,
  state: error === null ? 'done' : 'failed',
  error,
})

const rowOfOperation = ({ request: _request, requestId = null, ...operation }: NewOperation): NewRow => ({
  ...OF_ACTION,
  ...operation,
  requestId,
  lastAt: operation.at,
  changed: 0,
  matched: 0,
  state: 'running',
})

export const rowOfTaken = (entry: AuditEntry): NewRow => ({ ...OF_ACTION, ...takenEntry(entry) })

/** Its answer is empty until its operation has an id, which other transactions do not see. */
const RESERVE = `insert into kept_request (key, digest, at, answer) values (:key, :digest, :at, '') on conflict do nothing`
const ANSWER = `
  update kept_request set answer = (select cast(max(id) as text) from audit where runner = :owner and state = 'running')
  where key = :key and answer = '' returning cast(answer as bigint) as id`

/** Adds a row, with `key` only if its request was reserved before. */
export function insertedEntry(row: NewRow, key: string | null = null): Statement {
  const values: Values = { ...row, node: NODE_NAME, runner: row.state === 'running' ? OWNER : null }
  const names = Object.keys(values).toSorted()
  const text = `insert into audit (${names.map(column).join(', ')}) select ${names.map((name) => `:${name}`).join(', ')}
  where cast(:key as text) is null or exists (select 1 from kept_request where key = :key and answer = '') returning id`
  return { text, values: { ...values, key } }
}

const END = `
  update audit set state = :state, last_at = :at, matched = coalesce(:matched, matched), in_transfer = :inTransfer,
    unknown = coalesce(:unknown, unknown), error = :error, runner = null
  where id = :id and (state = 'running') is true returning id`
// The sum keeps PostgreSQL from reading the table backwards for the maximum.
const ENTRY = `
  select id, node, at, last_at as "lastAt", who, request_id as "requestId", action, arguments, changed, matched,
    in_transfer as "inTransfer", unknown, expected, state, reason, error, undo_until as "undoUntil", undoes, (select max(later.id + 0) from audit later where later.undoes = audit.id) as "undoneBy"
  from audit`
const AFTER = `${ENTRY} where id > :after order by id limit :limit`
const BEFORE = `${ENTRY} where id < :before and at >= :since and at < :until and (cast(:state as text) is null or state = :state)
    and (cast(:who as text) is null or matches(who, :who)) and (cast(:action as text) is null or matches(action, :action))
    and (cast(:requestId as text) is null or request_id = :requestId)
  order by id desc limit :limit`
const ONE = `${ENTRY} where id = :id`
const ON = `${ENTRY} where id = any (array(select operation from operated where message = :message))
  order by id desc limit ${OPERATIONS_PER_MESSAGE}`

/** The statements on tables that grow, for the test of their plans. */
export const AUDIT_TEXTS = { endOperation: END, auditAfter: AFTER, auditBefore: BEFORE, operation: ONE, operationsOn: ON }

// --- the queue in memory

export function addHeld(rows: HeldRows, row: NewRow): AuditId {
  const held = AUDIT_ROWS.heldIn(rows)
  const id = held.size + 1
  const runner = row.state === 'running' ? rows.caller.owner : null
  held.set(String(id), { ...row, id, node: rows.caller.name, runner, inTransfer: 0 })
  return id
}

/** Changes a running operation. False when it has ended. */
export function changeHeld(rows: HeldRows, id: AuditId, change: (row: AuditRow) => Partial<AuditRow>): boolean {
  const held = AUDIT_ROWS.heldIn(rows)
  const row = held.get(String(id))
  if (row?.state !== 'running') return false
  held.set(String(id), { ...row, ...change(row) })
  return true
}

function keepHeld(rows: HeldRows, { key, digest }: IdempotentRequest, at: QueueTime, answer: string): void {
  if (!KEEP_REQUEST.held(rows, { key, digest, at, answer })) throw repeated(key)
}

function heldEntries(rows: HeldRows): readonly AuditEntry[] {
  const all = [...AUDIT_ROWS.heldIn(rows).values()]
  return all.map(({ runner: _runner, ...row }) => ({ ...row, undoneBy: all.findLast(({ undoes }) => undoes === row.id)?.id ?? null }))
}

const newestHeld = (rows: HeldRows, wanted: (entry: AuditEntry) => boolean, limit: number): readonly AuditEntry[] =>
  heldEntries(rows).filter(wanted).toReversed().slice(0, limit)

/** Rows of the messages that an operation has changed, or of the operations that have changed a message. */
export const heldOperated = (rows: HeldRows, wanted: Partial<OperatedRow>): readonly OperatedRow[] =>
  [...OPERATED_ROWS.heldIn(rows).values()].filter(
    ({ operation, message }) => operation === (wanted.operation ?? operation) && message === (wanted.message ?? message),
  )

// --- calls

export const repeated = (key: string): RequestRepeated => new RequestRepeated(`a request with the key ${key} was carried out before`)

const keyOf = ({ at, who, action }: Pick<AuditRecord, 'at' | 'who' | 'action'>): string => `audit ${at} ${who} ${action}`

const idOf = (rows: readonly object[]): AuditId | undefined => (rows as readonly { readonly id: AuditId }[])[0]?.id

const entries = (rows: readonly object[]): readonly AuditEntry[] => rows as readonly AuditEntry[]

const add: RecordCall<[record: AuditRecord], AuditId> = {
  ...AUDIT_ROWS.effect<[record: AuditRecord], AuditId>({
    statements: (record) => [insertedEntry(rowOfAction(record))],
    answer: (rows) => idOf(rows) ?? 0,
    held: (rows, record) => addHeld(rows, rowOfAction(record)),
  }),
  key: keyOf,
}

const begin: RecordCall<[operation: NewOperation], AuditId> = {
  ...AUDIT_ROWS.effect<[operation: NewOperation], AuditId>({
    statements: (operation) => {
      const { request, at } = operation
      if (request === null) return [insertedEntry(rowOfOperation(operation))]
      const { key, digest } = request
      return [
        { text: RESERVE, values: { key, digest, at } },
        insertedEntry(rowOfOperation(operation), key),
        { text: ANSWER, values: { key, owner: OWNER } },
      ]
    },
    answer: (rows) => {
      const id = idOf(rows)
      if (id === undefined) throw new RequestRepeated('a request with the same key was carried out before')
      return id
    },
    held: (rows, operation) => {
      const { request, at } = operation
      if (request !== null) keepHeld(rows, request, at, String(AUDIT_ROWS.heldIn(rows).size + 1))
      return addHeld(rows, rowOfOperation(operation))
    },
  }),
  key: ({ request, ...operation }) => (request === null ? keyOf(operation) : `request ${request.key}`),
}

export const AUDIT = {
  /** Records an action that is done. */
  add: reserved(add),
  /** Records an operation that begins. Rejects with RequestRepeated, without effect, when the key of the request is kept. */
  begin: reserved(begin),
  /**
   * Ends an operation, so that no further round of it has an effect. Returns false, without effect, when it had ended before. Any node may
   * end the operation of another one.
   */
  end: reserved(
    AUDIT_ROWS.once<[id: AuditId, end: OperationEnd]>({
      statements: (id, { state, at, matched = null, inTransfer = 0, unknown = null, error }) => [
        { text: END, values: { id, state, at, matched, inTransfer, unknown, error } },
      ],
      held: (rows, id, { state, at, matched, inTransfer = 0, unknown, error }) =>
        changeHeld(rows, id, (row) => ({
          state,
          lastAt: at,
          error,
          inTransfer,
          matched: matched ?? row.matched,
          unknown: unknown ?? row.unknown,
          runner: null,
        })),
    }),
  ),
  /** Records with ids above `after`, oldest first. */
  after: AUDIT_ROWS.read<[page: { readonly after: AuditId; readonly limit: number }], readonly AuditEntry[]>({
    statements: (page) => [{ text: AFTER, values: { ...page } }],
    answer: entries,
    held: (rows, { after, limit }) => heldEntries(rows).slice(after, after + limit),
  }),
  /** Records with ids below `before` (null for no limit), newest first. */
  before: AUDIT_ROWS.read<[filter: AuditFilter, page: { readonly before: AuditId | null; readonly limit: number }], readonly AuditEntry[]>({
    statements: ({ who, action, requestId, state, since, until }, { before, limit }) => {
      const [end, last] = [until ?? Number.MAX_SAFE_INTEGER, before ?? Number.MAX_SAFE_INTEGER]
      const wanted = { who: patternOf(who), action: patternOf(action), requestId, state, since: since ?? 0, until: end }
      return [{ text: BEFORE, values: { ...wanted, before: last, limit } }]
    },
    answer: entries,
    held: (rows, filter, { before, limit }) =>
      newestHeld(rows, (entry) => (before === null || entry.id < before) && matchesEntry(filter, entry), limit),
  }),
  one: AUDIT_ROWS.read<[id: AuditId], AuditEntry | undefined>({
    statements: (id) => [{ text: ONE, values: { id } }],
    answer: (rows) => entries(rows)[0],
    held: (rows, id) => heldEntries(rows)[id - 1],
  }),
  /** Operations that changed a message, newest first, at most OPERATIONS_PER_MESSAGE. */
  on: AUDIT_ROWS.read<[message: MessageId], readonly AuditEntry[]>({
    statements: (message) => [{ text: ON, values: { message } }],
    answer: entries,
    held: (rows, message) => {
      const operations = new Set(heldOperated(rows, { message }).map(({ operation }) => operation))
      return newestHeld(rows, ({ id }) => operations.has(id), OPERATIONS_PER_MESSAGE)
    },
  }),
}

export const REQUESTS = {
  /** A request that was carried out; undefined when the key is not kept. */
  find: REQUEST_ROWS.find<[key: string]>('key'),
}

const patternOf = (text: string | null): string | null => (text === null ? null : likePattern(text))

/** Keeps a request. False when its key is kept. */
export const KEEP_REQUEST = REQUEST_ROWS.add()
