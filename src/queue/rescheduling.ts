/** The operation that gives a scheduled message other times. Pure. */
import type { DestinationPolicies } from '../config/destination-policies.ts'
import { expiryOf, type Message } from '../mail/message.ts'
import type { ListedMessage } from '../store/queue-reader.ts'
import type { Rescheduling } from '../store/queue-store.ts'
import type { QueueTime } from '../system/clock.ts'

/** Times in place of those of the message. */
export interface NewTimes extends Pick<Message, 'expires' | 'holdRequest'> {
  readonly notBefore: QueueTime
}

/** The operation on a message with all its live recipients. */
export function rescheduled(
  { message, recipients }: Pick<ListedMessage, 'message' | 'recipients'>,
  { notBefore, expires, holdRequest }: NewTimes,
  { now, policies }: { readonly now: QueueTime; readonly policies: DestinationPolicies },
): Rescheduling {
  const lifetime = message.sender === '' ? 'bounce_queue_lifetime' : 'maximal_queue_lifetime'
  const destinations = new Set(recipients.map(({ destination }) => destination))
  return {
    kind: 'reschedule',
    notBefore,
    expires,
    holdRequest,
    scheduled: notBefore > now ? true : undefined,
    expiries: [...destinations].map((destination) => ({
      destination,
      expiresAt: expiryOf({ ...message, notBefore, expires }, policies.for(destination).settings[lifetime]),
    })),
  }
}
