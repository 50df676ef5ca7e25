/** MTA-STS policies of recipient domains (RFC 8461), as the queue keeps them for all its nodes. They outlive restarts and failed look-ups. */
import type { QueueTime } from '../../system/clock.ts'

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
export type StsNote =
  | { readonly domain: string; readonly usedAt: QueueTime }
  | { readonly domain: string; readonly failedAt: QueueTime; readonly failure: string }

/** Methods of QueueStore for MTA-STS policies. */
export interface StsPolicyStore {
  /** Keeps a policy in place of the one of its domain, unless that was fetched later. */
  keepStsPolicy(policy: StsPolicy): Promise<void>
  /** Adds a note to the policy of a domain, if there is one. */
  noteStsPolicy(note: StsNote): Promise<void>
  /** Removes the policy of a domain. Returns false when there is none. */
  forgetStsPolicy(domain: string): Promise<boolean>
}

/** Methods of QueueReader for MTA-STS policies. */
export interface StsPolicyReader {
  stsPolicy(domain: string): Promise<StsPolicy | undefined>
  /** All policies, ordered by domain. */
  stsPolicies(): Promise<readonly StsPolicy[]>
}
