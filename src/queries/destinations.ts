/** Queries for destinations: lists, one destination, and the causes for which its mail waits. */
import { NONE_QUEUED, waitingAt } from '../store/destination-status.ts'
import { globalNameOf, type SettingName } from '../config/destination-settings.ts'
import {
  destinationDetailsJson,
  destinationJson,
  type DestinationDetails,
  type DestinationDetailsJson,
  type DestinationJson,
  type DestinationPageJson,
} from '../resources/destination-json.ts'
import { queuedIn } from '../queue/queue-status.ts'
import { busyDestinations } from '../store/busy-destinations.ts'
import { destinationRow, destinationRows, providerFinder } from './destination-list.ts'
import { jsonLines } from '../presentation/text.ts'
import { HTTP_PROBLEMS, Problem, type ProblemKind } from '../http/problem-details.ts'
import type { DestinationName } from '../mail/message.ts'
import { maskControls } from '../mail/smtp-reply.ts'
import { withALabels } from '../mail/address.ts'
import { matchesPattern } from '../patterns/filter-pattern.ts'
import { cursorPosition, cursorText } from './cursor.ts'
import { maySee } from './message-query.ts'
import { asOf, type QueueView, type Viewer, type Visible } from './queue-view.ts'

export const UNKNOWN_DESTINATION: ProblemKind = {
  slug: 'unknown-destination',
  status: 404,
  title: 'Unknown destination',
  about: 'The destination has no queued mail and no recorded state, or the token may not see it. `GET /destinations` has all names.',
}

interface DestinationQuery {
  readonly order: 'waiting' | 'name'
  readonly name?: string | undefined
  readonly limit: number
  readonly after?: string | undefined
}

/** Throws Problem for a destination that the client may not see. */
export function assertVisible(name: DestinationName, visible: Visible): void {
  if (maySee(visible, name)) return
  throw new Problem(HTTP_PROBLEMS.notPermitted, `the token is limited to the destinations ${visible ?? ''}`)
}

/** True for a destination that matches `pattern` and that the client may see. */
const isShown = (name: DestinationName, pattern: string | undefined, visible: Visible): boolean =>
  maySee(visible, name) && (pattern === undefined || matchesPattern(withALabels(pattern), name))

/** All destinations as the lines of `deferd destination list --json`. */
export async function* destinationLines(
  view: QueueView,
  { name: pattern }: Pick<DestinationQuery, 'name'>,
  { visible, signal }: Viewer,
): AsyncGenerator<Uint8Array> {
  const nodeOf = await view.live.owners()
  for await (const row of destinationRows(view.reader, await view.live.destinations())) {
    if (signal.aborted) return
    if (isShown(row.name, pattern, visible)) yield jsonLines([destinationJson(row, nodeOf(row.name), view.clock.wall)])
  }
}

export async function destinationPage(
  view: QueueView,
  { limit, after, order, name: pattern }: DestinationQuery,
  { visible, signal }: Viewer,
): Promise<DestinationPageJson> {
  const conditions = ['destinations', order, pattern, visible]
  const [from = 0] = after === undefined ? [] : cursorPosition(after, conditions)
  const begin = from ?? 0
  const shown = (one: DestinationName): boolean => isShown(one, pattern, visible)
  const isAll = visible === null && pattern === undefined
  const names = await namesOf(view, { order, most: begin + limit + 1, isAll, shown, signal })
  const destinations = await namedDestinations(view, names.slice(begin, begin + limit))
  const next = names.length > begin + limit ? cursorText([begin + limit], conditions) : null
  return { destinations, next, as_of: asOf(view) }
}

/** The destinations of these names, in their order. */
export async function namedDestinations(view: QueueView, asked: readonly DestinationName[]): Promise<DestinationJson[]> {
  const nodeOf = await view.live.owners()
  const live = new Map((await view.live.named(asked)).map((one) => [one.destination, one]))
  const records = new Map((await view.reader.destinationRecords()).map((record) => [record.name, record]))
  const loads = await Promise.all(asked.map((one) => view.reader.destinationLoad(one)))
  const providerOf = providerFinder(view.reader)
  const providers = await Promise.all(asked.map((one) => providerOf(one, live.get(one))))
  return asked.flatMap((name, n): DestinationJson[] => {
    const load = loads[n]
    const row = { name, record: records.get(name), live: live.get(name), provider: providers[n] ?? null }
    return load === undefined ? [] : [destinationJson({ ...row, load }, nodeOf(name), view.clock.wall)]
  })
}

