/** The number of failed attempts at which the retries of a recipient end. Pure. */
import type { Settings } from '../../../config/destination-settings.ts'
import type { Message } from '../../../mail/message.ts'

interface AttemptLimit {
  /** Steps of the retry schedule; see Progress. */
  readonly steps: number
  /** The limit as its parameter: `maximal_delivery_attempts = 3`. */
  readonly rule: string
  /** True for the limit that the client has named for the message. */
  readonly isOwn: boolean
}

/** The smaller one of the limits of the destination and of the message; null without any. */
export function attemptLimit(
  { maximal_delivery_attempts: general }: Pick<Settings, 'maximal_delivery_attempts'>,
  { maxAttempts: own }: Pick<Message, 'maxAttempts'>,
): AttemptLimit | null {
  if (own !== undefined && (general === 0 || own < general)) return { steps: own, rule: `maximum_attempts = ${own}`, isOwn: true }
  return general === 0 ? null : { steps: general, rule: `maximal_delivery_attempts = ${general}`, isOwn: false }
}
