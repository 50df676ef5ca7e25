/** The times of a message that a reschedule replaces, or its class before a reclass, which are kept for the undo. */
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

/** The class that a reclass replaces; null for none. */
interface FormerClass {
  readonly class: string | null
}

export type Former = FormerTimes | FormerClass

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
export const formerText = (former: Former): string => JSON.stringify(former)

export const formerOf = (text: string | null): Former | undefined => (text === null ? undefined : (JSON.parse(text) as Former))
