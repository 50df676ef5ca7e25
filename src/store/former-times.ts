/** The times of a message that a reschedule replaces, which are kept for its undo. */
import type { DestinationName, Message } from '../mail/message.ts'
import type { QueueTime } from '../system/clock.ts'

/** Times of the undelivered recipients at one destination of a message. */
export interface RecipientTimes {
  readonly destination: DestinationName
  readonly dueAt: QueueTime
  readonly expiresAt: QueueTime
}

export interface FormerTimes extends Pick<Message, 'notBefore' | 'scheduled' | 'holdRequest' | 'expires'> {
  readonly times: readonly RecipientTimes[]
}

/** The earliest due time and the latest expiry at each destination. */
export function perDestination(recipients: readonly RecipientTimes[]): readonly RecipientTimes[] {
  const times = new Map<DestinationName, RecipientTimes>()
  for (const { destination, dueAt, expiresAt } of recipients) {
    const known = times.get(destination)
    times.set(destination, {
      destination,
      dueAt: Math.min(dueAt, known?.dueAt ?? Infinity),
      expiresAt: Math.max(expiresAt, known?.expiresAt ?? 0),
    })
  }
  return [...times.values()]
}

/** As both SQL engines keep them. */
export const formerText = (former: FormerTimes): string => JSON.stringify(former)

export const formerOf = (text: string | null): FormerTimes | undefined => (text === null ? undefined : (JSON.parse(text) as FormerTimes))
