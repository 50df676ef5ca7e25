/** Facts of one request that every screen needs: the time, the requester, and the way back to the root of the page. */
import type { RelayHealth } from '../../queries/queue-view.ts'
import type { Clock, WallTime } from '../../system/clock.ts'

/** State of a clock in virtual time. */
export interface VirtualTime {
  /** 0 for a clock that stands; 1 for real time. */
  readonly speed: number
}

export interface View {
  /** Relative URL of the root: `./` or `../`. A proxy may serve the page below any path. */
  readonly root: string
  /** Path of the screen below the root, with its query. */
  readonly here: string
  readonly now: WallTime
  /** The zone in which times are shown. */
  readonly clock: Pick<Clock, 'zone'>
  /** Name of the relay (myhostname). */
  readonly relay: string
  /** Name of the node that answers; absent for a queue with one daemon. */
  readonly node?: string | undefined
  /** Names of the nodes that do not answer, as of the facts of the screen; absent for a queue with one daemon. */
  readonly unanswered?: (() => readonly string[]) | undefined
  readonly version: string
  /** Folder of the static files below the root: `static/HASH`. */
  readonly files: string
  /** Names of the classes of mail ([class.NAME]), the greatest weight first. */
  readonly classes: readonly string[]
  /** Null without a login. */
  readonly health: RelayHealth | null
  /** Absent for a relay in real time. */
  readonly virtualTime?: VirtualTime | undefined
  readonly requester: {
    readonly name: string
    readonly mayOperate: boolean
    readonly mayAdminister: boolean
    readonly mayReadContent: boolean
    /** Pattern of the destinations whose mail the client may see; null or absent for all. */
    readonly destinations?: string | null | undefined
  }
}

/** Pattern of the destinations whose mail the client may see; null for all. */
export const visiblePattern = ({ requester: { destinations } }: Pick<View, 'requester'>): string | null => destinations ?? null

/** The path of a request for a route such as `/messages/:id`, below the root and with its query. */
export function hereOf(path: string, parameters: Readonly<Record<string, string>>, query: URLSearchParams): string {
  const filled = path.slice(1).replaceAll(/:(\w+)/g, (_, name: string) => encodeURIComponent(parameters[name] ?? ''))
  return query.size === 0 ? filled : `${filled}?${query.toString()}`
}

/** Relative URL of the root for a path such as `/messages/:id`. */
export function rootOf(path: string): string {
  const depth = path.split('/').length - 2
  return depth === 0 ? './' : '../'.repeat(depth)
}
