/** Destinations with their queued mail and their state, as listings show them. */
import type { DestinationName } from '../mail/message.ts'
import { nextEvent, type DestinationJson, type DestinationRow } from '../resources/destination-json.ts'
import type { LiveDestination } from '../queue/scheduler/destination.ts'
import { isClosed } from '../store/destination-status.ts'
import type { DestinationLoad, QueueReader } from '../store/queue-reader.ts'
import { savedProviders, type ProviderState } from '../store/records/saved-providers.ts'

export const DESTINATION_SORTS = ['waiting', 'name', 'state', 'next'] as const
export type DestinationSort = (typeof DESTINATION_SORTS)[number]

const STATES = ['dead', 'suspended', 'throttled', 'open'] as const

/** True for an open or throttled destination without mail. */
export const isIdle = ({ state, waiting, leased, in_flight: inFlight }: DestinationJson): boolean =>
  waiting + leased + inFlight === 0 && !isClosed({ state })

const byName = (a: DestinationJson, b: DestinationJson): number =>
  a.destination < b.destination ? -1 : a.destination > b.destination ? 1 : 0

function compared(a: DestinationJson, b: DestinationJson, sort: DestinationSort): number {
  const next = (one: DestinationJson): number => nextEvent(one)?.at ?? Infinity
  switch (sort) {
    case 'waiting':
      return b.waiting - a.waiting
    case 'name':
      return 0
    case 'state':
      return STATES.indexOf(a.state) - STATES.indexOf(b.state)
    case 'next':
      return Math.sign(next(a) - next(b)) || 0
  }
}

/** Destinations in an order. Equal destinations are ordered by name. */
export const sortedDestinations = (those: readonly DestinationJson[], sort: DestinationSort): readonly DestinationJson[] =>
  those.toSorted((a, b) => compared(a, b, sort) || byName(a, b))

const PAGE = 500

/** The queued mail of each destination, by name. */
export async function* loads(reader: QueueReader): AsyncGenerator<DestinationLoad> {
  for (let after = ''; ;) {
    const page = await reader.destinationLoads({ after, limit: PAGE })
    yield* page
    if (page.length < PAGE) return
    after = page.at(-1)?.destination ?? after
  }
}

/** Destinations with queued mail, by name; then those without mail that have a recorded state or are in the memory of the daemon. */
export async function* destinationRows(reader: QueueReader, live: readonly LiveDestination[] | null): AsyncGenerator<DestinationRow> {
  const records = new Map((await reader.destinationRecords()).map((record) => [record.name, record]))
  const inMemory = new Map((live ?? []).map((destination) => [destination.destination, destination]))
  const saved = await savedProviders(reader.records)
  const members = new Map((await reader.records.providerMembers.all()).map(({ destination, provider }) => [destination, provider]))
  const savedFor = (provider: string | undefined): ProviderState | null => (provider === undefined ? null : saved(provider))
  const providerFor = (name: string) => inMemory.get(name)?.provider ?? savedFor(members.get(name))
  for await (const load of loads(reader)) {
    const { destination: name } = load
    yield { name, load, record: records.get(name), live: inMemory.get(name), provider: providerFor(name) }
    records.delete(load.destination)
    inMemory.delete(load.destination)
  }
  for (const name of new Set([...records.keys(), ...inMemory.keys()])) {
    yield { name, load: undefined, record: records.get(name), live: inMemory.get(name), provider: providerFor(name) }
  }
}

/** The row of one destination; undefined when it has no queued mail and no recorded state, and is not in the memory of the daemon. */
export async function destinationRow(
  reader: QueueReader,
  name: DestinationName,
  live: LiveDestination | undefined,
): Promise<DestinationRow | undefined> {
  const { waiting, leased, ...rest } = await reader.destinationLoad(name)
  const load = waiting + leased === 0 ? undefined : { waiting, leased, ...rest }
  const record = (await reader.destinationRecords()).find((one) => one.name === name)
  if (load === undefined && record === undefined && live === undefined) return undefined
  return { name, load, record, live, provider: await providerFinder(reader)(name, live) }
}

/** Finds providers of destinations in memory or, for others, among the saved ones, which are read once, at the first need. */
export function providerFinder(
  reader: Pick<QueueReader, 'records'>,
): (name: DestinationName, live: LiveDestination | undefined) => Promise<ProviderState | null> {
  let saved: ReturnType<typeof savedProviders> | undefined
  return async (name, live) => {
    if (live !== undefined && live.provider !== null) return live.provider
    const provider = await reader.records.providerMembers.providerOf(name)
    return provider === null ? null : (await (saved ??= savedProviders(reader.records)))(provider)
  }
}
