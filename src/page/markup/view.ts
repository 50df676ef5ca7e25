/** Facts of one request that every screen needs: the time, the requester, and the way back to the root of the page. */
import type { Clock } from '../../system/clock.ts'

/** Health of the relay, as `/healthz` reports it. */
export interface Light {
  readonly isOk: boolean
  /** Words beside the light. */
  readonly text: string
}

export interface View {
  /** Path of the request, below the root of the page: `messages/4SVLCh0sf8z7Qhl`. Empty for the first screen. */
  readonly path: string
  /** Relative URL of the root: `./` or `../`. A proxy may serve the page below any path. */
  readonly root: string
  readonly clock: Clock
  /** Name of the relay (myhostname). */
  readonly relay: string
  readonly version: string
  /** Folder of the static files below the root: `static/HASH`. */
  readonly files: string
  /** Null without a login. */
  readonly light: Light | null
  readonly requester: { readonly name: string; readonly mayOperate: boolean; readonly mayReadContent: boolean }
}

/** Relative URL of the root for a path. */
export const rootOf = (path: string): string => {
  const depth = path.split('/').length - 1
  return depth === 0 ? './' : '../'.repeat(depth)
}
