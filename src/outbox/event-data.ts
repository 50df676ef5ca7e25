/** Events for programs, made from events of the relay. Their data are the members of the JSON log (docs/events.md). */
import type { AttemptResult } from '../delivery/delivery-agent.ts'
import { recordOf } from '../events/event-kind.ts'
import { RECIPIENT, type RecipientMembers } from '../events/event-members.ts'
import type { EventType, TypedEvent } from '../events/event-types.ts'
import { keptData } from '../events/event-values.ts'
import type { NewEvent, RecipientEvent } from '../events/kept-event.ts'
import { PUBLISHED_KINDS, type EventData } from '../events/published-kinds.ts'
import { releasedAt, type DeliveryRequest, type LeasedRecipient, type RecipientId } from '../mail/message.ts'
import type { Settled, Settlement } from '../store/recorded-outcomes.ts'
import type { QueueTime } from '../system/clock.ts'
import type { WallView } from '../system/wall-view.ts'
import type { EventOf, QueueEvent } from '../telemetry/events.ts'

type Told = EventOf<keyof typeof PUBLISHED_KINDS>

/** An event that a method of the store takes. The store itself makes the events of messages that leave the queue or are quarantined. */
export type Published = Exclude<Told, { readonly kind: 'removed' | 'quarantined' }>

export const newEvent = <T extends EventType>(type: T, at: QueueTime, data: EventData[T]): NewEvent => ({
  type,
  at,
  data: keptData(type, data),
})

export const typeOf = ({ kind }: Told): EventType => PUBLISHED_KINDS[kind].type

/** The data of an event have the members of its record in the JSON log. */
const typedEvent = (happened: Told): TypedEvent =>
  ({ type: typeOf(happened), data: recordOf<never, object>(PUBLISHED_KINDS[happened.kind].record, happened as never) }) as TypedEvent

export function eventOf(happened: Published, at: QueueTime): NewEvent {
  const { type, data } = typedEvent(happened)
  return newEvent(type, at, data)
}

/** An attempt that was not made, because the lifetime had ended or an operator forced the end. */
const NO_ATTEMPT = { connectionUse: 0, login: undefined } as const

export interface Outcome {
  readonly request: DeliveryRequest
  readonly settlement: Pick<Settlement, 'recipients' | 'attempts'>
  /** Null for mail that expires without an attempt. */
  readonly result: AttemptResult | null
  readonly wall: WallView
}

const TYPE_OF_STATE = {
  waiting: 'recipient.deferred',
  delivered: 'recipient.delivered',
  bounced: 'recipient.bounced',
  expired: 'recipient.expired',
} as const satisfies Record<Exclude<Settled['state'], 'removed'>, EventType>

/** One event for each recipient of a settlement, of the types that are wanted. */
export const recipientEvents = (outcome: Outcome, wanted: (type: EventType) => boolean): readonly RecipientEvent[] =>
  outcomesOf(outcome, wanted).map(({ type, at, data, recipient }) => ({ ...newEvent(type, at, data), recipient }))

export function typedEvents(happened: QueueEvent, wall: WallView): readonly TypedEvent[] {
  if (happened.kind === 'attempted') {
    const { request, result, attempts, settled } = happened
    return typedOutcomes({ request, result, wall, settlement: { recipients: settled, attempts } })
  }
  if (happened.kind === 'expired') {
    if (happened.unattempted === null) return []
    const { request, settled } = happened.unattempted
    return typedOutcomes({ request, result: null, wall, settlement: { recipients: settled, attempts: [] } })
  }
  if (!isTold(happened) || (happened.kind === 'oauth-failed' && !happened.isFirst)) return []
  const own = typedEvent(happened)
  // No event of the relay reports the acceptance of a notice.
  return happened.kind === 'notice-sent' ? [...typedEvents({ kind: 'accepted', client: null, ...happened.queued }, wall), own] : [own]
}

const isTold = (happened: QueueEvent): happened is Told => Object.hasOwn(PUBLISHED_KINDS, happened.kind)

const typedOutcomes = (outcome: Outcome): readonly TypedEvent[] => outcomesOf(outcome, () => true).map(({ type, data }) => ({ type, data }))

function outcomesOf(outcome: Outcome, wanted: (type: EventType) => boolean): readonly RecipientOutcome[] {
  const { recipients } = outcome.request
  const events: RecipientOutcome[] = []
  outcome.settlement.recipients.forEach((settled, n) => {
    if (settled.state === 'removed' || !wanted(TYPE_OF_STATE[settled.state])) return
    // A settlement has the recipients of its request, in order.
    const recipient = recipients[n]
    if (recipient?.id !== settled.recipient) throw new Error('a settlement has another order than its request; this is a bug')
    events.push(outcomeOf(outcome, recipient, settled))
  })
  return events
}

interface RecipientOutcome {
  readonly type: (typeof TYPE_OF_STATE)[keyof typeof TYPE_OF_STATE]
  readonly at: QueueTime
  readonly data: RecipientMembers
  readonly recipient: RecipientId
}

function outcomeOf({ request, settlement, result, wall }: Outcome, recipient: LeasedRecipient, settled: Settled): RecipientOutcome {
  const type = TYPE_OF_STATE[settled.state === 'removed' ? 'expired' : settled.state]
  const made = settlement.attempts.find((attempt) => attempt.recipient === settled.recipient)
  const at = made?.at ?? (settled.state === 'waiting' ? 0 : settled.at)
  const data = recordOf(RECIPIENT, {
    request,
    address: recipient.address,
    attempt: made ?? unmade(at, request, settled),
    result: result ?? NO_ATTEMPT,
    forced: request.forcedExpire,
    attempts: settled.attempts,
    nextAttemptTime: settled.state === 'waiting' ? wall.seconds(settled.dueAt) : null,
  })
  return { type, at, data, recipient: settled.recipient }
}

/** Stands for the attempt of a recipient that expired without one. */
function unmade(at: QueueTime, { message }: DeliveryRequest, { last }: Settled) {
  const status = last ?? { status: '4.4.7', reason: '', stage: 'queue' as const }
  return { at, relay: null, outcome: 'expired' as const, status, delays: [Math.max(0, at - releasedAt(message)), 0, 0, 0] as const }
}
