/** MTA-STS policies of recipient domains (RFC 8461), as the queue keeps them for all its nodes. They outlive restarts and failed look-ups. */
import type { QueueTime } from '../../system/clock.ts'
import { RecordTable, silent, type MethodsOf } from './record-table.ts'

export interface StsPolicy {
  /** Recipient domain in lower case, as A-labels. */
  readonly domain: string
  /** `id` of the TXT record for which the policy was fetched. */
  readonly id: string
  readonly mode: 'enforce' | 'testing' | 'none'
  /** Patterns of mail exchangers: names in lower case as A-labels, or `*.` and a name. */
  readonly mx: readonly string[]
  /** The policy as it was fetched. */
  readonly text: string
  readonly fetchedAt: QueueTime
  /** Time from which the policy has no effect. */
  readonly expiresAt: QueueTime
  /** Time of a delivery under the policy, to the day. */
  readonly usedAt: QueueTime
  /** Time of the last failed fetch since the policy was fetched; null without one. */
  readonly failedAt: QueueTime | null
  /** Reason of that failure. */
  readonly failure: string | null
}

/** A later use of a policy, or a failed fetch of its successor. */
type StsNote =
  | { readonly domain: string; readonly usedAt: QueueTime }
  | { readonly domain: string; readonly failedAt: QueueTime; readonly failure: string }

const table = new RecordTable<StsPolicy, 'domain'>(
  'sts_policy',
  {
    domain: 'text',
    id: 'text',
    mode: 'text',
    mx: 'json',
    text: 'text',
    fetchedAt: 'number',
    expiresAt: 'number',
    usedAt: 'number',
    failedAt: 'number',
    failure: 'text',
  },
  { key: ['domain'] },
)

export const STS_POLICIES = {
  /** Keeps a policy in place of the one of its domain, unless another process fetched that one later. */
  keep: silent(
    table.put({
      greatest: ['usedAt'],
      when: { sql: 'kept.fetched_at <= excluded.fetched_at', held: (kept, { fetchedAt }) => kept.fetchedAt <= fetchedAt },
    }),
  ),
  /** Adds a note to the policy of a domain, if there is one. */
  note: silent(table.change<StsNote>({ greatest: ['usedAt'] })),
  /** Removes the policy of a domain. Returns false when there is none. */
  forget: table.remove(),
  /** The policy of a domain; undefined when there is none. */
  of: table.find('domain'),
  /** All policies, ordered by domain. */
  all: table.all(),
}

export type StsRecords = MethodsOf<typeof STS_POLICIES>
