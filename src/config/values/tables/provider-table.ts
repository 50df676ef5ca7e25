/** Providers of mailboxes: groups of destinations by the names of their mail exchangers, with the limits and reply rules that they share. */
import type { Pattern } from '../../../patterns/pattern.ts'
import type { Duration } from '../../../system/clock.ts'

/** Effect of a rule on all destinations of its provider. */
export type RuleAction =
  | { readonly kind: 'suspend' }
  /** Deliveries per minute. */
  | { readonly kind: 'rate'; readonly perMinute: number }
  /** Concurrent deliveries. */
  | { readonly kind: 'concurrency'; readonly limit: number }

/** An action in the syntax of the table. */
export function actionText(action: RuleAction): string {
  switch (action.kind) {
    case 'suspend':
      return 'suspend'
    case 'rate':
      return `rate ${action.perMinute}/min`
    case 'concurrency':
      return `concurrency ${action.limit}`
  }
}

/** A rule that answers replies of the provider's hosts with an action that ends. */
export interface ReplyRule {
  /** Number of the rule in the table, from 1, or its `name`. */
  readonly name: string
  readonly pattern: Pattern
  /** Number of matching replies within `within` that cause the action. */
  readonly count: number
  readonly within: Duration
  readonly action: RuleAction
  readonly duration: Duration
}

/** A `[provider.NAME]` table, with `Settings` as its per-destination parameters. */
export interface ProviderTable<Settings> {
  /** Names of mail exchangers and, with a dot before them, suffixes of names; in lower case. */
  readonly mx: readonly string[]
  /** Maximum concurrent deliveries to all destinations; 0 for no limit. */
  readonly concurrencyLimit: number
  /** Maximum deliveries per minute to all destinations; 0 for no limit. */
  readonly messageRateLimit: number
  /** True when a message rate is learned from refusals. */
  readonly adaptiveRate: boolean
  readonly rules: readonly ReplyRule[]
  /** Per-destination parameters for destinations of the provider that have no table of their own. */
  readonly settings: Settings
}

/** Mail exchangers of providers, by name. */
type Exchangers = ReadonlyMap<string, Pick<ProviderTable<unknown>, 'mx'>>

/**
 * Name of the provider of the hosts with the best preference; null when none has a provider. When they have several, the first name, so
 * that the result does not depend on the order of the hosts.
 */
export function providerOfHosts(
  providers: Exchangers,
  all: readonly { readonly name: string; readonly preference: number }[],
): string | null {
  const best = Math.min(...all.map(({ preference }) => preference))
  const found = all.flatMap(({ name, preference }) => (preference === best ? (providerOfHost(providers, name) ?? []) : []))
  return found.toSorted()[0] ?? null
}

/** The provider with the longest name or suffix that matches a mail exchanger. */
function providerOfHost(providers: Exchangers, host: string): string | null {
  let best: { readonly provider: string; readonly length: number } | null = null
  for (const [provider, { mx }] of providers) {
    for (const one of mx) {
      const matches = one.startsWith('.') ? host.endsWith(one) : host === one
      if (matches && one.length > (best?.length ?? 0)) best = { provider, length: one.length }
    }
  }
  return best?.provider ?? null
}
