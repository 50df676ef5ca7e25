/** Windows change by Postfix's arithmetic, computed independently from the results of deliveries. */
import { MINUTE, type Duration } from '../../../src/system/clock.ts'
import { messageOf, type DestinationName } from '../../../src/mail/message.ts'
import type { ResultFacts } from '../record.ts'
import type { Complain, Invariant, Scene } from '../replay.ts'

interface State {
  size: number
  success: number
  failure: number
  cohorts: number
  endedAt: number | null
  /** Sizes that must be reported, in this order. */
  announced: number[]
  /** Time of the last result from which a size follows. The scheduler sees a result later in the same instant. */
  learnedAt: Duration
}

export function windowsFollowTheFeedback(complain: Complain): Invariant {
  const states = new Map<DestinationName, State>()
  const unclear = new Set<DestinationName>()
  /** Time of the last positive delivery; a destination revived without one was resumed by an operator. */
  const answeredAt = new Map<DestinationName, Duration>()
  /** Time of the last delivery that was accepted. */
  const acceptedAt = new Map<DestinationName, Duration>()
  return {
    see({ where, event, at }, scene) {
      if (scene.settings.text('', 'default_destination_concurrency_control', 'postfix') !== 'postfix') return
      const deed: { readonly did?: string } = where === 'test' ? event : {}
      // The window begins anew when the destination changes its provider, and results of deliveries that end meanwhile do not count.
      if (where === 'test' && event.did === 'not begun') unclear.add(event.destination)
      if (deed.did === 'killed' || deed.did === 'restarted') [states, acceptedAt].forEach((known) => known.clear())
      else if ('destination' in event && unclear.has(event.destination)) return
      // A delivery that ends at a suspended destination changes an unused window, which is reset when the destination is resumed.
      else if (where === 'queue' && event.kind === 'window' && scene.closed.has(event.destination)) return
      else if (where === 'queue' && event.kind !== 'deferred' && 'destination' in event) {
        const state = stateOf(states, event.destination, scene)
        if (event.kind === 'window') announce(event.destination, event.window, state, complain)
        if (event.kind === 'died') states.delete(event.destination)
        if (event.kind === 'resumed') states.set(event.destination, fresh(scene, event.destination))
        if (event.kind === 'revived') {
          const others = answeredAt.get(event.destination) === at ? othersAt(event.destination, scene) : undefined
          states.set(event.destination, fresh(scene, event.destination, others))
        }
      } else if (where === 'test' && event.did === 'began') {
        const state = stateOf(states, event.destination, scene)
        if (state.announced.length > 0 && at > state.learnedAt)
          complain(`the window of ${event.destination} should have become ${state.announced.join(', ')}`)
        const idle =
          state.endedAt !== null && at - state.endedAt >= scene.settings.duration(event.destination, 'minimal_backoff_time', '300s')
        if (idle && countAt(event.destination, scene) === 0) states.set(event.destination, fresh(scene, event.destination))
      } else if (where === 'test' && event.did === 'ended') {
        if (event.result.feedback === 'positive' || event.result.congestion === 'late') answeredAt.set(event.destination, at)
        const state = stateOf(states, event.destination, scene)
        state.learnedAt = at
        if (event.result.outcomes.some(({ outcome }) => outcome === 'delivered')) acceptedAt.set(event.destination, at)
        const age = at - (acceptedAt.get(event.destination) ?? -Infinity)
        const asks = asksForLess(event.result) && scene.settings.text('', 'default_destination_adaptive_rate', 'yes') === 'yes'
        // Beyond a minute, it depends on the rate that was found.
        if (asks && age > MINUTE && age <= SLOWEST) unclear.add(event.destination)
        const result: ResultFacts = asks && age <= MINUTE ? { ...event.result, feedback: 'none', congestion: 'late' } : event.result
        if (!scene.closed.has(event.destination)) learn(event.destination, result, state, scene)
      } else if (where === 'test' && event.did === 'committed' && event.method === 'settle') {
        for (const { recipient } of event.settlement.recipients) {
          const attempt = [...scene.underWay.values()].find(({ recipients }) => recipients.some(({ id }) => id === recipient))
          const destination = scene.queue.recipient(recipient)?.destination
          const forced = scene.queue.messages.get(messageOf(recipient))?.forcedExpire === true
          if (attempt !== undefined) stateOf(states, attempt.destination, scene).endedAt = at
          // Mail that expires in its slot keeps the window, mail that never got a slot does not; the records do not differ.
          else if (destination !== undefined && !forced) unclear.add(destination)
        }
      }
    },
  }
}

