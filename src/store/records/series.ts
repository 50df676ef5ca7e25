/**
 * Counts of recipients by destination, provider, domain of the sender and node in each hour, and by cause and delay in each minute. The
 * transaction of the mail writes what it counts as one row of series_delta; `fold` adds these rows to `series`, so that the sums are exact
 * over crashes and mail takes no statement for a name. Reads add the rows that are not folded yet.
 *
 * Bounds: minutes for SERIES_MINUTES, hours for SERIES_HOURS; of a dimension the KEPT_NAMES with the most deferred recipients of the day. The
 * others are added up under the name ''. A year takes SERIES_YEAR_BYTES at most.
 */
import { DAY, HOUR, type Duration, type QueueTime } from '../../system/clock.ts'
import { RecordTable, type HeldRows } from './record-table.ts'
import { PROVIDER_MEMBERS } from './provider-state.ts'

export const SERIES_KINDS = ['accepted', 'delivered', 'deferred', 'bounced', 'expired'] as const
export type SeriesKind = (typeof SERIES_KINDS)[number]
export type SeriesCounts = Readonly<Record<SeriesKind, number>>
export const NO_COUNTS: SeriesCounts = { accepted: 0, delivered: 0, deferred: 0, bounced: 0, expired: 0 }

/** Dimensions whose names are counted by hour. `provider` is known when counts are folded, from the destination. */
export const NAMED_DIMENSIONS = ['destination', 'provider', 'sender_domain', 'node'] as const
export type NamedDimension = (typeof NAMED_DIMENSIONS)[number]
/** `cause`: deferred recipients by code; `delay`: delivered recipients by DELAY_BUCKETS. */
export type SeriesDimension = NamedDimension | 'cause' | 'delay'

interface SeriesRow extends SeriesCounts {
  readonly dimension: SeriesDimension
  readonly at: QueueTime
  readonly name: string
}

/** A row of series_delta: counts in the order of SERIES_KINDS. */
export type SeriesDelta = readonly (readonly [dimension: SeriesDimension, at: QueueTime, name: string, ...counts: number[]])[]

/** Time for which causes and delays are kept by minute. */
export const SERIES_MINUTES: Duration = 7 * DAY
export const SERIES_HOURS: Duration = 400 * DAY

/** Size of a year in SQLite when all names that are kept have mail in each hour, with the minutes of a week and names of 30 characters. */
export const SERIES_YEAR_BYTES = 200_000_000

/** Names that are kept of a dimension and day, when the day is over; CANDIDATES of a day that goes on. */
const KEPT_NAMES = 50
const KEPT_CAUSES = 20
const CANDIDATES = 500
/** Days whose minutes are still to become hours after a time without a daemon. */
export const LATE_DAYS = 14

/** Rows of series_delta that one call folds, which takes some milliseconds. */
const FOLDED = 200

/** The names of a dimension that are kept of the day that begins at `begin`: the first `most`. The others are added up. */
export interface Choice {
  readonly dimension: SeriesDimension
  readonly begin: QueueTime
  readonly most: number
}

/** The choices of today and some days before; each takes some milliseconds. */
export function choicesAt(now: QueueTime, daysBefore: number): readonly Choice[] {
  const today = Math.floor(now / DAY)
  return Array.from({ length: daysBefore + 1 }, (_, n) => today - n).flatMap((day) =>
    ([...NAMED_DIMENSIONS, 'cause'] as const).map((dimension) => ({
      dimension,
      begin: day * DAY,
      most: day === today ? CANDIDATES : dimension === 'cause' ? KEPT_CAUSES : KEPT_NAMES,
    })),
  )
}

export interface SeriesQuery {
  readonly dimension: SeriesDimension
  readonly since: QueueTime
  readonly until: QueueTime
  /** Length of an interval; intervals are counted from `since`. */
  readonly step: Duration
  /** Null for all names. */
  readonly name: string | null
}

/** Counts of a name in interval `slot`, which is counted from 0. */
export interface SeriesSlot extends SeriesCounts {
  readonly slot: number
  readonly name: string
}

const TABLE = new RecordTable<SeriesRow, 'dimension' | 'at' | 'name'>(
  'series',
  {
    dimension: 'text',
    at: 'number',
    name: 'text',
    accepted: 'number',
    delivered: 'number',
    deferred: 'number',
    bounced: 'number',
    expired: 'number',
  },
  { key: ['dimension', 'at', 'name'] },
)
const DELTAS = new RecordTable<{ readonly id: number; readonly counts: SeriesDelta }, 'id'>(
  'series_delta',
  { id: 'number', counts: 'json' },
  { key: ['id'] },
)

// --- statements

const COUNTS = SERIES_KINDS.join(', ')
const SUMS = SERIES_KINDS.map((kind) => `cast(sum(${kind}) as bigint) as ${kind}`).join(', ')
const ADDED = SERIES_KINDS.map((kind) => `${kind} = series.${kind} + excluded.${kind}`).join(', ')

