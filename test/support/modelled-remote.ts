/** Model of remote servers: a delivery agent whose results are computed by a function, without SMTP. */
import { sleep, type Duration, type QueueTime } from '../../src/system/clock.ts'
import type { AttemptResult, Delivery, DeliveryAgent, DeliveryOptions, RecipientOutcome } from '../../src/delivery/delivery-agent.ts'
import type { DeliveryRequest, DestinationName, MessageId } from '../../src/mail/message.ts'
import type { Incarnation } from '../../src/testkit/virtual/incarnation.ts'
import { BEGINNING } from '../../src/testkit/virtual/virtual-clock.ts'

/** Behaviour of the remote server in one delivery; times in ms. */
export type Behaviour =
  | { readonly kind: 'accepts'; readonly takes?: Duration }
  | { readonly kind: 'refuses-connections'; readonly takes?: Duration }
  /** Greets with 421. */
  | { readonly kind: 'too-busy'; readonly takes?: Duration }
  /** Replies this to each RCPT. */
  | { readonly kind: 'replies'; readonly reply: string; readonly takes?: Duration }

export interface ModelledDelivery {
  readonly destination: DestinationName
  readonly request: DeliveryRequest
  /** Milliseconds since the start of the world. */
  readonly at: Duration
  /** Number of deliveries in flight at the destination, including this one. */
  readonly inFlight: number
}

export type Model = (delivery: ModelledDelivery) => Behaviour

/** A message that the model accepted. */
export interface Arrival {
  readonly at: Duration
  readonly to: readonly string[]
  readonly content: string
}

export interface ModelledAttempt {
  readonly at: Duration
  readonly message: MessageId
  readonly destination: DestinationName
  readonly recipients: number
  readonly kind: Behaviour['kind']
}

export class ModelledRemote {
  readonly attempts: ModelledAttempt[] = []
  readonly arrivals: Arrival[] = []
  readonly #model: Model
  readonly #providerOf: ((destination: DestinationName) => string | null) | undefined
  readonly #inFlight = new Map<DestinationName, number>()

  /** `providerOf` tells the provider that the mail exchangers of a destination show. */
  constructor(model: Model, providerOf?: (destination: DestinationName) => string | null) {
    this.#model = model
    this.#providerOf = providerOf
  }

  /** The agent of one incarnation of the relay. */
  agentOf(life: Incarnation): DeliveryAgent {
    return { deliver: (request, options) => this.#deliver(request, options, life), close: () => Promise.resolve() }
  }

  async #deliver(request: DeliveryRequest, { admits }: DeliveryOptions, { clock, store }: Incarnation): Promise<Delivery> {
    const { destination, message, recipients } = request
    if (this.#providerOf !== undefined) {
      // The time of a DNS look-up.
      await sleep(clock, 5)
      if (admits?.(this.#providerOf(destination)) === false) return 'not-begun'
    }
    const inFlight = (this.#inFlight.get(destination) ?? 0) + 1
    this.#inFlight.set(destination, inFlight)
    const startedAt = clock.now()
    const at = startedAt - BEGINNING
    const behaviour = this.#model({ destination, request, at, inFlight })
    this.attempts.push({ at, message: message.id, destination, recipients: recipients.length, kind: behaviour.kind })
    if (behaviour.takes !== undefined && behaviour.takes > 0) await sleep(clock, behaviour.takes)
    this.#inFlight.set(destination, (this.#inFlight.get(destination) ?? 1) - 1)
    const result = resultOf(request, behaviour, startedAt, clock.now())
    if (outcomeOf(behaviour).outcome === 'delivered') {
      const content = await contentOf(request, (body, index) => store.readChunk(body, index))
      this.arrivals.push({ at: clock.now() - BEGINNING, to: recipients.map(({ address }) => address), content })
    }
    return result
  }
}

async function contentOf({ message }: DeliveryRequest, read: Incarnation['store']['readChunk']): Promise<string> {
  const chunks: Uint8Array[] = []
  for (let chunk = await read(message.contentId, 0); chunk !== undefined; chunk = await read(message.contentId, chunks.length))
    chunks.push(chunk)
  return Buffer.concat(chunks).toString('latin1')
}

function resultOf(request: DeliveryRequest, behaviour: Behaviour, startedAt: QueueTime, endedAt: QueueTime): AttemptResult {
  const outcome = outcomeOf(behaviour)
  return {
    outcomes: new Map(request.recipients.map(({ id }) => [id, outcome])),
    feedback: behaviour.kind === 'refuses-connections' || behaviour.kind === 'too-busy' ? 'negative' : 'positive',
    ...(behaviour.kind === 'too-busy' ? { congestion: 'early' as const } : {}),
    ...(outcome.outcome === 'deferred' && behaviour.kind !== 'replies' ? { siteStatus: outcome.status } : {}),
    relay: behaviour.kind === 'refuses-connections' ? null : `${request.destination}[192.0.2.1]:25`,
    connectionUse: 1,
    times: { startedAt, transmittingAt: startedAt, endedAt },
  }
}

function outcomeOf(behaviour: Behaviour): RecipientOutcome {
  switch (behaviour.kind) {
    case 'accepts':
      return { outcome: 'delivered', status: { status: '2.0.0', reason: '250 2.0.0 Ok', stage: 'end-of-data', reply: '250 2.0.0 Ok' } }
    case 'refuses-connections': {
      const reason = 'connect to far[192.0.2.1]:25: Connection refused'
      return { outcome: 'deferred', status: { status: '4.4.1', reason, stage: 'connect' } }
    }
    case 'too-busy': {
      const reason = 'host far[192.0.2.1] refused to talk to me: 421 4.7.0 busy'
      return { outcome: 'deferred', status: { status: '4.7.0', reason, stage: 'greeting' } }
    }
    case 'replies': {
      const { reply } = behaviour
      const status = /^\d{3} ([245]\.\d+\.\d+)/.exec(reply)?.[1] ?? `${reply.charAt(0)}.0.0`
      const outcome = reply.startsWith('2') ? 'delivered' : reply.startsWith('4') ? 'deferred' : 'bounced'
      return { outcome, status: { status, reason: `host far said: ${reply}`, stage: 'rcpt', reply, remoteMta: 'far' } }
    }
  }
}
