/**
 * Observations of the beats of other nodes, from which a node decides on takeovers. Only the own monotonic clock decides, and only
 * while this node itself reaches the database: after an outage of the database, every node looks silent.
 */
import type { OwnerId } from '../../mail/message.ts'
import type { Duration } from '../../system/clock.ts'
import type { NodeState } from './node-table.ts'

/** A beat, and the time on the own monotonic clock at which it was first seen. */
interface SeenBeat {
  readonly beat: number
  readonly since: Duration
}

export interface Observations {
  /** Time of the last look, on the monotonic clock. */
  readonly at: Duration
  readonly beats: ReadonlyMap<OwnerId, SeenBeat>
}

export const NO_OBSERVATIONS: Observations = { at: -Infinity, beats: new Map() }

interface LookFacts {
  readonly me: OwnerId
  /** Time at which the answer was received, on the monotonic clock. */
  readonly at: Duration
  readonly lease: Duration
}

/** Observations after one more look at the nodes. Those before a gap of more than half a lease are dropped. */
export function observed(before: Observations, nodes: readonly Pick<NodeState, 'id' | 'beat'>[], facts: LookFacts): Observations {
  const { me, at, lease } = facts
  const known = at - before.at > lease / 2 ? NO_OBSERVATIONS.beats : before.beats
  const beats = new Map<OwnerId, SeenBeat>()
  for (const { id, beat } of nodes) {
    if (id === me) continue
    const last = known.get(id)
    beats.set(id, last?.beat === beat ? last : { beat, since: at })
  }
  return { at, beats }
}

/** Earliest time after `now`, on the monotonic clock, at which a node will have been silent for a lease; Infinity for none. */
export const nextSilence = ({ beats }: Observations, lease: Duration, now: Duration): Duration =>
  Math.min(Infinity, ...[...beats.values()].map(({ since }) => since + lease).filter((at) => at > now))

/** Nodes that have been silent for a lease, each with its last beat. */
export const silentNodes = ({ at, beats }: Observations, lease: Duration): readonly { readonly id: OwnerId; readonly beat: number }[] =>
  [...beats].filter(([, { since }]) => at - since >= lease).map(([id, { beat }]) => ({ id, beat }))