const unpacked = (where: string): string => `
  select cast(c.value ->> 0 as text) as dimension, cast(c.value ->> 1 as bigint) as at, cast(c.value ->> 2 as text) as name,
    ${SERIES_KINDS.map((kind, n) => `cast(c.value ->> ${n + 3} as bigint) as ${kind}`).join(', ')}
  from series_delta, json_each(counts) as c${where}`

/** The rows that are not folded yet, also by provider. */
const pending = (where = ''): string => `
  select dimension, at, name, ${COUNTS} from (${unpacked(where)}) as one
  union all
  select 'provider', at, provider, ${COUNTS} from (${unpacked(where)}) as other
  join provider_member on provider_member.destination = other.name where dimension = 'destination' and provider is not null`

/** Its row is changed by each transaction that changes `series`, so that they are made one at a time. */
const TURN = `
  insert into series (dimension, at, name, ${COUNTS}) values ('turn', 0, '', 1, 0, 0, 0, 0)
  on conflict (dimension, at, name) do update set accepted = series.accepted + 1`
const MARK = `update series_delta set folded = 1 where id in (select id from series_delta order by id limit ${FOLDED})`
const ADD = `
  insert into series (dimension, at, name, ${COUNTS})
  select dimension, at, name, ${SUMS} from (${pending(' where folded = 1')}) as added
  group by dimension, at, name order by dimension, at, name
  on conflict (dimension, at, name) do update set ${ADDED}`
const FOLD = 'delete from series_delta where folded = 1 returning id'

const READ = `
  select (at - cast(:since as bigint)) / cast(:step as bigint) as slot, name, ${SUMS} from (
    select at, name, ${COUNTS} from series where dimension = :dimension and at >= :since and at < :until
    union all
    select at, name, ${COUNTS} from (${pending()}) as added where dimension = :dimension and at >= :since and at < :until) as counted
  where cast(:name as text) is null or name = :name
  group by 1, 2 order by 1, 2`

const OF_DAY = `name <> '' and dimension = :dimension and at >= :begin and at < :begin + ${DAY}`
/** The names of a day that are not kept. */
const SMALL = `${OF_DAY} and name in (
    select name from (
      select name, row_number() over (order by sum(deferred) desc, sum(accepted + delivered) desc, name) as place
      from series where ${OF_DAY} group by name) as ranked
    where place > :most)`
/** The minutes that become hours. */
const OLD_MINUTES = `dimension in ('cause', 'delay') and at >= :oldest and at < :minutes and at % ${HOUR} <> 0`
const HOUR_OF = `at / ${HOUR} * ${HOUR}`

/** Adds up rows under another time or name. */
const moved = (rows: string, [at, name]: readonly [at: string, name: string]): readonly string[] => [
  `insert into series (dimension, at, name, ${COUNTS})
  select dimension, ${at}, ${name}, ${SUMS} from series where ${rows} group by 1, 2, 3 order by 1, 2, 3
  on conflict (dimension, at, name) do update set ${ADDED}`,
  `delete from series where ${rows}`,
]

const CHOOSE = [TURN, ...moved(SMALL, ['at', `''`])]
const PRUNE = [
  TURN,
  ...moved(OLD_MINUTES, [HOUR_OF, 'name']),
  `delete from series where dimension in ('destination', 'provider', 'sender_domain', 'node', 'cause', 'delay') and at < :hours`,
]

function pruneValues(now: QueueTime) {
  const minutes = now - SERIES_MINUTES
  return { minutes, oldest: minutes - LATE_DAYS * DAY, hours: Math.floor((now - SERIES_HOURS) / HOUR) * HOUR }
}

// --- the queue in memory

export const plus = (one: SeriesCounts, other: SeriesCounts): SeriesCounts => ({
  accepted: one.accepted + other.accepted,
  delivered: one.delivered + other.delivered,
  deferred: one.deferred + other.deferred,
  bounced: one.bounced + other.bounced,
  expired: one.expired + other.expired,
})

const countsOf = ([accepted = 0, delivered = 0, deferred = 0, bounced = 0, expired = 0]: readonly number[]): SeriesCounts => ({
  accepted,
  delivered,
  deferred,
  bounced,
  expired,
})

function heldPending(all: HeldRows): readonly SeriesRow[] {
  const providers = new Map(PROVIDER_MEMBERS.all.held(all).map(({ destination, provider }) => [destination, provider]))
  return [...DELTAS.heldIn(all).values()].flatMap(({ counts: delta }) =>
    delta.flatMap(([dimension, at, name, ...counts]): SeriesRow[] => {
      const provider = dimension === 'destination' ? providers.get(name) : undefined
      const row = { dimension, at, name, ...countsOf(counts) }
      return provider === undefined ? [row] : [row, { ...row, dimension: 'provider', name: provider }]
    }),
  )
}

