/** A token of a program as JSON, without its hash. Times are seconds since the epoch with a fraction. */
import type { AccessToken } from '../store/access-token.ts'
import type { Instant } from '../system/clock.ts'
import { epochSeconds } from './text.ts'

const secondsOf = (at: Instant | null): number | null => (at === null ? null : epochSeconds(at))

export const accessTokenJson = ({ name, role, content, destinations, addedAt, addedBy, expiresAt, lastUsedAt }: AccessToken) => ({
  name,
  role,
  content,
  destinations,
  added_time: epochSeconds(addedAt),
  added_by: addedBy,
  expire_time: secondsOf(expiresAt),
  last_used_time: secondsOf(lastUsedAt),
})
