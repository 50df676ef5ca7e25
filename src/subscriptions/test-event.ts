/** One event of the type `test`, sent to the target of a subscription at the request of an operator. */
import { maskedTarget } from '../config/values/tables/event-tables.ts'
import { isoTime } from '../presentation/text.ts'
import type { TestAnswerJson } from '../resources/subscription-json.ts'
import type { Subscription } from '../store/outbox/subscription.ts'
import { SECOND, type Clock } from '../system/clock.ts'
import type { SendEvents } from './target.ts'

interface TestSender {
  readonly send: SendEvents
  /** The secrets that sign now, the newest first. */
  readonly secretsOf: (subscription: Subscription) => readonly string[]
  readonly clock: Pick<Clock, 'wall' | 'monotonic'>
}

/** Does not change the subscription. */
export async function sendTestEvent(subscription: Subscription, { send, secretsOf, clock }: TestSender): Promise<TestAnswerJson> {
  const { name, settings } = subscription
  const now = clock.wall.now()
  const event = { id: `evt_test_${now}`, type: 'test', timestamp: isoTime(now), data: { subscription: name } } as const
  const secrets = secretsOf(subscription)
  const began = clock.monotonic()
  const answer = await send({ events: [event], settings, secrets, name, signal: new AbortController().signal })
  const taken = answer.kind === 'response' && answer.code >= 200 && answer.code < 300
  const took = Math.round(clock.monotonic() - began) / SECOND
  return { to: maskedTarget(settings.to), taken, answer: answer.text, time: now / SECOND, took }
}
