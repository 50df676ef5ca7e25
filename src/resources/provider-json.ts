/** Providers of mailboxes in JSON: in lists, and one with its table and its destinations. */
import { z } from 'zod'
import type { DestinationSettings } from '../config/options.ts'
import type { ProviderTable } from '../config/values/tables/provider-table.ts'
import type { DestinationName } from '../mail/message.ts'
import { sharedLimits } from '../queue/scheduler/provider.ts'
import { grouped } from '../presentation/text.ts'
import type { LiveProvider } from '../store/records/provider-state.ts'
import type { ProviderState } from '../store/records/saved-providers.ts'
import type { WallView } from '../system/wall-view.ts'
import { rounded, rulesJson, rulesShape, stateShape } from './destination-json.ts'
import { count, textOrNull, time, timeOrNull, type Json } from './members.ts'

/** Facts about a provider of the configuration. */
export interface ProviderFacts {
  readonly name: string
  readonly table: ProviderTable<DestinationSettings>
  /** As the queue keeps it. */
  readonly saved: ProviderState
  /** As its node has it in memory; undefined when it has none of its destinations there. */
  readonly live: LiveProvider | undefined
  /** The known ones, those with the most waiting recipients first. */
  readonly destinations: readonly { readonly destination: DestinationName; readonly waiting: number }[]
  /** Name of the node that schedules it; null without one. */
  readonly node: string | null
}

/** Destinations of the queue whose waiting mail is looked at, those with the most first. */
export const COUNTED_DESTINATIONS = 10_000

const providerShape = z
  .object({
    provider: z.string(),
    node: textOrNull,
    state: stateShape.exclude(['dead']),
    waiting: count.describe(
      `recipients that wait for its destinations; of a queue with over ${grouped(COUNTED_DESTINATIONS)} destinations, those of the ones with the most waiting mail`,
    ),
    in_flight: count.describe('deliveries to all its destinations'),
    limit: z.number().nullable().describe('of them, at once; null without a limit'),
    message_rate: z.number().nullable().describe('deliveries per minute that may start; null without a limit'),
    destinations: count.describe('known destinations of the provider'),
    largest_destinations: z.array(z.string()).describe('up to five of them with waiting mail, those with the most first'),
    suspended_by: textOrNull.describe('the operator, or the reply rule'),
    suspended_until: timeOrNull,
    suspend_reason: textOrNull,
    rules: rulesShape.describe('reply rules that apply'),
  })
  .meta({ id: 'Provider' })

export type ProviderJson = Json<typeof providerShape>

export const providersShape = z.object({ providers: z.array(providerShape), as_of: time }).meta({ id: 'Providers' })
export type ProvidersJson = Json<typeof providersShape>

export const providerDetailsShape = providerShape
  .extend({
    mx: z.array(z.string()).describe('mail exchangers, by name or suffix'),
    waiting_destinations: z
      .array(z.object({ destination: z.string(), waiting: count }))
      .describe('up to 50 destinations with waiting mail, those with the most first'),
    as_of: time,
  })
  .meta({ id: 'ProviderDetails' })
export type ProviderDetailsJson = Json<typeof providerDetailsShape>

const [LARGEST, LISTED] = [5, 50]

const waitingIn = ({ destinations }: ProviderFacts) => destinations.filter(({ waiting }) => waiting > 0)

export function providerJson(facts: ProviderFacts, wall: WallView): ProviderJson {
  const { name, table, saved, live, destinations, node } = facts
  const { suspension, effects } = live ?? saved
  const { limit, messageRate } = live ?? fromTable(table, saved)
  return {
    provider: name,
    node,
    state: suspension !== null ? 'suspended' : live?.isThrottled === true || effects.length > 0 ? 'throttled' : 'open',
    waiting: destinations.reduce((sum, { waiting }) => sum + waiting, 0),
    in_flight: live?.inFlight ?? 0,
    limit,
    message_rate: rounded(messageRate),
    destinations: destinations.length,
    largest_destinations: waitingIn(facts)
      .slice(0, LARGEST)
      .map(({ destination }) => destination),
    suspended_by: suspension?.by ?? null,
    suspended_until: wall.secondsOrNull(suspension?.until),
    suspend_reason: suspension?.reason ?? null,
    rules: rulesJson(effects, wall),
  }
}

function fromTable(table: ProviderFacts['table'], { effects }: ProviderState): Pick<LiveProvider, 'limit' | 'messageRate'> {
  const { concurrency: limit, rate: messageRate } = sharedLimits(table, effects, null)
  return { limit, messageRate }
}

export const providerDetailsJson = (facts: ProviderFacts, asOf: number, wall: WallView): ProviderDetailsJson => ({
  ...providerJson(facts, wall),
  mx: facts.table.mx,
  waiting_destinations: waitingIn(facts).slice(0, LISTED),
  as_of: asOf,
})
