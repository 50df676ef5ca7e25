/** Providers of destinations, and the effects of reply rules on them, as the queue keeps them. They survive restarts. */
import type { RuleAction } from '../../config/values/tables/provider-table.ts'
import type { DestinationName } from '../../mail/message.ts'
import type { QueueTime } from '../../system/clock.ts'
import { besideProvider, type Suspension } from './suspension.ts'
import { after, answered, given, RecordTable } from './record-table.ts'

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

/** A change of a provider that another node has saved by order of an operator: its suspension, or its effects without one. */
export type ProviderChange = ProviderRecord | ProviderSuspension

/** A suspension of a provider by an operator, as the queue keeps it. */
export interface ProviderSuspension {
  readonly provider: string
  readonly suspension: Suspension
}

/** A provider in the memory of the scheduler. */
export interface LiveProvider {
  readonly name: string
  /** By an operator, or by a rule; null when it is not suspended. */
  readonly suspension: Suspension | null
  /** True when deliveries are restricted beyond the table. */
  readonly isThrottled: boolean
  /** Deliveries per minute that may start to all its destinations; null without a limit. */
  readonly messageRate: number | null
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

type SuspensionRow = Required<Omit<Suspension, 'also'>> & { readonly provider: string }

const suspensions = new RecordTable<SuspensionRow, 'provider'>(
  'provider_suspension',
  { provider: 'text', by: 'text', until: 'number', reason: 'text' },
  { key: ['provider'] },
)
const [putSuspension, removeSuspension] = [suspensions.put(), suspensions.remove()]

const keyOf = (provider: string): string => `provider ${provider}`

const saveEffects = states.write<[record: ProviderRecord]>({
  statements: ({ provider: name, effects }) =>
    effects.length === 0 ? removeState.statements(name) : putState.statements({ name, effects }),
  held: (rows, { provider: name, effects }) => {
    if (effects.length === 0) removeState.held(rows, name)
    else putState.held(rows, { name, effects })
  },
})

/** Ends the suspension of a provider by an operator. */
const endOrder = suspensions.write<[record: ProviderRecord]>({
  statements: ({ provider }) => removeSuspension.statements(provider),
  held: (rows, { provider }) => void removeSuspension.held(rows, provider),
})

export const PROVIDERS = {
  /**
   * Saves the effects of rules on a provider. Deletes the record when there are none. The owner of the provider is told of the record that
   * another node saved.
   */
  save: { ...saveEffects, key: ({ provider }: ProviderRecord) => keyOf(provider), tells: 'providers' as const },
  /** Suspends a provider by order of an operator. Its owner is told. */
  suspend: {
    ...suspensions.write<[order: ProviderSuspension]>({
      statements: ({ provider, suspension }) => putSuspension.statements({ ...suspension, provider }),
      held: (rows, { provider, suspension }) => void putSuspension.held(rows, { ...suspension, provider }),
    }),
    key: ({ provider }: ProviderSuspension) => keyOf(provider),
    tells: 'providers' as const,
  },
  /** Ends the suspension of a provider by an operator, and saves the effects of rules that stay. Its owner is told. */
  resume: { ...after(endOrder, saveEffects), key: ({ provider }: ProviderRecord) => keyOf(provider), tells: 'providers' as const },
  /** Ends a suspension by an operator that is over at `now`. A later order stays. */
  endSuspension: suspensions.write<[provider: string, now: QueueTime]>({
    statements: (provider, now) => [
      { text: 'delete from provider_suspension where provider = :provider and "until" <= :now', values: { provider, now } },
    ],
    held: (rows, provider, now) => {
      const kept = suspensions.heldIn(rows)
      const until = kept.get(suspensions.idOf({ provider }))?.until ?? null
      if (until !== null && until <= now) kept.delete(suspensions.idOf({ provider }))
    },
  }),
  /** The suspensions by operators, by name of the provider. */
  suspensions: answered(suspensions.all(), (all): readonly ProviderSuspension[] =>
    all.map((suspension) => ({ provider: suspension.provider, suspension })),
  ),
  /** All saved effects of rules, by name. */
  all: answered(states.all(), (all): readonly ProviderRecord[] => all.map(({ name, effects }) => ({ provider: name, effects }))),
}

/** Takes the suspension of another queue, unless the provider has one. The caller tells its owner. */
export const takeSuspension = given(({ provider, suspension }: ProviderSuspension) => ({ ...suspension, provider }), suspensions.add())

/** Name under which a suspension by a rule is shown. */
export const ruleLabel = (provider: string, rule: string): string => `rule:${provider}.${rule}`

/** The effects that are no suspensions. */
export const withoutSuspensions = (effects: readonly RuleEffect[]): readonly RuleEffect[] =>
  effects.filter(({ action }) => action.kind !== 'suspend')

/** The suspension of a provider by its first rule that suspends; null without one. */
export function suspensionByRule({ provider, effects }: ProviderRecord): Suspension | null {
  const effect = effects.find(({ action }) => action.kind === 'suspend')
  return effect === undefined ? null : { by: ruleLabel(provider, effect.rule), until: effect.until, reason: effect.reply, provider }
}

/** The saved states of providers. */
interface SavedProviders {
  readonly effects: readonly ProviderRecord[]
  readonly orders: readonly ProviderSuspension[]
}

/** The suspensions of providers, by name. That by an operator comes before that by a rule. */
export const suspensionsOf = ({ effects, orders }: SavedProviders): ReadonlyMap<string, Suspension> =>
  new Map(
    [
      ...effects.map((record) => [record.provider, suspensionByRule(record)] as const),
      ...orders.map(({ provider, suspension }) => [provider, suspension] as const),
    ].flatMap(([provider, suspension]) => (suspension === null ? [] : [[provider, suspension] as const])),
  )

/** A saved state of a destination, as far as a suspension concerns it. */
interface Suspendable {
  readonly name: DestinationName
  readonly suspension: Suspension | null
}

/**
 * Adds the suspensions of providers to the records of their destinations, beside those of destinations that are suspended themselves. `fresh`
 * makes the record of a destination without one.
 */
export function withSuspendedProviders<R extends Suspendable>(
  records: readonly R[],
  saved: SavedProviders,
  { members, fresh }: { readonly members: () => readonly ProviderMember[]; readonly fresh: (name: DestinationName) => R },
): R[] {
  const suspended = suspensionsOf(saved)
  if (suspended.size === 0) return [...records]
  const byName = new Map(records.map((record) => [record.name, record]))
  for (const { destination: name, provider } of members()) {
    const suspension = suspended.get(provider)
    const own = byName.get(name) ?? fresh(name)
    if (suspension === undefined) continue
    byName.set(name, { ...own, suspension: own.suspension === null ? suspension : besideProvider(own.suspension, provider, suspension) })
  }
  return [...byName.values()]
}
