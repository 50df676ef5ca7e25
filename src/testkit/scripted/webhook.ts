/** A scripted receiver of webhooks, for tests of an application that handles bounces and delays. */
import { ANY_EVENT, type EventFilter } from '../../events/event-filter.ts'
import { ALL_EVENTS, settingsOf } from '../../outbox/configured-subscriptions.ts'
import type { SubscriptionSettings } from '../../store/outbox/subscription.ts'
import type { TargetAnswer } from '../../subscriptions/answer-decision.ts'
import { eventRequest, type EventRequest } from '../../subscriptions/event-request.ts'
import type { Consignment } from '../../subscriptions/target.ts'
import type { MachineClock, Duration, WallTime } from '../../system/clock.ts'
import { shown } from '../../system/shown-value.ts'
import { toDuration, type Time } from '../options/time.ts'
import type { OutsideCalls } from '../virtual/outside-calls.ts'

/** A request as the receiver got it. */
export interface WebhookRequest {
  /** Seconds since the start of the world. */
  readonly at: number
  /** `webhook-id`, `webhook-timestamp`, `webhook-signature` and `content-type`. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** Status that the receiver answered; null while it was down, and for a request that the end of the relay has ended. */
  readonly status: number | null
}

/**
 * Handles a request as the application does; returns the status of the response. It may take real time, while the clock of the world stands.
 * When it throws, the response is 500, and the call of the test that advances the clock, or the next one, rejects with the error.
 */
export type WebhookHandler = (request: Pick<WebhookRequest, 'headers' | 'body'>) => number | Promise<number>

/** Settings of a receiver; everything is optional. */
export interface WebhookOptions extends Partial<EventFilter> {
  /** Events in one request; default 1. */
  readonly batch?: number
  readonly format?: 'deferd' | 'cloudevents'
  /** The application's handler; without one every request is answered with 200. */
  readonly handler?: WebhookHandler
}

/** An application in another process, which answers in place of a handler. @internal */
export interface Application {
  /** Time of the signature. */
  readonly signedAt: () => WallTime
  /** Fields besides those of all webhooks. */
  readonly headers: () => Readonly<Record<string, string>>
  readonly post: (request: EventRequest, signal: AbortSignal) => Promise<TargetAnswer>
}

interface WebhookDeps {
  readonly clock: MachineClock
  readonly startedAt: WallTime
  readonly outside: OutsideCalls
  readonly options: WebhookOptions
  readonly application: Application | null
}

const STOPPED: TargetAnswer = { kind: 'failed', text: 'the relay has ended' }

interface Answering {
  readonly status: number | null
  readonly until: WallTime
  left: number
}

/** A receiver of webhooks in a world, made by `world.webhook()`. */
export class Webhook {
  /** The secret that signs, as `whsec_` and base64: the application verifies with it. */
  readonly secret = `whsec_${Buffer.from('secret of a test world, 32 bytes').toString('base64')}`
  readonly #deps: WebhookDeps
  readonly #requests: WebhookRequest[] = []
  #answering: Answering | null = null

  /** @internal */
  constructor(deps: WebhookDeps) {
    this.#deps = deps
  }

  /** Refuses connections for a time. */
  isDownFor(time: Time): this {
    return this.#answer(null, Infinity, toDuration(time))
  }

  /** Answers requests with a status: the next `first` ones, or those in the time `for`. Default: all. */
  replies(status: number, { first = Infinity, for: time }: { readonly first?: number; readonly for?: Time } = {}): this {
    return this.#answer(status, first, time === undefined ? Infinity : toDuration(time))
  }

  /** Ends what `isDownFor` and `replies` began. */
  recovers(): this {
    this.#answering = null
    return this
  }

  /** Requests so far, those that were not answered with 2xx included. */
  requests(): readonly WebhookRequest[] {
    return this.#requests
  }

  /** Settings of the subscription. @internal */
  get settings(): SubscriptionSettings {
    const { batch = 1, format = 'deferd', types = [], destinations = [], senders = [] } = this.#deps.options
    const to = 'https://webhook.example/'
    return {
      ...settingsOf(ALL_EVENTS),
      ...ANY_EVENT,
      to,
      batch,
      format,
      types,
      destinations,
      senders,
      secrets: [{ secret: this.secret, until: null }],
    }
  }

  /** Receives events. @internal */
  async take({ name, events, settings, secrets, signal }: Consignment): Promise<TargetAnswer> {
    const { clock, startedAt, application } = this.#deps
    const now = clock.now()
    const terms = { format: settings.format, isBatch: settings.batch > 1, secrets, source: 'relay.example' }
    const { headers, body } = eventRequest(events, { ...terms, now: application?.signedAt() ?? now })
    const request = { headers: { ...headers, ...application?.headers() }, body }
    const scripted = this.#scripted(now)
    const answer = scripted === undefined ? await this.#handled(name, request, signal) : answerOf(scripted)
    this.#requests.push({ ...request, at: (now - startedAt) / 1000, status: answer.kind === 'response' ? answer.code : null })
    return answer
  }

  async #handled(name: string, request: EventRequest, signal: AbortSignal): Promise<TargetAnswer> {
    const {
      outside,
      application,
      options: { handler = () => 200 },
    } = this.#deps
    const result = await outside.run(async () => {
      if (application !== null) return application.post(request, signal)
      const status = await handler(request)
      if (Number.isInteger(status) && status >= 200 && status <= 599) return answerOf(status)
      throw new TypeError(`the handler of webhook ${name} returned ${shown(status)}; expected a status such as 200`)
    }, signal)
    if (result !== 'failed') return result.value
    return signal.aborted ? STOPPED : answerOf(500)
  }

  #answer(status: number | null, left: number, lasting: Duration): this {
    this.#answering = { status, left, until: this.#deps.clock.now() + lasting }
    return this
  }

  /** The scripted status; null while down, undefined without a script. */
  #scripted(now: WallTime): number | null | undefined {
    const answering = this.#answering
    if (answering === null || answering.left === 0 || now >= answering.until) return undefined
    answering.left--
    return answering.status
  }
}

const answerOf = (status: number | null): TargetAnswer =>
  status === null
    ? { kind: 'failed', text: 'connection refused' }
    : { kind: 'response', code: status, retryAfter: null, text: String(status) }
