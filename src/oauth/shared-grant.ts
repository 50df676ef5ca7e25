/**
 * Port to the refresh tokens that an authority replaces on use (RFC 6749 §6). All nodes of a queue share one, with the access token that came
 * with it, so that no node uses a refresh token that another one has replaced.
 */
import type { Instant } from '../system/clock.ts'

export interface SharedGrant {
  readonly refreshToken: string
  /** Null until the authority has given one. */
  readonly accessToken: string | null
  /** End of the access token. */
  readonly expiresAt: Instant
  /** Counts the refresh tokens of the chain. */
  readonly generation: number
  /** SHA-256 of the token of refresh_token_file from which the chain began. */
  readonly origin: string
}

export interface SharedGrants {
  read(name: string, user: string): Promise<SharedGrant | null>
  /** Takes the right to ask the authority until `until`; false while another node has it. Ends with replace, release, or at its time. */
  claim(name: string, user: string, at: { readonly now: Instant; readonly until: Instant }): Promise<boolean>
  /**
   * Stores a new generation durably (synced before it resolves) and ends the claim; false when `generation` of the row is not
   * grant.generation - 1.
   */
  replace(name: string, user: string, grant: SharedGrant): Promise<boolean>
  release(name: string, user: string): Promise<void>
}
