/**
 * States that some of the scenarios must reach: a simulation that never reaches them proves little. Each is an invariant whose
 * violation means "reached".
 */
import type { Duration } from '../../src/system/clock.ts'
import { isLive, messageOf, type DestinationName, type MessageId, type RecipientId } from '../../src/mail/message.ts'

import type { Run } from './run.ts'
import { replay, type Complain, type Invariant, type InvariantMaker, type Scene, type SimulatedEvent } from './replay.ts'

type See = (event: SimulatedEvent, scene: Scene) => boolean

const whenever =
  (reached: See): InvariantMaker =>
  (complain) => ({
    see(entry, scene) {
      if (reached(entry, scene)) complain('reached')
    },
  })

const settledAs = ({ where, event }: SimulatedEvent, state: string): readonly RecipientId[] =>
  where === 'test' && event.did === 'committed' && event.method === 'settle'
    ? event.settlement.recipients.flatMap((one) => (one.state === state ? [one.recipient] : []))
    : []

const isDeed = ({ where, event }: SimulatedEvent, did: string): boolean => where === 'test' && (event.did as string) === did

/** A destination that has these events, in this order. */
const goesThrough =
  (steps: readonly ((entry: SimulatedEvent) => DestinationName | undefined)[]): InvariantMaker =>
  (complain) => {
    const at = new Map<DestinationName, number>()
    return {
      see(entry) {
        for (const [index, step] of steps.entries()) {
          const name = step(entry)
          if (name === undefined || (at.get(name) ?? 0) !== index) continue
          at.set(name, index + 1)
          if (index + 1 === steps.length) complain('reached')
          return
        }
      },
    }
  }

const queueEvent =
  (kind: 'died' | 'revived') =>
  ({ where, event }: SimulatedEvent): DestinationName | undefined =>
    where === 'queue' && event.kind === kind ? event.destination : undefined

/** The remote server has accepted the message, and the relay crashes before it has committed the outcome. */
function crashAfterTheDot(complain: Complain): Invariant {
  let copies: readonly { readonly attempt: number }[] = []
  return {
    see(entry, { underWay }) {
      if (entry.where === 'remote' && entry.event.event === 'message' && entry.event.kept) copies = [...underWay.values()]
      if (isDeed(entry, 'killed') && copies.some(({ attempt }) => underWay.has(attempt))) complain('reached')
    },
  }
}

function windowCutAndRegrown(complain: Complain): Invariant {
  const before = new Map<DestinationName, { readonly window: number; readonly cut: boolean }>()
  return {
    see({ where, event }) {
      if (where !== 'queue' || event.kind !== 'window') return
      const { destination, window } = event
      const last = before.get(destination)
      if (last?.cut === true && window > last.window) complain('reached')
      before.set(destination, {
        window,
        cut: last !== undefined ? window < last.window || (last.cut && window <= last.window) : event.feedback === 'negative',
      })
    },
  }
}

function warnedThenDelivered(complain: Complain): Invariant {
  const warned = new Set<MessageId>()
  return {
    see(entry, { queue }) {
      if (entry.where === 'queue' && entry.event.kind === 'notice-sent' && entry.event.notice === 'delay')
        warned.add(entry.event.message.id)
      for (const id of settledAs(entry, 'delivered'))
        if (warned.has(messageOf(id)) && queue.recipient(id) !== undefined) complain('reached')
    },
  }
}

