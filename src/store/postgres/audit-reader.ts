/** Reads the audit log and requests that were carried out. */
import type { MessageId } from '../../mail/message.ts'
import type { QueueTime } from '../../system/clock.ts'
import { OPERATIONS_PER_MESSAGE, PLACING_ACTIONS, type AuditEntry, type AuditReader, type KeptRequest } from '../audit-log.ts'
import { formerOf } from '../former-times.ts'
import { storableText, texts } from './session/arrays.ts'
import type { Statements } from './session/database-connection.ts'
import { patternParameter } from './session/patterns.ts'
import * as sql from './writing/audit-queries.ts'

const patternOf = (text: string | null): string | null => (text === null ? null : patternParameter(text))

export const auditReader = (reading: Statements): AuditReader => ({
  audit: ({ after, limit }) => reading.query<AuditEntry>(sql.auditAfter, [after, limit]),
  auditBefore: ({ who, action, state, since, until }, { before, limit }) => {
    const [end, last] = [until ?? Number.MAX_SAFE_INTEGER, before ?? Number.MAX_SAFE_INTEGER]
    const wanted = [last, since ?? 0, state, patternOf(who), patternOf(action), end, limit]
    return reading.query<AuditEntry>(sql.auditBefore, wanted)
  },
  operation: async (id) => (await reading.query<AuditEntry>(sql.operation, [id]))[0],
  operationsOn: (message) => reading.query<AuditEntry>(sql.operationsOn, [message, OPERATIONS_PER_MESSAGE]),
  placedBy: async (operation, { after, limit }) => {
    const parameters = [operation, after, limit, texts(PLACING_ACTIONS)]
    const rows = await reading.query<{ id: MessageId; createdAt: QueueTime | null; isLast: boolean; former: string | null }>(
      sql.placedBy,
      parameters,
    )
    const messages = rows.flatMap(({ id, createdAt, isLast, former }) =>
      isLast && createdAt !== null ? [{ id, createdAt, former: formerOf(former) }] : [],
    )
    return { messages, next: rows.length < limit ? null : (rows.at(-1)?.id ?? null) }
  },
  keptRequest: async (key) => (await reading.query<KeptRequest>(sql.keptRequest, [storableText(key)]))[0],
})
