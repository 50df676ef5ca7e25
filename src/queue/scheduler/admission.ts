/**
 * Room in the active queue for the mail of one new message, from before its commit until its requests are in memory. A shard or a provider of
 * a destination is not given away meanwhile.
 */
import type { Band } from '../../config/values/mail-classes.ts'
import type { DeliveryRequest, DestinationName, Message, MessageId } from '../../mail/message.ts'
import type { Events } from '../../telemetry/events.ts'
import type { Destination } from './destination.ts'
import type { GiveBack } from './give-back.ts'
import type { SchedulerLoop, SchedulerState } from './scheduler-state.ts'
import type { TakeBack } from './take-back.ts'

type State = Pick<SchedulerState, 'clock' | 'events' | 'active' | 'table' | 'arriving' | 'policies'>
export interface AdmissionLoops {
  readonly giveBack: GiveBack
  readonly takeBack: TakeBack
  readonly scheduler: Pick<SchedulerLoop, 'dispatch'>
}

/** Admitted mail for one destination. */
interface Admitted {
  readonly destination: Destination
  readonly recipients: number
}

export class Admission {
  readonly #message: MessageId
  readonly #band: Band
  readonly #state: State
  readonly #loops: AdmissionLoops
  readonly #admitted = new Map<DestinationName, Admitted>()

  constructor(message: Pick<Message, 'id' | 'class'>, state: State, loops: AdmissionLoops) {
    this.#message = message.id
    this.#band = state.policies().classes.bands.of(message.class)
    this.#state = state
    this.#loops = loops
  }

  /** Reserves room for mail for an open destination that this node schedules; does nothing when there is not enough. */
  reserve(destination: Destination, recipients: number): void {
    const { active, table, arriving } = this.#state
    if (table.room(destination, this.#band, true) < recipients) return
    active.reserve(this.#message, recipients)
    arriving.beginEnter(this.#message)
    destination.beginCommit()
    this.#admitted.set(destination.name, { destination, recipients })
  }

  /** True when mail for the destination has room, so that it is committed with a lease. Other mail waits in the store. */
  has(name: DestinationName): boolean {
    return this.#admitted.has(name)
  }

  /** True when mail for any destination has room. */
  get hasAny(): boolean {
    return this.#admitted.size > 0
  }

  /** Adds the requests of the admitted mail, which is committed and leased, to the active queue. Starts deliveries. */
  committed(requests: readonly DeliveryRequest[]): void {
    const { clock, events, active, table } = this.#state
    const { giveBack, takeBack, scheduler } = this.#loops
    const activatedAt = clock.now()
    // One request of each destination was counted with its recipients.
    for (let counted = this.#admitted.size; counted < requests.length; counted++) active.reserve(this.#message, 0)
    reportActivated(events, requests)
    const entering = new Set(takeBack.passing(requests))
    for (const request of requests) {
      if (entering.has(request)) giveBack.whereClosed(table.enter(request, activatedAt))
      else active.release(this.#message, request.recipients.length)
    }
    this.#end()
    scheduler.dispatch()
  }

  /** Releases the room, because the message could not be committed. */
  withdrawn(): void {
    for (const { recipients } of this.#admitted.values()) this.#state.active.release(this.#message, recipients)
    this.#end()
  }

  #end(): void {
    if (this.hasAny) this.#state.arriving.endEnter(this.#message)
    for (const { destination } of this.#admitted.values()) destination.endCommit()
  }
}

/** Emits one event per message, with the number of recipients that enter the active queue. */
export function reportActivated(events: Events, requests: readonly DeliveryRequest[]): void {
  const [only] = requests
  if (only !== undefined && requests.length === 1)
    return events.emit({ kind: 'activated', message: only.message, recipientCount: only.recipients.length })
  for (const ofMessage of Map.groupBy(requests, (request) => request.message.id).values()) {
    const recipientCount = ofMessage.reduce((sum, { recipients }) => sum + recipients.length, 0)
    const [first] = ofMessage
    if (first !== undefined) events.emit({ kind: 'activated', message: first.message, recipientCount })
  }
}
