/** Destinations with their queued mail and their state, as listings show them. */
import type { DestinationName } from '../mail/message.ts'
import { healthOf } from '../presentation/destination-state.ts'
import { nextEvent, type DestinationRow, type ShownProvider } from '../resources/destination-json.ts'
import type { LiveDestination } from '../store/destination-status.ts'
import type { DestinationLoad, QueueReader } from '../store/queue-reader.ts'
import type { QueueTime } from '../system/clock.ts'

export const DESTINATION_SORTS = ['waiting', 'name', 'state', 'next'] as const
export type DestinationSort = (typeof DESTINATION_SORTS)[number]

const STATES = ['dead', 'suspended', 'throttled', 'open'] as const

/** True for an open or throttled destination without mail. */
export const isIdle = (row: DestinationRow): boolean => {
  const { state } = healthOf(row)
  return (row.load?.waiting ?? 0) + (row.load?.leased ?? 0) + (row.live?.inFlight ?? 0) === 0 && (state === 'open' || state === 'throttled')
}

/** Time of the next attempt, of the probe, or of the end of the suspension; null for none. */
export function nextAt(row: DestinationRow): QueueTime | null {
  const { state, deadUntil, suspension } = healthOf(row)
  const { waiting = 0, nextDueAt = null } = row.load ?? {}
  const times = { dead_until: deadUntil, suspended_until: suspension?.until ?? null, next_due_time: nextDueAt }
  return nextEvent({ state, waiting, ...times })?.at ?? null
}

const byName = (a: DestinationRow, b: DestinationRow): number => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0)

function compared(a: DestinationRow, b: DestinationRow, sort: DestinationSort): number {
  switch (sort) {
    case 'waiting':
      return (b.load?.waiting ?? 0) - (a.load?.waiting ?? 0)
    case 'name':
      return 0
    case 'state':
      return STATES.indexOf(healthOf(a).state) - STATES.indexOf(healthOf(b).state)
    case 'next':
      return Math.sign((nextAt(a) ?? Infinity) - (nextAt(b) ?? Infinity)) || 0
  }
}

/** Destinations in an order. Equal destinations are ordered by name. */
export const sortedRows = (rows: readonly DestinationRow[], sort: DestinationSort): readonly DestinationRow[] =>
  rows.toSorted((a, b) => compared(a, b, sort) || byName(a, b))

const PAGE = 500

async function* loads(reader: QueueReader): AsyncGenerator<DestinationLoad> {
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
  const providers = await providersIn(reader)
  const members = new Map((await reader.records.providerMembers.all()).map(({ destination, provider }) => [destination, provider]))
  const providerFor = (name: string) => inMemory.get(name)?.provider ?? providers(members.get(name) ?? null)
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
): (name: DestinationName, live: LiveDestination | undefined) => Promise<ShownProvider | null> {
  let saved: ReturnType<typeof providersIn> | undefined
  return async (name, live) =>
    live?.provider ?? (await (saved ??= providersIn(reader)))(await reader.records.providerMembers.providerOf(name))
}

async function providersIn(reader: Pick<QueueReader, 'records'>): Promise<(name: string | null) => ShownProvider | null> {
  const effects = new Map((await reader.records.providers.all()).map((one) => [one.provider, one.effects]))
  return (name) => (name === null ? null : { name, effects: effects.get(name) ?? [] })
}
