/** Records that operators keep in the queue besides mail: tokens, access entries and MTA-STS policies, for the API and for commands. */
import { accessEntryJson, type AccessEntriesJson } from '../../resources/records/access-entry-json.ts'
import { accessTokenJson, type AccessTokensJson } from '../../resources/access-token-json.ts'
import { stsPolicyJson, type StsPoliciesJson } from '../../resources/records/sts-policy-json.ts'
import type { QueueReader } from '../../store/queue-reader.ts'
import type { Clock } from '../../system/clock.ts'

export interface KeptRecords {
  readonly reader: Pick<QueueReader, 'records'>
  readonly clock: Pick<Clock, 'now' | 'wall'>
}

/** Tokens of programs, by name. */
export const accessTokens = async ({ reader, clock }: KeptRecords): Promise<AccessTokensJson> => ({
  tokens: (await reader.records.tokens.all()).map((token) => accessTokenJson(token, clock.wall)),
})

/** Entries that have not ended. */
export async function accessEntries({ reader, clock }: KeptRecords): Promise<AccessEntriesJson> {
  const valid = (await reader.records.access.all()).filter(({ expiresAt }) => expiresAt === null || expiresAt > clock.now())
  return { entries: valid.map((entry) => accessEntryJson(entry, clock.wall)) }
}

export const stsPolicies = async ({ reader, clock }: KeptRecords): Promise<StsPoliciesJson> => ({
  policies: (await reader.records.stsPolicies.all()).map((policy) => stsPolicyJson(policy, clock.wall)),
})
