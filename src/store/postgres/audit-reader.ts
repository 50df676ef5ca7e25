/** Reads the audit log, requests that were carried out, access tokens and access entries. */
import type { MessageId } from '../../mail/message.ts'
import type { QueueTime } from '../../system/clock.ts'
import type { AccessEntry, AccessEntryReader } from '../access-entry.ts'
import type { AccessToken, TokenReader } from '../access-token.ts'
import type { ProviderReader } from '../provider-state.ts'
import { providerMembers, providerOf, providerRecords } from './provider-rows.ts'
import type { GrantReader } from '../../oauth/shared-grant.ts'
import { sharedGrants } from './writing/grant-rows.ts'
import type { StsPolicyReader } from '../tls/sts-policy.ts'
import { allStsPolicies, stsPolicyOf, toStsPolicy, type StsRow } from './sts-rows.ts'
import { OPERATIONS_PER_MESSAGE, PLACING_ACTIONS, type AuditEntry, type AuditReader, type KeptRequest } from '../audit-log.ts'
import { storableText, texts } from './session/arrays.ts'
import type { Statements } from './session/database-connection.ts'
import { patternParameter } from './session/patterns.ts'
import * as sql from './writing/audit-queries.ts'

const patternOf = (text: string | null): string | null => (text === null ? null : patternParameter(text))

export const auditReader = (
  reading: Statements,
): AuditReader & TokenReader & AccessEntryReader & StsPolicyReader & ProviderReader & GrantReader => ({
  audit: ({ after, limit }) => reading.query<AuditEntry>(sql.auditAfter, [after, limit]),
  auditBefore: ({ who, action, state, since }, { before, limit }) => {
    const wanted = [before ?? Number.MAX_SAFE_INTEGER, since ?? 0, state, patternOf(who), patternOf(action), limit]
    return reading.query<AuditEntry>(sql.auditBefore, wanted)
  },
  operation: async (id) => (await reading.query<AuditEntry>(sql.operation, [id]))[0],
  operationsOn: (message) => reading.query<AuditEntry>(sql.operationsOn, [message, OPERATIONS_PER_MESSAGE]),
  placedBy: async (operation, { after, limit }) => {
    const parameters = [operation, after, limit, texts(PLACING_ACTIONS)]
    const rows = await reading.query<{ id: MessageId; createdAt: QueueTime | null; isLast: boolean }>(sql.placedBy, parameters)
    const messages = rows.flatMap(({ id, createdAt, isLast }) => (isLast && createdAt !== null ? [{ id, createdAt }] : []))
    return { messages, next: rows.length < limit ? null : (rows.at(-1)?.id ?? null) }
  },
  keptRequest: async (key) => (await reading.query<KeptRequest>(sql.keptRequest, [storableText(key)]))[0],
  tokens: () => reading.query<AccessToken>(sql.tokens),
  accessEntries: () => reading.query<AccessEntry>(sql.accessEntries),
  stsPolicy: async (domain) => (await reading.query<StsRow>(stsPolicyOf, [domain])).map(toStsPolicy)[0],
  providerOf: (destination) => providerOf(reading, destination),
  membersOfProviders: () => providerMembers(reading),
  providerRecords: () => providerRecords(reading),
  sharedGrants: () => sharedGrants(reading),
  stsPolicies: async () => (await reading.query<StsRow>(allStsPolicies)).map(toStsPolicy),
  tokenByHash: async (hash) => (await reading.query<AccessToken>(sql.tokenByHash, [hash]))[0],
})