interface NameQuery {
  readonly order: DestinationQuery['order']
  readonly most: number
  /** True when no name is filtered out. */
  readonly isAll: boolean
  readonly shown: (name: DestinationName) => boolean
  readonly signal: AbortSignal
}

/** The first names in the chosen order. */
async function namesOf(view: QueueView, { order, most, isAll, shown, signal }: NameQuery): Promise<readonly DestinationName[]> {
  const names = new Set<DestinationName>()
  if (order === 'waiting') {
    for (const destination of await namesByMail(view, isAll ? most : MOST_NAMES)) {
      if (names.size === most) break
      if (shown(destination)) names.add(destination)
    }
  }
  if (names.size === most) return [...names]
  for await (const name of knownDestinations(view)) {
    if (signal.aborted || names.size === most) break
    if (shown(name)) names.add(name)
  }
  return [...names]
}

/** Destinations with waiting recipients, in the store and in memory, the largest first. */
async function namesByMail(view: QueueView, most: number): Promise<readonly DestinationName[]> {
  const stored = queuedIn(await view.tally(most))
  const live = new Map((await view.live.brief()).destinations.map((one) => [one.destination, one]))
  const busy = [...live.values()].filter(({ waiting }) => waiting > 0).map(({ destination }) => destination)
  const waiting = (name: DestinationName): number => waitingAt(stored.get(name) ?? NONE_QUEUED, live.get(name))
  return [...new Set([...stored.keys(), ...busy])].filter((name) => waiting(name) > 0).toSorted((a, b) => waiting(b) - waiting(a))
}

/** Names of all destinations in the order of `destinationRows`: those without mail, which may be named again, are last. */
async function* knownDestinations({ reader, live }: QueueView): AsyncGenerator<DestinationName> {
  yield* busyDestinations(reader)
  for (const { name } of await reader.destinationRecords()) yield name
  for (const { destination } of await live.destinations()) yield destination
}

/** Maximum number of destinations that are ordered by their waiting mail; further ones follow by name. */
const MOST_NAMES = 10_000

/** Settings of a destination as they are written, with the tables that set them: its own, or that of its provider. */
function settingsOf({ policies, loaded }: QueueView, name: DestinationName): DestinationDetails['settings'] {
  const { settings, table, provider, origins } = policies().for(name)
  const { written, writtenTables, writtenProviders } = loaded()
  const own = [...writtenTables].find(([heading]) => heading.toLowerCase() === table)?.[1]
  const shared = provider === null ? undefined : writtenProviders.get(provider)
  const names = Object.keys(settings) as SettingName[]
  const texts = new Map(names.map((one) => [one, own?.get(one) ?? shared?.get(one) ?? written.get(globalNameOf(one)) ?? '']))
  // It is at most maximal_queue_lifetime, which another table may set.
  if (settings.bounce_queue_lifetime === settings.maximal_queue_lifetime)
    texts.set('bounce_queue_lifetime', texts.get('maximal_queue_lifetime') ?? '')
  return { table, values: Object.fromEntries(texts), origins: Object.fromEntries(origins) }
}

/** One destination. Throws Problem when nothing is known of it. */
export async function destinationDetails(view: QueueView, asked: string, visible: Visible): Promise<DestinationDetailsJson> {
  const name = asked.toLowerCase()
  assertVisible(name, visible)
  const known = await view.live.destination(name)
  const row = await destinationRow(view.reader, name, known?.live)
  if (row === undefined)
    throw new Problem(UNKNOWN_DESTINATION, `no queued mail and no recorded state for ${maskControls(asked)}`, {
      hint: 'GET /destinations has all names',
    })
  const nodeOf = await view.live.owners()
  const scheduled = await view.reader.scheduledAt(name)
  const facts = { row, node: nodeOf(name), scheduled, recent: known?.recent, settings: settingsOf(view, name), asOf: asOf(view) }
  return destinationDetailsJson(facts, view.clock.wall)
}
