/**
 * Mail that is charged to quotas, by quota, key, span, slice of the span, and the owner that has accepted it. An owner changes rows of its own alone,
 * so that nodes do not wait for each other: the sum of all rows of a slice is its use. It may be below 0 in the rows of one owner.
 */
import type { OwnerId } from '../../mail/message.ts'
import type { Duration, QueueTime } from '../../system/clock.ts'
import { compare, OWNER, RecordTable, type HeldRows } from './record-table.ts'

interface SliceKey {
  readonly quota: string
  /** Login, token, sender, domain or client (shareOf, QuotaTable.key). */
  readonly key: string
  /** Span of the limit. */
  readonly span: Duration
  /** Begin of the slice. */
  readonly begin: QueueTime
}

/** Mail of one slice. */
export interface QuotaCharge extends SliceKey {
  readonly messages: number
  readonly recipients: number
  /** Time from which the slice is in no window of the span. */
  readonly until: QueueTime
}

type QuotaRow = QuotaCharge & { readonly node: OwnerId }

/** A key with its use. */
export interface QuotaUse {
  readonly quota: string
  readonly key: string
}

const COLUMNS = {
  quota: 'text',
  key: 'text',
  span: 'number',
  begin: 'number',
  node: 'number',
  messages: 'number',
  recipients: 'number',
  until: 'number',
} as const satisfies Record<keyof QuotaRow, string>
const TABLE = new RecordTable<QuotaRow, 'quota' | 'key' | 'span' | 'begin' | 'node'>('quota_count', COLUMNS, {
  key: ['quota', 'key', 'span', 'begin', 'node'],
})

// --- statements

// In the order of the keys, so that two sessions of an owner do not wait for each other.
const CHARGE = `
  insert into quota_count (quota, key, span, begin, node, messages, recipients, until)
  select cast(c.value ->> 0 as text), cast(c.value ->> 1 as text), cast(c.value ->> 2 as bigint), cast(c.value ->> 3 as bigint),
    cast(:owner as bigint), cast(c.value ->> 4 as bigint), cast(c.value ->> 5 as bigint), cast(c.value ->> 6 as bigint)
  from json_each(:rows) as c where true
  on conflict (quota, key, span, begin, node) do update set
    messages = quota_count.messages + excluded.messages, recipients = quota_count.recipients + excluded.recipients
  returning quota`
const SUMS = `
  select quota, key, span, begin, cast(sum(messages) as bigint) as messages, cast(sum(recipients) as bigint) as recipients, max(until) as until
  from quota_count
  where quota = :quota and key = :key and until > :now group by quota, key, span, begin order by span, begin`
const FULLEST = `
  select quota, key from quota_count where quota = :quota and until > :now group by quota, key
  order by sum(messages) desc, key limit :limit`
const ANY = 'select 1 as one from quota_count limit 1'

// --- calls

const byKey = (a: SliceKey, b: SliceKey): number =>
  compare(a.quota, b.quota) || compare(a.key, b.key) || a.span - b.span || a.begin - b.begin

/** One charge for each slice, in the order of the keys. */
function summedCharges(charges: readonly QuotaCharge[]): readonly QuotaCharge[] {
  const sums = new Map<string, QuotaCharge>()
  for (const one of charges) {
    const id = JSON.stringify([one.quota, one.key, one.span, one.begin])
    const sum = sums.get(id)
    sums.set(id, sum === undefined ? one : { ...sum, messages: sum.messages + one.messages, recipients: sum.recipients + one.recipients })
  }
  return [...sums.values()].toSorted(byKey)
}

const charged = (rows: readonly object[]): readonly QuotaCharge[] => rows as readonly QuotaCharge[]

const heldRows = (all: HeldRows): readonly QuotaRow[] => [...TABLE.heldIn(all).values()]

/** Charges mail. Runs in the transaction that queues it, too. */
export const CHARGE_QUOTAS = TABLE.once<[charges: readonly QuotaCharge[]]>({
  statements: (charges) => {
    const rows = summedCharges(charges).map(({ quota, key, span, begin, messages, recipients, until }) => [
      quota,
      key,
      span,
      begin,
      messages,
      recipients,
      until,
    ])
    return [{ text: CHARGE, values: { owner: OWNER, rows: JSON.stringify(rows) } }]
  },
  held: (all, charges) => {
    const rows = TABLE.heldIn(all)
    for (const one of summedCharges(charges)) {
      const row = { ...one, node: all.caller.owner }
      const known = rows.get(TABLE.idOf(row))
      const { messages = 0, recipients = 0 } = known ?? {}
      rows.set(TABLE.idOf(row), { ...row, messages: row.messages + messages, recipients: row.recipients + recipients })
    }
    return true
  },
})

export const QUOTA_COUNTS = {
  /** Charges mail that is not queued: it was discarded, or is charged anew. */
  charge: CHARGE_QUOTAS,
  /** The slices of a key that count at a time, with those that lie ahead, ordered by span and begin. */
  of: TABLE.read<[use: QuotaUse, now: QueueTime], readonly QuotaCharge[]>({
    statements: ({ quota, key }, now) => [{ text: SUMS, values: { quota, key, now } }],
    answer: charged,
    held: (all, { quota, key }, now) =>
      summedCharges(
        heldRows(all)
          .filter((row) => row.quota === quota && row.key === key && row.until > now)
          .map(({ node: _node, ...row }) => row),
      ),
  }),
  /** The keys of a quota with the most messages. */
  fullest: TABLE.read<[page: { readonly quota: string; readonly now: QueueTime; readonly limit: number }], readonly QuotaUse[]>({
    statements: (page) => [{ text: FULLEST, values: page }],
    answer: (rows) => rows as readonly QuotaUse[],
    held: (all, { quota, now, limit }) => {
      const sums = new Map<string, number>()
      for (const row of heldRows(all))
        if (row.quota === quota && row.until > now) sums.set(row.key, (sums.get(row.key) ?? 0) + row.messages)
      return [...sums]
        .toSorted(([a, x], [b, y]) => y - x || compare(a, b))
        .slice(0, limit)
        .map(([key]) => ({ quota, key }))
    },
  }),
  /** True when a quota has a count. */
  any: TABLE.read<[], boolean>({
    statements: () => [{ text: ANY, values: {} }],
    answer: ({ length }) => length > 0,
    held: (all) => TABLE.heldIn(all).size > 0,
  }),
  /** Deletes the counts of a key, at all owners. */
  forget: TABLE.prune<QuotaUse>({
    sql: 'quota = :quota and key = :key',
    held: (row, { quota, key }) => row.quota === quota && row.key === key,
  }),
  /** Deletes slices that are in no window any more. */
  prune: TABLE.prune<{ readonly now: QueueTime }>({ sql: 'until <= :now', held: ({ until }, { now }) => until <= now }),
}