function addHeld(all: HeldRows, row: SeriesRow): void {
  const rows = TABLE.heldIn(all)
  const known = rows.get(TABLE.idOf(row))
  rows.set(TABLE.idOf(row), known === undefined ? row : { ...known, ...plus(known, row) })
}

let deltas = 0

/** Keeps what a call on a queue in memory has counted. */
export const keepHeldDelta = (all: HeldRows, counts: SeriesDelta): void => {
  const id = ++deltas
  if (counts.length > 0) DELTAS.heldIn(all).set(String(id), { id, counts })
}

/** Replaces rows by others with the same counts. */
function moveHeld(all: HeldRows, isMoved: (row: SeriesRow) => boolean, to: (row: SeriesRow) => SeriesRow): void {
  const rows = TABLE.heldIn(all)
  for (const [id, row] of [...rows].filter(([, one]) => isMoved(one))) {
    rows.delete(id)
    addHeld(all, to(row))
  }
}

const isOfDay = ({ dimension, begin }: Choice, row: SeriesRow): boolean =>
  row.dimension === dimension && row.name !== '' && row.at >= begin && row.at < begin + DAY

function smallOf(all: HeldRows, choice: Choice): ReadonlySet<string> {
  const rows = [...TABLE.heldIn(all).values()].filter((row) => isOfDay(choice, row))
  const sums = [...Map.groupBy(rows, ({ name }) => name)].map(([name, same]) => ({ name, ...same.reduce<SeriesCounts>(plus, NO_COUNTS) }))
  const size = (one: SeriesCounts): number => one.accepted + one.delivered
  const order = sums.toSorted((a, b) => b.deferred - a.deferred || size(b) - size(a) || (a.name < b.name ? -1 : 1))
  return new Set(order.slice(choice.most).map(({ name }) => name))
}

// --- calls

export const SERIES = {
  /** Adds the oldest rows of series_delta to `series`. Answers false when there is none. */
  fold: TABLE.once<[]>({
    statements: () => [TURN, MARK, ADD, FOLD].map((text) => ({ text, values: {} })),
    held: (all) => {
      const added = heldPending(all)
      for (const row of added) addHeld(all, row)
      DELTAS.heldIn(all).clear()
      return added.length > 0
    },
  }),
  /** Adds up the names of a day that are not kept. */
  choose: TABLE.write<[choice: Choice]>({
    statements: (choice) => CHOOSE.map((text) => ({ text, values: valuesIn(text, { ...choice }) })),
    held: (all, choice) => {
      const small = smallOf(all, choice)
      moveHeld(
        all,
        (row) => isOfDay(choice, row) && small.has(row.name),
        (row) => ({ ...row, name: '' }),
      )
    },
  }),
  /** Adds up minutes that are not kept, and deletes the oldest hours. */
  prune: TABLE.write<[now: QueueTime]>({
    statements: (now) => PRUNE.map((text) => ({ text, values: valuesIn(text, pruneValues(now)) })),
    held: (all, now) => {
      const limits = pruneValues(now)
      const isOld = ({ dimension, at }: SeriesRow) =>
        (dimension === 'cause' || dimension === 'delay') && at < limits.minutes && at % HOUR > 0
      moveHeld(all, isOld, (row) => ({ ...row, at: Math.floor(row.at / HOUR) * HOUR }))
      const rows = TABLE.heldIn(all)
      for (const [id, { at }] of rows) if (at < limits.hours) rows.delete(id)
    },
  }),
  /** Counts of a dimension in intervals, by slot and name. */
  of: TABLE.read<[query: SeriesQuery], readonly SeriesSlot[]>({
    statements: (query) => [{ text: READ, values: { ...query } }],
    answer: (rows) => rows as readonly SeriesSlot[],
    held: (all, { dimension, since, until, step, name }) => {
      const rows = [...TABLE.heldIn(all).values(), ...heldPending(all)].filter(
        (row) => row.dimension === dimension && row.at >= since && row.at < until && (name === null || row.name === name),
      )
      const slots = Map.groupBy(rows, (row) => `${Math.floor((row.at - since) / step)} ${row.name}`)
      return [...slots]
        .map(([key, same]) => {
          const [slot = ''] = key.split(' ', 1)
          return { slot: Number(slot), name: key.slice(slot.length + 1), ...same.reduce<SeriesCounts>(plus, NO_COUNTS) }
        })
        .toSorted((a, b) => a.slot - b.slot || (a.name < b.name ? -1 : 1))
    },
  }),
}

/** The values of the parameters that a text has: SQLite refuses others. */
const valuesIn = <V extends Readonly<Record<string, number | string>>>(text: string, values: V): Partial<V> =>
  Object.fromEntries(Object.entries(values).filter(([name]) => text.includes(`:${name}`))) as Partial<V>
