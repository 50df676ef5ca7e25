/** Providers of destinations, and the effects of reply rules on them, as the queue keeps them. They survive restarts. */
import type { RuleAction } from '../../config/values/provider-table.ts'
import type { DestinationName } from '../../mail/message.ts'
import type { QueueTime } from '../../system/clock.ts'
import { answered, RecordTable } from './record-table.ts'

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

const memberTable = new RecordTable<ProviderMember, 'destination'>(
  'provider_member',
  { destination: 'text', provider: 'text' },
  { key: ['destination'] },
)

/** The provider of a destination is set by QueueStore.joinProvider. */
export const PROVIDER_MEMBERS = {
  /** All destinations with a provider, by name. */
  all: memberTable.all({ sql: 'provider is not null', held: () => true }),
  /** The provider of a destination; null for none. */
  providerOf: memberTable.read<[destination: DestinationName], string | null>({
    statements: (destination) => [
      { text: 'select provider from provider_member where destination = :destination', values: { destination } },
    ],
    answer: (rows) => (rows as readonly Partial<ProviderMember>[])[0]?.provider ?? null,
    held: (rows, destination) => memberTable.heldIn(rows).get(memberTable.idOf({ destination }))?.provider ?? null,
  }),
}

const [joinMember, leaveMember] = [memberTable.put(), memberTable.remove()]

/** QueueStore.joinProvider, on a queue without nodes. */
export const joinProvider = memberTable.write<[destination: DestinationName, provider: string | null]>({
  statements: (destination, provider) =>
    provider === null ? leaveMember.statements(destination) : joinMember.statements({ destination, provider }),
  held: (rows, destination, provider) => {
    if (provider === null) leaveMember.held(rows, destination)
    else joinMember.held(rows, { destination, provider })
  },
})

const states = new RecordTable<{ readonly name: string; readonly effects: readonly RuleEffect[] }, 'name'>(
  'provider',
  { name: 'text', effects: 'json' },
  { key: ['name'] },
)
const [putState, removeState] = [states.put(), states.remove()]

export const PROVIDERS = {
  /**
   * Saves the effects of rules on a provider. Deletes the record when there are none. The owner of the provider is told of the record that
   * another node saved.
   */
  save: {
    ...states.write<[record: ProviderRecord]>({
      statements: ({ provider: name, effects }) =>
        effects.length === 0 ? removeState.statements(name) : putState.statements({ name, effects }),
      held: (rows, { provider: name, effects }) => {
        if (effects.length === 0) removeState.held(rows, name)
        else putState.held(rows, { name, effects })
      },
    }),
    key: ({ provider }: ProviderRecord) => `provider ${provider}`,
    tells: 'providers' as const,
  },
  /** All saved states, by name. */
  all: answered(states.all(), (all): readonly ProviderRecord[] => all.map(({ name, effects }) => ({ provider: name, effects }))),
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