const CODES = new Set(['4.3.2', '4.4.5', '4.7.0', '4.7.28', '5.7.28'])

/** Four deliveries at one a minute, the lowest rate. */
const SLOWEST: Duration = 4 * MINUTE

/** A destination that accepts mail, and asks for less of it, is slowed and does not become dead. */
const asksForLess = ({ congestion, outcomes }: ResultFacts): boolean =>
  congestion !== undefined &&
  outcomes.some(
    ({ reply, stage, status }) =>
      reply !== undefined && stage !== 'auth' && stage !== 'starttls' && (reply.startsWith('421') || CODES.has(status)),
  )

const countAt = (destination: DestinationName, { underWay }: Scene): number =>
  [...underWay.values()].filter((one) => one.destination === destination).length

/** Number of other deliveries in progress when a dead destination answered; undefined for none. */
const othersAt = (destination: DestinationName, scene: Scene): number | undefined => {
  const others = countAt(destination, scene) - 1
  return others > 0 ? others : undefined
}

function stateOf(states: Map<DestinationName, State>, destination: DestinationName, scene: Scene): State {
  const state = states.get(destination) ?? fresh(scene, destination)
  states.set(destination, state)
  return state
}

function limitAt({ settings }: Scene, destination: DestinationName): number {
  const pause = settings.duration(destination, 'default_destination_rate_delay', '0')
  return pause > 0 ? 1 : settings.number(destination, 'default_destination_concurrency_limit', 20)
}

const initialAt = ({ settings }: Scene, destination: DestinationName): number =>
  settings.number(destination, 'initial_destination_concurrency', 5)

function fresh(scene: Scene, destination: DestinationName, wanted?: number): State {
  const limit = limitAt(scene, destination)
  const start = wanted ?? initialAt(scene, destination)
  return {
    size: limit > 0 ? Math.min(start, limit) : start,
    success: 0,
    failure: 0,
    cohorts: 0,
    endedAt: null,
    announced: [],
    learnedAt: 0,
  }
}

function announce(destination: DestinationName, window: number, state: State, complain: Complain): void {
  const expected = state.announced.shift()
  if (expected !== window)
    complain(`the window of ${destination} became ${window}, and should ${expected === undefined ? 'stay' : `become ${expected}`}`)
}

function learn(destination: DestinationName, { feedback, congestion }: ResultFacts, state: State, scene: Scene): void {
  const before = state.size
  if (feedback === 'positive' && congestion === undefined) widen(destination, state, scene)
  else if (feedback === 'negative' || congestion === 'early') fail(destination, state, scene)
  else if (congestion === 'late') narrow(destination, state, scene)
  if (state.size !== before) state.announced.push(state.size)
}

function rate({ settings }: Scene, destination: DestinationName, sign: 'positive' | 'negative', size: number): number {
  const written = settings.text(destination, `default_destination_concurrency_${sign}_feedback`, '1/concurrency')
  const [over = '1', under = '1'] = written.split('/')
  return Number(over) / (under === 'concurrency' ? size : Number(under))
}

function widen(destination: DestinationName, state: State, scene: Scene): void {
  const limit = limitAt(scene, destination)
  state.cohorts = 0
  if ((limit > 0 && state.size >= limit) || state.size >= countAt(destination, scene) + initialAt(scene, destination)) return
  const step = rate(scene, destination, 'positive', state.size)
  for (state.success += step; state.success + step / 2 >= 1; state.success--) {
    state.size++
    state.failure = 0
  }
  if (limit > 0) state.size = Math.min(state.size, limit)
}

function narrow(destination: DestinationName, state: State, scene: Scene): void {
  const step = rate(scene, destination, 'negative', state.size)
  for (state.failure -= step; state.failure - step / 2 < -1e-9; state.failure++) {
    state.size--
    state.success = 0
  }
  state.size = Math.max(1, state.size)
}

function fail(destination: DestinationName, state: State, scene: Scene): void {
  const limit = scene.settings.number(destination, 'default_destination_concurrency_failed_cohort_limit', 1)
  state.cohorts += 1 / state.size
  // The destination is dead, or the delivery was alone and the window is reset: the next event decides.
  if (limit > 0 && state.cohorts >= limit - 1e-9)
    Object.assign(state, fresh(scene, destination), { announced: state.announced, learnedAt: state.learnedAt })
  else narrow(destination, state, scene)
}
