/** A token of a program as JSON, without its hash. Times are seconds since the epoch with a fraction. */
import type { AccessToken } from '../store/access-token.ts'
import type { WallView } from '../system/wall-view.ts'

export const accessTokenJson = (token: AccessToken, wall: WallView) => ({
  name: token.name,
  role: token.role,
  content: token.content,
  destinations: token.destinations,
  added_time: wall.seconds(token.addedAt),
  added_by: token.addedBy,
  expire_time: wall.secondsOrNull(token.expiresAt),
  last_used_time: wall.secondsOrNull(token.lastUsedAt),
})
