/** The deliver-by time of a message as a next hop gets it (RFC 2852 §4.1.4). Pure. */
import type { Notify } from '../../mail/envelope.ts'
import type { Message } from '../../mail/message.ts'
import { isReturned } from '../../mail/message-times.ts'
import { SECOND, type QueueTime } from '../../system/clock.ts'
import type { SessionFailure } from '../transcript.ts'
import type { Extensions } from './envelope-commands.ts'

/** Greatest number of nine digits, in seconds. */
const MOST = 999_999_999

type Asked = Pick<Message, 'deliverBy' | 'byMode'>

/** Whole seconds until the deliver-by time, negative after it. */
const secondsUntil = (at: QueueTime, now: QueueTime): number => Math.max(-MOST, Math.min(MOST, Math.floor((at - now) / SECOND)))

/** Shortest time in seconds that a host takes with the mode R; undefined without DELIVERBY. */
function minimumOf(extensions: Extensions): number | undefined {
  const options = extensions.get('DELIVERBY')
  return options === undefined ? undefined : Number(/^\d{1,9}/.exec(options)?.[0] ?? 0)
}

/** The parameter BY for a host at this time; undefined for a message without BY, and for a host that does not take it. */
export function byParameter({ deliverBy, byMode }: Asked, extensions: Extensions, now: QueueTime): string | undefined {
  const minimum = minimumOf(extensions)
  if (deliverBy === undefined || byMode === undefined || minimum === undefined) return undefined
  const left = secondsUntil(deliverBy, now)
  return isReturned(byMode) && left < Math.max(1, minimum) ? undefined : `${left};${byMode}`
}

/** True when the message has the mode N, and the host reports no delay. */
export const deliverByEnds = ({ byMode }: Asked, extensions: Extensions): boolean =>
  byMode !== undefined && !isReturned(byMode) && !extensions.has('DELIVERBY')

/** The failure of a host that cannot take a message with the mode R; undefined for another message or host. */
export function deliverByFailure(message: Asked, extensions: Extensions, now: QueueTime): SessionFailure | undefined {
  const { deliverBy, byMode } = message
  if (deliverBy === undefined || byMode === undefined || !isReturned(byMode)) return undefined
  if (byParameter(message, extensions, now) !== undefined) return undefined
  return { kind: 'no-deliver-by', left: secondsUntil(deliverBy, now), minimum: minimumOf(extensions) }
}

/** NOTIFY for a host that reports no delay by itself, with DELAY unless it is NEVER. */
export const notifyOfDelay = (notify: Notify = ['failure']): Notify =>
  notify === 'never' || notify.includes('delay') ? notify : [...notify, 'delay']
