/**
 * The final step of a move from a shared queue: its node has to own all shards, and no other node may accept mail. The step waits for a
 * failed node to be taken over after `node_lease`.
 */
import type { OwnerId } from '../../mail/message.ts'
import { MoveRefused } from '../../queue/queue-mover.ts'
import type { NodeState, NodesView } from '../../store/membership/node-table.ts'
import { SHARDS } from '../../store/membership/shards.ts'
import { SECOND, sleep, type Clock, type Duration } from '../../system/clock.ts'

const POLL_INTERVAL: Duration = SECOND / 5

interface SoleNodeDeps {
  readonly me: OwnerId
  /** The nodes at the last beat; null before the first. */
  readonly view: () => NodesView | null
  readonly clock: Clock
}

/** The other nodes that accept mail. Commands never do: they are draining nodes. */
export const othersIn = (view: NodesView | null, me: OwnerId): readonly NodeState[] =>
  (view?.nodes ?? []).filter(({ id, draining }) => id !== me && !draining)

/** Resolves when no other node accepts mail and this one owns all shards. Rejects with MoveRefused while another node beats. */
export async function ownsAlone(deps: SoleNodeDeps, stopping: AbortSignal): Promise<void> {
  const remedy = 'drain them with deferd node drain NAME --wait, or stop them'
  const isReady = ({ nodes, mine }: NodesView): boolean => {
    if (nodes.some(({ id, draining }) => id === deps.me && draining)) throw new MoveRefused(75, DRAINED)
    return mine.length === SHARDS
  }
  await settled(deps, { remedy, isReady, stopping })
}

/** Resolves when no node accepts mail. Rejects with MoveRefused while one beats that is not a command. */
export async function noneDelivers(deps: SoleNodeDeps): Promise<void> {
  const remedy = 'run the command on the machine of the last of them, or stop them'
  await settled(deps, { remedy, isReady: () => true, stopping: new AbortController().signal })
}

interface Wanted {
  /** Advice while another node accepts mail. */
  readonly remedy: string
  readonly isReady: (view: NodesView) => boolean
  readonly stopping: AbortSignal
}

async function settled({ me, view, clock }: SoleNodeDeps, { remedy, isReady, stopping }: Wanted): Promise<void> {
  const seen = new Map<OwnerId, number>()
  for (; !stopping.aborted; await sleep(clock, POLL_INTERVAL, stopping)) {
    const current = view()
    const others = othersIn(current, me)
    const beating = others.filter(({ id, beat }) => seen.has(id) && seen.get(id) !== beat)
    if (beating.length > 0) throw sharedWith(beating, remedy)
    for (const { id, beat } of others) seen.set(id, beat)
    if (current !== null && others.length === 0 && isReady(current)) return
  }
  throw new MoveRefused(75, 'the daemon stops: repeat the command')
}

const DRAINED = 'this node is drained, and schedules nothing: run deferd node undrain with its name, then repeat the command'

function sharedWith(others: readonly NodeState[], remedy: string): MoveRefused {
  const names = others.map(({ name }) => name).join(', ')
  const text = `nodes that accept mail for this queue: ${names}`
  return new MoveRefused(75, `the queue cannot be retired while other nodes use it (${text}): ${remedy}, then repeat the command`)
}
