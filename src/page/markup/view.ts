/** Facts of one request that every screen needs: the time, the requester, and the way back to the root of the page. */
import type { Light } from '../../queries/queue-view.ts'
import type { Clock, WallTime } from '../../system/clock.ts'

export interface View {
  /** Relative URL of the root: `./` or `../`. A proxy may serve the page below any path. */
  readonly root: string
  readonly now: WallTime
  readonly clock: Pick<Clock, 'zone'>
  /** Name of the relay (myhostname). */
  readonly relay: string
  readonly version: string
  /** Folder of the static files below the root: `static/HASH`. */
  readonly files: string
  /** Null without a login. */
  readonly light: Light | null
  readonly requester: { readonly name: string; readonly mayOperate: boolean; readonly mayReadContent: boolean }
}

/** Relative URL of the root for a path such as `/messages/:id`. */
export function rootOf(path: string): string {
  const depth = path.split('/').length - 2
  return depth === 0 ? './' : '../'.repeat(depth)
}
