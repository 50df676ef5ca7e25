/** The operation that gives a message other times. Pure. */
import type { DestinationPolicies } from '../config/destination-policies.ts'
import { expiryOf, type Message } from '../mail/message.ts'
import { orderedRequestOf, queueTimeOf, type Moment, type NamedTime } from '../mail/message-times.ts'
import type { FormerTimes } from '../store/former-times.ts'
import type { ListedMessage } from '../store/queue-reader.ts'
import type { Rescheduling } from '../store/message-operation.ts'
import type { QueueTime } from '../system/clock.ts'

/** Times in place of those of the message. */
export interface NewTimes extends Pick<Message, 'expires' | 'holdRequest'> {
  readonly notBefore: QueueTime
}

/** The time that an operator names, now at the earliest. It replaces the request of the client, so that a step of the wall clock moves an instant. */
export const orderedTime = (release: NamedTime, moment: Moment): Pick<NewTimes, 'notBefore' | 'holdRequest'> => ({
  notBefore: Math.max(moment.now, queueTimeOf(release, moment)),
  holdRequest: orderedRequestOf(release),
})

interface Terms {
  readonly now: QueueTime
  readonly policies: DestinationPolicies
  /** True when mail that is not scheduled is changed too. */
  readonly anyWaiting: boolean
}

/** The operation on a message with all its live recipients. */
export function rescheduled(
  { message, recipients }: Pick<ListedMessage, 'message' | 'recipients'>,
  { notBefore, expires, holdRequest }: NewTimes,
  { now, policies, anyWaiting }: Terms,
): Rescheduling {
  const lifetime = message.sender === '' ? 'bounce_queue_lifetime' : 'maximal_queue_lifetime'
  const destinations = new Set(recipients.map(({ destination }) => destination))
  return {
    kind: 'reschedule',
    notBefore,
    expires,
    holdRequest,
    scheduled: notBefore > now ? true : undefined,
    anyWaiting,
    times: [...destinations].map((destination) => ({
      destination,
      dueAt: notBefore,
      expiresAt: expiryOf({ ...message, notBefore, expires }, policies.forMail(destination, message).settings[lifetime]),
    })),
  }
}

/** The operation that gives a message that is still scheduled its former times. */
export const timesBefore = ({ notBefore, scheduled, holdRequest, expires, times }: FormerTimes, now: QueueTime): Rescheduling => ({
  kind: 'reschedule',
  notBefore,
  expires,
  holdRequest: holdRequest ?? null,
  scheduled: scheduled === true && notBefore !== undefined && notBefore > now ? true : undefined,
  anyWaiting: false,
  times,
})
