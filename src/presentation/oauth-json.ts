/** An access token of an `[oauth.NAME]` table as JSON, and in words. No member has a secret. */
import type { TokenState } from '../oauth/access-tokens.ts'
import { SECOND } from '../system/clock.ts'

const textOrNull = (text: string): string | null => (text === '' ? null : text)

/** A token of a running daemon. `user` is null where one token serves all users. */
export const tokenStateJson = ({ user, left, problem }: TokenState) => ({
  user: textOrNull(user),
  left: left === null ? null : Math.floor(left / SECOND),
  problem,
})
