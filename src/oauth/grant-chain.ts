/** Choice of the refresh token to send, and of whether the access token of the last answer can be used. Pure. */
import { SECOND, type Duration, type QueueTime } from '../system/clock.ts'
import { sha256 } from './oauth-client.ts'
import type { SharedGrant } from './shared-grant.ts'

/** Time before the end of an access token from which the token is not used any more. */
const MARGIN: Duration = 30 * SECOND

/** The facts: what the queue keeps, and what the file has. */
export interface ChainFacts {
  readonly kept: SharedGrant | null
  /** Token of `refresh_token_file`; null without one. */
  readonly file: string | null
  /**
   * Origin of a file from which this node begins no other chain: it has seen the chain of that file in the queue, so that a chain of another
   * origin is a later one; or the authority has refused the token of that file. Null for none.
   */
  readonly done: string | null
}

/** A refresh token, with the origin of the chain that its answer continues. */
export interface Candidate {
  readonly refreshToken: string
  readonly origin: string
}

/** True when the file has the token of a new login, with which another chain begins. */
const begins = ({ kept, file, done }: ChainFacts): boolean => {
  const origin = file === null ? null : sha256(file)
  return origin !== null && kept?.origin !== origin && origin !== done
}

/** The refresh tokens to send, in order. A later one is sent when the authority refuses the one before it with `invalid_grant`. */
export function candidatesOf(facts: ChainFacts): readonly Candidate[] {
  const { kept, file } = facts
  const ofFile = file === null ? [] : [{ refreshToken: file, origin: sha256(file) }]
  const ofQueue = kept === null ? [] : [{ refreshToken: kept.refreshToken, origin: kept.origin }]
  const all = begins(facts) ? [...ofFile, ...ofQueue] : [...ofQueue, ...ofFile]
  return all.filter((one, n) => all.findIndex(({ refreshToken }) => refreshToken === one.refreshToken) === n)
}

/** The kept access token, if it can be used in place of `unlike`. */
export function usableToken(facts: ChainFacts, unlike: string | null, now: QueueTime): string | null {
  const { kept } = facts
  if (kept === null || kept.accessToken === unlike || begins(facts)) return null
  return kept.expiresAt - MARGIN > now ? kept.accessToken : null
}
