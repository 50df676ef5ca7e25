/** Queries for the use of quotas. */
import type { QuotaConfig } from '../../queue/intake/quotas.ts'
import { countedBy, longestHold, type CountedQuota } from '../../queue/intake/quotas.ts'
import { firstRoom, plannedAfter, usedAt, type Amounts, type Slices } from '../../queue/intake/quota-window.ts'
import { quotaUseJson, type QuotaUseJson, type QuotaUsesJson } from '../../resources/records/quota-json.ts'
import type { KeptRecords } from './kept-records.ts'

interface QuotaQuery {
  /** Name of a quota; all when absent. */
  readonly quota?: string | undefined
  readonly limit: number
}

const ONE: Amounts = { messages: 1, recipients: 1 }

/** The fullest limits of the keys with the most messages. */
export async function quotaUses(
  records: KeptRecords,
  { quota: tables }: QuotaConfig,
  { quota, limit }: QuotaQuery,
): Promise<QuotaUsesJson> {
  const { reader, clock } = records
  const now = clock.now()
  const wanted = [...tables.values()].filter(({ name }) => quota === undefined || name === quota)
  const uses = await Promise.all(
    wanted.map(async (table) => {
      const keys = await reader.records.quotaCounts.fullest({ quota: table.name, now, limit })
      const counted = keys.flatMap(({ key }) => countedBy(table, key) ?? [])
      return (await Promise.all(counted.map((one) => usesOf(records, one)))).flat()
    }),
  )
  return { uses: uses.flat().toSorted(byFullness).slice(0, limit) }
}

/** The limits of one key. */
export async function quotaUsesOf(records: KeptRecords, { quota: tables }: QuotaConfig, key: string): Promise<QuotaUsesJson> {
  const counted = [...tables.values()].flatMap((table) => countedBy(table, key) ?? [])
  const uses = await Promise.all(counted.map((one) => usesOf(records, one)))
  return { uses: uses.flat().filter(({ used, planned }) => used + planned > 0) }
}

async function usesOf({ reader, clock }: KeptRecords, counted: CountedQuota): Promise<readonly QuotaUseJson[]> {
  const now = clock.now()
  const { table, key, limits } = counted
  const charges = await reader.records.quotaCounts.of(counted, now)
  return limits.map((limit) => {
    const slices: Slices = new Map(charges.flatMap((one) => (one.span === limit.span ? [[one.begin, one] as const] : [])))
    const at = firstRoom(slices, limit, ONE, now)
    const [used, planned] = [usedAt(slices, limit, now), plannedAfter(slices, limit, now)]
    return quotaUseJson(
      { table, key, limit, used, planned, roomAt: at === now ? null : at, refuses: at - now > longestHold(table) },
      clock.wall,
    )
  })
}

const byFullness = (a: QuotaUseJson, b: QuotaUseJson): number =>
  b.used / b.maximum - a.used / a.maximum || b.planned - a.planned || (a.key < b.key ? -1 : Number(a.key > b.key))
