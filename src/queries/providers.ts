/** Queries for providers of mailboxes: all of them, and one. */
import type { Config } from '../config/options.ts'
import { nameOfProvider } from '../config/provider-directory.ts'
import { Problem, type ProblemKind } from '../http/problem-details.ts'
import type { DestinationName } from '../mail/message.ts'
import { maskControls } from '../mail/smtp-reply.ts'
import {
  COUNTED_DESTINATIONS,
  providerDetailsJson,
  providerJson,
  type ProviderDetailsJson,
  type ProviderFacts,
  type ProviderJson,
  type ProvidersJson,
} from '../resources/provider-json.ts'
import { queuedIn } from '../queue/queue-status.ts'
import { NONE_QUEUED, waitingAt, type QueuedCount } from '../store/destination-status.ts'
import type { DestinationJson } from '../resources/destination-json.ts'
import type { LiveDestination } from '../queue/scheduler/destination.ts'
import type { QueueReader } from '../store/queue-reader.ts'
import { savedProviders } from '../store/records/saved-providers.ts'
import { namedDestinations } from './destinations.ts'
import { asOf, type QueueView } from './queue-view.ts'

export const UNKNOWN_PROVIDER: ProblemKind = {
  slug: 'unknown-provider',
  status: 404,
  title: 'Unknown provider',
  about: 'The configuration has no table `[provider.NAME]` of this name. `GET /providers` has all names.',
}

type CountedDestination = ProviderFacts['destinations'][number]

const bySize = (a: CountedDestination, b: CountedDestination): number => b.waiting - a.waiting

interface ProviderSources {
  readonly tables: Config['provider']
  readonly reader: Pick<QueueReader, 'records'>
  /** Destinations with queued mail. */
  readonly queued: ReadonlyMap<DestinationName, QueuedCount>
  /** Destinations in the memory of all nodes. */
  readonly live: readonly LiveDestination[]
  readonly nodeOf: (name: DestinationName) => string | null
}

/** Facts about the providers of the configuration, by name. */
export async function providerFacts({ tables, reader, queued, live, nodeOf }: ProviderSources): Promise<readonly ProviderFacts[]> {
  const saved = await savedProviders(reader.records)
  const members = Map.groupBy(await reader.records.providerMembers.all(), ({ provider }) => provider)
  const states = new Map(live.map((one) => [one.destination, one]))
  const inMemory = new Map(live.flatMap(({ provider }) => (provider === null ? [] : [[provider.name, provider] as const])))
  return [...tables]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, table]) => ({
      name,
      table,
      saved: saved(name),
      live: inMemory.get(name),
      destinations: (members.get(name) ?? [])
        .map(({ destination }) => ({ destination, waiting: waitingAt(queued.get(destination) ?? NONE_QUEUED, states.get(destination)) }))
        .toSorted(bySize),
      node: nodeOf(nameOfProvider(name)),
    }))
}

const factsOf = async (view: QueueView): Promise<readonly ProviderFacts[]> =>
  providerFacts({
    tables: view.loaded().config.provider,
    reader: view.reader,
    queued: queuedIn(await view.tally(COUNTED_DESTINATIONS)),
    live: await view.live.destinations(),
    nodeOf: await view.live.owners(),
  })

export const providerList = async (view: QueueView): Promise<ProvidersJson> => ({
  providers: (await factsOf(view)).map((facts) => providerJson(facts, view.clock.wall)),
  as_of: asOf(view),
})

/** The name in lower case. Throws Problem for a provider that the configuration does not have. */
export function providerName({ loaded }: Pick<QueueView, 'loaded'>, asked: string): string {
  const name = asked.toLowerCase()
  if (!loaded().config.provider.has(name)) throw new Problem(UNKNOWN_PROVIDER, unknownProvider(asked, loaded().config))
  return name
}

export const unknownProvider = (asked: string, { provider }: Pick<Config, 'provider'>): string =>
  `there is no table [provider.${maskControls(asked)}]: ${provider.size === 0 ? 'the configuration has no table of a provider' : `known are ${[...provider.keys()].toSorted().join(', ')}`}`

/** Facts about one provider. Throws Problem for a provider that the configuration does not have. */
async function factsFor(view: QueueView, asked: string): Promise<ProviderFacts> {
  const name = providerName(view, asked)
  const facts = (await factsOf(view)).find((one) => one.name === name)
  if (facts === undefined) throw new Problem(UNKNOWN_PROVIDER, unknownProvider(asked, view.loaded().config))
  return facts
}

/** One provider. Throws Problem for a provider that the configuration does not have. */
export const providerDetails = async (view: QueueView, asked: string): Promise<ProviderDetailsJson> =>
  providerDetailsJson(await factsFor(view, asked), asOf(view), view.clock.wall)

/** Known destinations up to which a provider is shown with all their names. */
const FEW = 3

export interface FewDestinations {
  /** All known destinations of a provider that has few, those with the most waiting mail first; null for more. */
  readonly names: readonly DestinationName[] | null
}

const fewOf = ({ destinations }: ProviderFacts): FewDestinations => ({
  names: destinations.length > FEW ? null : destinations.map(({ destination }) => destination),
})

/** The providers with the names of few destinations. */
export const namedProviders = async (view: QueueView): Promise<readonly (ProviderJson & FewDestinations)[]> =>
  (await factsOf(view)).map((facts) => ({ ...providerJson(facts, view.clock.wall), ...fewOf(facts) }))

export interface ShownProvider {
  readonly provider: ProviderDetailsJson & FewDestinations
  /** Those with the most waiting mail. */
  readonly destinations: readonly DestinationJson[]
}

/** A provider with its destinations, whose mail is counted now: the sum is that of the rows. */
export async function shownProvider(view: QueueView, asked: string): Promise<ShownProvider> {
  const known = await factsFor(view, asked)
  const detailsOf = (facts: ProviderFacts) => providerDetailsJson(facts, asOf(view), view.clock.wall)
  const names = detailsOf(known).waiting_destinations.map(({ destination }) => destination)
  const rows = new Map((await namedDestinations(view, names)).map((one) => [one.destination, one]))
  const destinations = known.destinations
    .map(({ destination, waiting }) => ({ destination, waiting: rows.get(destination)?.waiting ?? waiting }))
    .toSorted(bySize)
  const provider = detailsOf({ ...known, destinations })
  return {
    provider: { ...provider, ...fewOf({ ...known, destinations }) },
    destinations: provider.waiting_destinations.flatMap(({ destination }) => rows.get(destination) ?? []),
  }
}
