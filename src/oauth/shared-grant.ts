/**
 * Rotating refresh tokens, as the queue keeps them for all its nodes. An authority that rotates answers each request with a new refresh
 * token, and ends the former one. So there is one chain of tokens, which one node at a time continues, and the access token of its last
 * answer serves all nodes.
 */
import type { QueueTime } from '../system/clock.ts'

/** The last answer of the authority. */
export interface SharedGrant {
  readonly refreshToken: string
  /** The access token of the answer; null without one. */
  readonly accessToken: string | null
  /** End of the access token, on the clock of the queue. */
  readonly expiresAt: QueueTime
  /** Number of the answer in the row, from 1. */
  readonly generation: number
  /** SHA-256, in hex, of the token of `refresh_token_file` from which the chain began. A file with another token begins another chain. */
  readonly origin: string
}

/** A row: the grant of a table `[oauth.NAME]` for a user. */
export interface KeptGrant extends SharedGrant {
  readonly name: string
  readonly user: string
}

export interface SharedGrants {
  read(name: string, user: string): Promise<SharedGrant | null>
  /** Takes the right to ask the authority until `until`; false while another node has it. Ends with replace, release, at its time, or with the owner of a queue of one node. */
  claim(name: string, user: string, at: { readonly now: QueueTime; readonly until: QueueTime }): Promise<boolean>
  /** Stores a new generation durably (synced before it resolves) and ends the claim; false when `generation` of the row is not grant.generation - 1. */
  replace(name: string, user: string, grant: SharedGrant): Promise<boolean>
  release(name: string, user: string): Promise<void>
}

/** True when a grant of another queue replaces the one that is kept here, because it continues the same chain. */
export const isContinuedBy = (kept: SharedGrant | null, other: SharedGrant): boolean =>
  kept === null || (kept.origin === other.origin && kept.generation < other.generation)
