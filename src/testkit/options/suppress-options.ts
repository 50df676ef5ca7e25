/** Entries that a world puts on the suppression list. */
import { suppressedAddress, suppressionScope } from '../../suppression/import-lines.ts'
import type { RequestedSuppression } from '../../suppression/suppression-changes.ts'
import { toDuration, type Time } from './time.ts'

/** Options of `world.suppress`. */
export interface SuppressOptions {
  /** Sender domain; `*`, which is the default, for all. */
  readonly scope?: string
  /** `manual` when absent. */
  readonly reason?: 'complaint' | 'manual' | 'import' | 'unsubscribe'
  /** Text that the refusal quotes. */
  readonly text?: string
  /** Time after which the entry ends; never when absent. */
  readonly for?: Time
}

/** Throws a TypeError for text that is no address, and for a scope that is no domain. */
export function suppressionOf(
  given: string,
  { scope: of = '*', reason = 'manual', text, for: time }: SuppressOptions,
): RequestedSuppression {
  const [address, scope] = [suppressedAddress(given), suppressionScope(of)]
  if (address === undefined) throw new TypeError(`suppress expects an address, or @domain, got ${JSON.stringify(given)}`)
  if (scope === undefined) throw new TypeError(`scope expects * or a sender domain, got ${JSON.stringify(of)}`)
  return { scope, address, reason, text: text ?? null, duration: time === undefined ? null : toDuration(time) }
}
