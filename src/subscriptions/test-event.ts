/** One event of the type `test`, sent to the target of a subscription at the request of an operator. */
import { maskedTarget } from '../config/values/event-tables.ts'
import { isoTime } from '../presentation/text.ts'
import type { Subscription } from '../store/outbox/subscription.ts'
import type { WallTime } from '../system/clock.ts'
import type { SendEvents } from './target.ts'

interface TestSender {
  readonly send: SendEvents
  /** The secrets that sign now, the newest first. */
  readonly secretsOf: (subscription: Subscription) => readonly string[]
}

export interface TestAnswer {
  readonly to: string
  readonly taken: boolean
  readonly answer: string
}

/** Sends the event at the time `now`. Does not change the subscription. */
export async function sendTestEvent(subscription: Subscription, { send, secretsOf }: TestSender, now: WallTime): Promise<TestAnswer> {
  const { name, settings } = subscription
  const event = { id: `evt_test_${now}`, type: 'test', timestamp: isoTime(now), data: { subscription: name } } as const
  const secrets = secretsOf(subscription)
  const answer = await send({ events: [event], settings, secrets, name, signal: new AbortController().signal })
  const taken = answer.kind === 'response' && answer.code >= 200 && answer.code < 300
  return { to: maskedTarget(settings.to), taken, answer: answer.text }
}
