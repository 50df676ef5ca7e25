/** Queries for the suppression list. */
import { z } from 'zod'
import { HTTP_PROBLEMS, Problem } from '../../http/problem-details.ts'
import { domainOf } from '../../mail/address.ts'
import { jsonLines, maskControls } from '../../presentation/text.ts'
import {
  suppressionJson,
  type SuppressionJson,
  type SuppressionPageJson,
  type SuppressionRemovalJson,
  type SuppressionStopsJson,
} from '../../resources/records/suppression-json.ts'
import {
  ALL_SENDERS,
  FIRST_KEY,
  isListed,
  type SuppressionFilter,
  type SuppressionKey,
  type SuppressionReason,
  type Suppression,
} from '../../store/records/suppression-entry.ts'
import type { Duration } from '../../system/clock.ts'
import { CURSOR_PROBLEM } from '../cursor.ts'
import type { KeptRecords } from './kept-records.ts'

export interface SuppressionQuery {
  readonly scope?: string | undefined
  readonly address?: string | undefined
  readonly reason?: SuppressionReason | undefined
  readonly destination?: string | undefined
  readonly since?: Duration | undefined
}

const PAGE = 500

export const suppressionFilter = (
  { scope, address, reason, destination, since }: SuppressionQuery,
  { clock }: Pick<KeptRecords, 'clock'>,
): SuppressionFilter => ({
  scope: scope ?? null,
  address: address ?? null,
  reason: reason ?? null,
  destination: destination ?? null,
  since: since === undefined ? null : clock.now() - since,
})

const cursorShape = z.tuple([z.string(), z.string()])

/** The last entry of the former page. Throws Problem for text that is no cursor. */
function keyIn(cursor: string | undefined): SuppressionKey {
  if (cursor === undefined) return FIRST_KEY
  try {
    const [scope, address] = cursorShape.parse(JSON.parse(Buffer.from(cursor, 'base64url').toString()))
    return { scope, address }
  } catch (cause) {
    throw new Problem(CURSOR_PROBLEM, 'expected `next` of the former page', { cause })
  }
}

const jsonOf = (entries: readonly Suppression[], { clock }: Pick<KeptRecords, 'clock'>): readonly SuppressionJson[] => {
  const at = { now: clock.now(), wall: clock.wall }
  return entries.map((one) => suppressionJson(one, at))
}

/** One page of the entries that have not ended, ordered by scope and address. */
export async function suppressionPage(
  records: KeptRecords,
  { limit, after, ...query }: SuppressionQuery & { readonly limit: number; readonly after?: string | undefined },
): Promise<SuppressionPageJson> {
  const { reader, clock } = records
  const page = { ...suppressionFilter(query, records), now: clock.now(), after: keyIn(after), limit: limit + 1 }
  const found = await reader.records.suppressions.page(page)
  const shown = found.slice(0, limit)
  const last = found.length > limit ? shown.at(-1) : undefined
  const next = last === undefined ? null : Buffer.from(JSON.stringify([last.scope, last.address])).toString('base64url')
  return { entries: jsonOf(shown, records), next }
}

/** All entries that match, a page at a time. */
export async function* suppressions(records: KeptRecords, query: SuppressionQuery): AsyncGenerator<readonly SuppressionJson[]> {
  const { reader, clock } = records
  const filter = { ...suppressionFilter(query, records), now: clock.now(), limit: PAGE }
  for (let after = FIRST_KEY; ;) {
    const entries = await reader.records.suppressions.page({ ...filter, after })
    yield jsonOf(entries, records)
    if (entries.length < PAGE) return
    after = entries.at(-1) ?? after
  }
}

export async function* suppressionLines(records: KeptRecords, query: SuppressionQuery): AsyncGenerator<Uint8Array | string> {
  for await (const entries of suppressions(records, query)) yield jsonLines(entries)
}

/** The entries of an address and of its `@domain`, the former first. */
async function entriesOf({ reader }: Pick<KeptRecords, 'reader'>, address: string): Promise<readonly Suppression[]> {
  const domain = `@${domainOf(address)}`
  const names = address === domain ? [address] : [address, domain]
  return (await Promise.all(names.map((one) => reader.records.suppressions.ofAddress(one)))).flat()
}

/** The entries that concern an address, in all scopes, also those that have ended or only count refusals. */
export const suppressionsOf = async (records: KeptRecords, address: string): Promise<{ readonly entries: readonly SuppressionJson[] }> => ({
  entries: jsonOf(await entriesOf(records, address), records),
})

/** The entry with a key. Throws Problem for none. */
export async function suppressionWith(records: KeptRecords, { scope, address }: SuppressionKey): Promise<SuppressionJson> {
  const found = await records.reader.records.suppressions.of(scope, address)
  const [entry] = jsonOf(found === undefined ? [] : [found], records)
  if (entry !== undefined) return entry
  throw new Problem(HTTP_PROBLEMS.unknown, `${maskControls(address)} is not on the suppression list of ${maskControls(scope)}`)
}

/** The other entries that refuse mail to the address of an entry, or to its domain, from senders that the entry concerns. */
export async function otherEntries(records: KeptRecords, { scope, address }: SuppressionKey): Promise<readonly SuppressionJson[]> {
  const now = records.clock.now()
  const concern = (other: SuppressionKey): boolean => scope === ALL_SENDERS || other.scope === ALL_SENDERS || other.scope === scope
  const others = (await entriesOf(records, address)).filter(
    (one) => isListed(one, now) && concern(one) && (one.scope !== scope || one.address !== address),
  )
  return jsonOf(others, records)
}

export const suppressionStops = async ({ reader, clock }: KeptRecords): Promise<SuppressionStopsJson> => ({
  stops: (await reader.records.suppressionStops.all()).map(({ scope, at }) => ({ scope, time: clock.wall.seconds(at) })),
})

export const suppressionRemoval = (
  { count, first }: { readonly count: number; readonly first: readonly Suppression[] },
  records: Pick<KeptRecords, 'clock'>,
): SuppressionRemovalJson => ({ removed: count, entries: jsonOf(first, records) })