export const SOMETIMES: Readonly<Record<string, InvariantMaker>> = {
  'delivered after three deferrals': whenever((entry, { queue }) =>
    settledAs(entry, 'delivered').some((id) => (queue.recipient(id)?.attempts ?? 0) >= 3),
  ),
  'killed between the dot and the commit': crashAfterTheDot,
  'killed with deliveries under way': whenever((entry, { underWay }) => isDeed(entry, 'killed') && underWay.size > 0),
  'expired while an attempt was under way': whenever(({ where, event }, { queue, underWay, now }) => {
    if (where !== 'test' || event.did !== 'ended') return false
    const began: Duration = underWay.get(event.attempt)?.beganAt ?? 0
    return event.result.outcomes.some(({ recipient }) => {
      const expiresAt = queue.recipient(recipient)?.expiresAt ?? Infinity
      return expiresAt <= now && expiresAt > event.result.endedAt - (now - began)
    })
  }),
  'accepted, put off and refused in one transaction': whenever(({ where, event }) => {
    if (where !== 'test' || event.did !== 'ended') return false
    return new Set(event.result.outcomes.map(({ outcome }) => outcome)).size === 3
  }),
  'warned of, then delivered': warnedThenDelivered,
  'a window cut and regrown': windowCutAndRegrown,
  'dead, alive, dead again': goesThrough([queueEvent('died'), queueEvent('revived'), queueEvent('died')]),
  'taken twice because a reply was lost': whenever(
    ({ where, event }) => where === 'test' && event.did === 'ended' && event.result.possiblySent === true,
  ),
  'greylisted twice': whenever(({ where, event }, { queue }) => {
    if (where !== 'test' || event.did !== 'ended') return false
    return event.result.outcomes.some(
      ({ recipient, reply }) => reply?.includes('Greylisted') === true && (queue.recipient(recipient)?.attempts ?? 0) >= 1,
    )
  }),
  'expired behind a closed door': whenever((entry, { queue, closed }) =>
    settledAs(entry, 'expired').some((id) => closed.has(queue.recipient(id)?.destination ?? '')),
  ),
  'held beyond its lifetime': whenever(({ where, event }, { queue, now }) => {
    if (where !== 'test' || event.did !== 'looked') return false
    return [...queue.live()].some(([one, held]) => held.placement === 'hold' && one.expiresAt < now)
  }),
  'restored from the trash': whenever(
    ({ where, event }) =>
      where === 'test' &&
      event.did === 'committed' &&
      event.method === 'operate' &&
      event.operations.some(({ operation }) => operation.kind === 'restore'),
  ),
  'an order for mail in delivery': whenever(({ where, event }, { queue }) => {
    if (where !== 'test' || event.did !== 'committed' || event.method !== 'operate') return false
    return event.operations.some(({ message }) => queue.messages.get(message)?.recipients.some(({ state }) => state === 'leased') === true)
  }),
  'an order for mail that is claimed and waits for a slot': whenever(({ where, event }, { queue, underWay }) => {
    if (where !== 'test' || event.did !== 'committed' || event.method !== 'operate') return false
    const begun = new Set([...underWay.values()].flatMap(({ recipients }) => recipients.map(({ id }) => id)))
    return event.operations.some(
      ({ message, operation }) =>
        ['hold', 'delete', 'expire'].includes(operation.kind) &&
        queue.messages.get(message)?.recipients.some(({ id, state }) => state === 'leased' && !begun.has(id)) === true,
    )
  }),
  'the disk full with mail in delivery': whenever(
    ({ where, event }, { underWay }) => where === 'test' && event.did === 'disk full' && underWay.size > 0,
  ),
  'a clock set with mail waiting': whenever(
    ({ where, event }, { queue }) => where === 'test' && 'by' in event && [...queue.live()].some(([one]) => isLive(one)),
  ),
  'a notice that cannot be delivered': whenever((entry, { queue }) =>
    [...settledAs(entry, 'bounced'), ...settledAs(entry, 'expired')].some((id) => queue.messages.get(messageOf(id))?.message.sender === ''),
  ),
  'tried alone after two crashes': whenever(
    ({ where, event }) => where === 'test' && event.did === 'committed' && event.method === 'claimSuspect' && event.requests.length > 0,
  ),
}

/** States that a run has reached. */
export const reachedIn = ({ history, scenario }: Run): ReadonlySet<string> =>
  new Set(replay(history.trace, scenario, SOMETIMES).map(({ invariant }) => invariant))
