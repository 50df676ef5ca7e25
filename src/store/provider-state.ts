/** Providers of destinations, and the effects of reply rules on them, as the queue keeps them. They survive restarts. */
import type { RuleAction } from '../config/values/provider-table.ts'
import type { DestinationName } from '../mail/message.ts'
import type { QueueTime } from '../system/clock.ts'

/** A destination whose mail exchangers belong to a provider. */
export interface ProviderMember {
  readonly destination: DestinationName
  readonly provider: string
}

/** A reply rule that applies to the destinations of its provider. */
export interface RuleEffect {
  /** Name of the rule, for example `1`. */
  readonly rule: string
  readonly action: RuleAction
  readonly until: QueueTime
  /** The reply that caused it. */
  readonly reply: string
}

/** Saved state of a provider. */
export interface ProviderRecord {
  readonly provider: string
  readonly effects: readonly RuleEffect[]
}

/** The provider of a destination in the memory of the scheduler. */
export interface LiveProvider {
  readonly name: string
  /** Maximum number of concurrent deliveries to all its destinations; null for no limit. */
  readonly limit: number | null
  /** Deliveries in flight to all its destinations. */
  readonly inFlight: number
  /** Reply rules that apply. */
  readonly effects: readonly RuleEffect[]
}

/** Methods of QueueStore for providers. */
export interface ProviderStore {
  /** Sets the provider of a destination; null for none. A large backlog of a shared queue follows later, and is not claimed until then. */
  joinProvider(destination: DestinationName, provider: string | null): Promise<void>
  /** All destinations with a provider, by name. */
  providerMembers(): Promise<readonly ProviderMember[]>
  /**
   * Saves the effects of rules on a provider. Deletes the record when there are none. The owner of the provider is told of the record that
   * another node saved.
   */
  saveProvider(record: ProviderRecord): Promise<void>
  /** All saved states, by name. */
  providers(): Promise<readonly ProviderRecord[]>
}

/** Methods of QueueReader for providers. */
export interface ProviderReader {
  /** The provider of a destination; null for none. */
  providerOf(destination: DestinationName): Promise<string | null>
  /** All destinations with a provider, by name. */
  membersOfProviders(): Promise<readonly ProviderMember[]>
  /** All saved states, by name. */
  providerRecords(): Promise<readonly ProviderRecord[]>
}

/** Name under which a suspension by a rule is shown. */
export const ruleLabel = (provider: string, rule: string): string => `rule:${provider}.${rule}`

/** The effects that are no suspensions. */
export const withoutSuspensions = (effects: readonly RuleEffect[]): readonly RuleEffect[] =>
  effects.filter(({ action }) => action.kind !== 'suspend')

/** A saved state of a destination, as far as a suspension concerns it. */
interface Suspendable {
  readonly name: DestinationName
  readonly suspension: { readonly by: string; readonly until: QueueTime | null; readonly reason: string | null } | null
}

/**
 * Adds the suspensions of providers to the records of their destinations, where an operator has suspended none of them. `fresh` makes the
 * record of a destination without one.
 */
export function withSuspendedProviders<R extends Suspendable>(
  records: readonly R[],
  providers: readonly ProviderRecord[],
  { members, fresh }: { readonly members: () => readonly ProviderMember[]; readonly fresh: (name: DestinationName) => R },
): R[] {
  const suspensions = new Map(
    providers.flatMap(({ provider, effects }) => {
      const effect = effects.find(({ action }) => action.kind === 'suspend')
      const { rule = '', until = 0, reply = '' } = effect ?? {}
      return effect === undefined ? [] : [[provider, { by: ruleLabel(provider, rule), until, reason: reply }] as const]
    }),
  )
  if (suspensions.size === 0) return [...records]
  const byName = new Map(records.map((record) => [record.name, record]))
  for (const { destination: name, provider } of members()) {
    const suspension = suspensions.get(provider)
    const own = byName.get(name) ?? fresh(name)
    if (suspension !== undefined && own.suspension === null) byName.set(name, { ...own, suspension })
  }
  return [...byName.values()]
}
