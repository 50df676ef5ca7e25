/** The answer of the first screen in one or two sentences: is the queue growing, and where does its mail wait? Pure. */
import type { NowJson } from '../../resources/status-json.ts'
import type { StatusDestinationJson } from '../../resources/destination-json.ts'
import { deathText } from '../../presentation/destination-state.ts'
import { grouped, plural, span } from '../../presentation/text.ts'
import { waits } from '../markup/times.ts'
import { waitingNow } from '../../store/destination-status.ts'
import { HOUR, SECOND } from '../../system/clock.ts'

export type NowState = Pick<NowJson, 'time' | 'queues' | 'waited' | 'last_hour' | 'attention'> & {
  readonly limits: readonly Pick<NowJson['limits'][number], 'share' | 'refuses'>[]
  readonly largest_destinations: readonly Pick<
    StatusDestinationJson,
    'destination' | 'state' | 'site_stage' | 'waiting' | 'scheduled' | 'refuses_all'
  >[]
}
type QueueName = NowJson['queues'][number]['queue_name']

const WAITING: readonly QueueName[] = ['incoming', 'active', 'deferred']

/** A difference of fewer recipients, or of a smaller share of those that wait, is no trend. */
const LEAST_DIFFERENCE = 10
const LEAST_SHARE = 0.02
/** Share from which one destination is named. */
const NAMED_SHARE = 0.25

const recipientsIn = ({ queues }: Pick<NowState, 'queues'>, names: readonly QueueName[]): number =>
  queues.reduce((sum, { queue_name: name, recipients }) => (names.includes(name) ? sum + recipients : sum), 0)

/** `40 %`; `less than 1 %`. */
export const percentText = (share: number): string => (share < 0.01 ? 'less than 1 %' : `${Math.round(100 * share)} %`)

const HOUR_IN_SECONDS = HOUR / SECOND

/** `an hour ago`, `34m ago` */
const ago = (seconds: number): string => (seconds > 0.95 * HOUR_IN_SECONDS ? 'an hour ago' : `${span(seconds * SECOND)} ago`)

/** `; 570 more are on hold`; empty for a difference that is none. */
function heldText(difference: number): string {
  const number = Math.abs(difference)
  if (number < LEAST_DIFFERENCE) return ''
  return `; ${grouped(number)} ${difference > 0 ? 'more' : 'fewer'} are on hold`
}

/** Mail that was put on hold does not wait any more: the queue does not drain by it, and does not grow by mail that was released. */
function trend(waiting: number, now: NowState): string {
  const { time, waited } = now
  if (waited === null) return `${waits(waiting)}.`
  const difference = waiting - waited.recipients
  const held = recipientsIn(now, ['hold']) - waited.hold
  const then = ago(time - waited.time)
  const compared =
    difference === 0 ? `as many as ${then}` : `${grouped(Math.abs(difference))} ${difference > 0 ? 'more' : 'fewer'} than ${then}`
  const least = Math.max(LEAST_DIFFERENCE, LEAST_SHARE * waiting)
  const isTrend = [difference, difference + held].every((one) => Math.sign(one) === Math.sign(difference) && Math.abs(one) >= least)
  return `${isTrend ? `The queue is ${difference > 0 ? 'growing' : 'draining'}: ` : ''}${waits(waiting)}, ${compared}${heldText(held)}.`
}

function whyThere({ state, site_stage: stage, refuses_all: refuses }: NowState['largest_destinations'][number]): string {
  if (state === 'suspended') return ', and is suspended'
  if (state === 'dead') return `; ${deathText(stage)}`
  if (refuses) return ', and delivered nothing in its last attempts'
  return state === 'throttled' ? ', and is throttled' : ''
}

function place(waiting: number, largest: NowState['largest_destinations']): string {
  const [first] = largest.toSorted((a, b) => waitingNow(b) - waitingNow(a))
  if (first === undefined || waitingNow(first) <= 0) return ''
  const share = Math.min(1, waitingNow(first) / waiting)
  if (share < NAMED_SHARE) return ` No destination has more than ${Math.ceil(100 * share)} % of them.`
  const part = share === 1 ? (waiting === 1 ? 'it' : 'all of them') : `${percentText(share)} of them`
  return ` ${first.destination} has ${part}${whyThere(first)}.`
}

const restOf = (now: NowState): string =>
  [
    [recipientsIn(now, ['hold']), 'on hold'],
    [recipientsIn(now, ['scheduled']), 'scheduled for later'],
    [recipientsIn(now, ['corrupt']), 'in unreadable mail'],
  ]
    .filter(([recipients]) => recipients !== 0)
    .map(([recipients, where]) => `${grouped(Number(recipients))} ${where}`)
    .join(', ')

function answerOf(now: NowState): string {
  if (now.attention.some(({ kind }) => kind === 'store-unavailable'))
    return 'Mail is neither accepted nor delivered: the queue cannot be written.'
  const waiting = recipientsIn(now, WAITING)
  const { delivered } = now.last_hour
  if (waiting === 0) {
    const rest = restOf(now)
    if (rest !== '') return `No mail waits for delivery; recipients: ${rest}.`
    return `The queue is empty${delivered === 0 ? '' : `; ${plural(delivered, 'recipient')} got mail in the last hour`}.`
  }
  if (recipientsIn(now, ['deferred']) === 0)
    return `${plural(waiting, 'recipient')} ${waiting === 1 ? 'is in delivery or was' : 'are in delivery or were'} not tried yet; none is deferred.`
  return trend(waiting, now) + place(waiting, now.largest_destinations)
}

/** The sentences; the figures are recipients. */
export const nowSentence = (now: NowState): string =>
  `${now.limits.some(({ share, refuses }) => share === null && refuses) ? 'New mail is refused, because the queue is at its limit. ' : ''}${answerOf(now)}`
