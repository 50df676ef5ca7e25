/** Rules for several nodes, beside those that also hold for one relay. */
import { SECOND, type Duration } from '../../../src/system/clock.ts'
import { leaseTimes } from '../../../src/store/membership/node-lease.ts'
import type { OwnerId } from '../../../src/mail/message.ts'
import {
  acknowledgedIsOnDisk,
  contentIsIntact,
  deliveredHasArrived,
  outcomesAreTrue,
  queueIsAsCommitted,
  takenUpRightly,
} from '../invariants/accounts.ts'
import { eventsTellTheHistory } from '../invariants/events.ts'
import { closedIsLeftAlone, limitsHold, pausesAreKept, providersHold } from '../invariants/flow.ts'
import { nothingBeginsAfterAnOrder } from '../invariants/orders.ts'
import { noticesAreRight } from '../invariants/notices.ts'
import { nothingIsStuck, scheduleIsKept } from '../invariants/schedule.ts'
import { replay, type Complain, type Invariant, type InvariantMaker, type Violation } from '../replay.ts'
import type { Scenario } from '../scenario.ts'
import type { NodeRun } from './run-nodes.ts'

const leaseOf = ({ lease = 0 }: Scenario): Duration => lease

/** No delivery, connection or mail transaction begins at a node after it was taken over. */
export function nothingBeginsAfterTakeover(complain: Complain): Invariant {
  const ended = new Set<OwnerId>()
  return {
    see({ where, event }) {
      if (where !== 'test') return
      if (event.did === 'node ended') ended.add(event.node)
      if (event.did === 'began' && event.node !== undefined && ended.has(event.node))
        complain(`node ${event.node} began a delivery of message ${event.message} after it was taken over`)
      if ((event.did === 'dialled' || event.did === 'sent MAIL') && ended.has(event.node))
        complain(`node ${event.node} ${event.did === 'dialled' ? 'opened a connection' : 'sent MAIL'} after it was taken over`)
    },
  }
}

/** Every lease belongs to a node of the queue. */
export const leasesHaveNodes = (complain: Complain): Invariant => ({
  see({ where, event }) {
    if (where !== 'test' || event.did !== 'looked') return
    for (const node of event.leases ?? [])
      if (event.nodes?.includes(node) !== true) complain(`mail is leased to node ${node}, which is gone`)
  },
})

/** A node is taken over only when it has been silent for a lease, by a node that reached the database during that time. */
export function onlySilentNodesAreTakenOver(complain: Complain, scenario: Scenario): Invariant {
  const lease = leaseOf(scenario)
  const beats = new Map<OwnerId, number[]>()
  const stopped = new Map<OwnerId, Duration>()
  return {
    see({ where, event, at }) {
      if (where !== 'test') return
      if (event.did === 'beat') beats.set(event.node, [...(beats.get(event.node) ?? []).filter((one) => at - one <= 2 * lease), at])
      if (event.did === 'node continued') stopped.set(event.node, at)
      if (event.did !== 'node ended' || event.node === event.taker) return
      const silent = at - (beats.get(event.node)?.at(-1) ?? -Infinity)
      if (silent < lease) complain(`node ${event.node} was taken over ${silent} ms after its last beat`)
      // The clock of a machine that stood still counts less time, which is safe.
      if (at - (stopped.get(event.taker) ?? -Infinity) <= lease) return
      const watched = (beats.get(event.taker) ?? []).filter((one) => at - one <= lease)
      const gaps = [...watched, at].map((one, n) => one - (n === 0 ? at - lease : (watched[n - 1] ?? 0)))
      if (Math.max(...gaps) > lease / 2 + SECOND) complain(`node ${event.node} was taken over by a node that did not see it for a while`)
    },
  }
}

/** A dead node is taken over within a lease and two beats of its last beat, which may arrive late, when another node reaches the database. */
export function deadNodesAreTakenOver(complain: Complain, scenario: Scenario): Invariant {
  const { lease, beat } = leaseTimes(leaseOf(scenario))
  const dead = new Map<OwnerId, Duration>()
  const joined = new Map<OwnerId, Duration>()
  const ended = new Set<OwnerId>()
  let calmFrom = 0
  return {
    see({ where, event, at }) {
      if (where !== 'test') return
      if (event.did === 'node joined') joined.set(event.node, at)
      if (event.did === 'node killed' && !ended.has(event.node)) dead.set(event.node, at)
      if (event.did === 'node ended') ended.add(event.node)
      if (event.did === 'node ended') dead.delete(event.node)
      if (event.did === 'node fault') calmFrom = Math.max(calmFrom, at + (event.time ?? 0))
      if (event.did === 'beat' && dead.has(event.node)) dead.set(event.node, at)
      if (event.did !== 'beat' || dead.has(event.node)) return
      for (const [node, since] of dead) {
        const waited = at - Math.max(since, calmFrom, joined.get(event.node) ?? at)
        if (waited > lease + 2 * beat + 10 * SECOND) complain(`node ${node} is dead, and was not taken over for ${waited} ms`)
      }
    },
  }
}

export const NODE_INVARIANTS: Readonly<Record<string, InvariantMaker>> = {
  acknowledgedIsOnDisk,
  queueIsAsCommitted,
  takenUpRightly,
  outcomesAreTrue,
  contentIsIntact,
  deliveredHasArrived,
  scheduleIsKept,
  nothingIsStuck,
  limitsHold,
  providersHold,
  pausesAreKept,
  closedIsLeftAlone,
  nothingBeginsAfterAnOrder,
  noticesAreRight,
  nothingBeginsAfterTakeover,
  leasesHaveNodes,
  onlySilentNodesAreTakenOver,
  deadNodesAreTakenOver,
  eventsTellTheHistory,
}

export const nodeViolationsOf = ({ history, scenario }: NodeRun): readonly Violation[] => replay(history.trace, scenario, NODE_INVARIANTS)
