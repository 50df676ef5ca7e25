/** The queue of a message, decided once for the engines and for SQL (Postfix's names, see QUEUE_NAMES). */
import type { Placement, QueueName } from '../../mail/message.ts'

/** Facts of a message, each as a value or as an SQL expression. */
interface Facts<Text, Truth> {
  readonly placement: Text
  /** A recipient is leased. */
  readonly isActive: Truth
  /** The time that the client named has not come. */
  readonly scheduled: Truth
  /** A live recipient was attempted, or its destination is dead or suspended. The due time tells nothing: that of new mail is its creation. */
  readonly isDeferred: Truth
}

/** Queues of mail that is not set aside; the first whose fact holds is that of the message. */
const BY_FACT = [
  ['active', 'isActive'],
  ['scheduled', 'scheduled'],
  ['deferred', 'isDeferred'],
] as const
const OTHERWISE = 'incoming'

/** A message that is held, corrupt or in the trash has its placement as queue. */
export function queueNameOf(facts: Facts<Placement, boolean>): QueueName | 'trash' {
  if (facts.placement !== 'queued') return facts.placement
  return BY_FACT.find(([, fact]) => facts[fact])?.[0] ?? OTHERWISE
}

/** The same as an SQL expression. */
export const queueNameIn = (facts: Facts<string, string>): string => `
  case
    when ${facts.placement} <> 'queued' then ${facts.placement}
    ${BY_FACT.map(([name, fact]) => `when ${facts[fact]} then '${name}'`).join('\n    ')}
    else '${OTHERWISE}'
  end`

/** True for a queue whose messages have its placement; the others are queued. */
export const isAside = (queue: QueueName | 'trash' | null): queue is Exclude<Placement, 'queued'> =>
  queue === 'hold' || queue === 'corrupt' || queue === 'trash'
