/**
 * Addresses that senders are refused at RCPT, with the failures that may list an address. `seq` grows with each change, in the order of the
 * commits, so that nodes read what they have not seen. A row is deleted at its removal: a node that still has its key reads that it is gone.
 */
import type { DestinationName } from '../../mail/message.ts'
import type { Duration, QueueTime } from '../../system/clock.ts'
import { DAY } from '../../system/clock.ts'
import { column, compare, RecordTable, silent, type HeldRows, type Statement } from './record-table.ts'

/** Reasons for which operators list an address. */
export const OPERATOR_REASONS = ['complaint', 'manual', 'import', 'unsubscribe'] as const

export const SUPPRESSION_REASONS = ['bounce', ...OPERATOR_REASONS] as const

export type SuppressionReason = (typeof SUPPRESSION_REASONS)[number]

/** The scope of all senders. */
export const ALL_SENDERS = '*'

/** A sender domain, or ALL_SENDERS, and an address, or `@domain`. */
export interface SuppressionKey {
  readonly scope: string
  readonly address: string
}

export interface Suppression extends SuppressionKey {
  /** Null while the failures of the address do not list it yet. */
  readonly reason: SuppressionReason | null
  /** The last reply that refused the address, or a text of an operator. */
  readonly reply: string | null
  readonly destination: DestinationName | null
  /** Time of the listing; null before. */
  readonly since: QueueTime | null
  /** End of the listing, or of the time in which a failure counts; null for never. */
  readonly until: QueueTime | null
  /** Replies that refused the address, with the time of the first and the last one. */
  readonly hits: number
  readonly firstHitAt: QueueTime | null
  readonly lastHitAt: QueueTime | null
  readonly addedBy: string
  /** Automatic listings of the address, on which the length of the next one depends. */
  readonly listings: number
  /** Failures that count towards the next listing, oldest first. */
  readonly strikes: readonly QueueTime[]
  readonly seq: number
}

export type NewSuppression = Omit<Suppression, 'seq'>

/** Conditions of a selection; null for any. */
export interface SuppressionFilter {
  readonly scope: string | null
  readonly address: string | null
  readonly reason: SuppressionReason | null
  readonly destination: DestinationName | null
  /** Listed at this time or later. */
  readonly since: QueueTime | null
}

export interface SuppressionPage extends SuppressionFilter {
  readonly now: QueueTime
  /** The last entry of the former page. */
  readonly after: SuppressionKey
  readonly limit: number
}

/** Before the first entry. */
export const FIRST_KEY: SuppressionKey = { scope: '', address: '' }

/** Time for which an ended listing by failures is kept, so that the next one is longer. */
const REMEMBERED: Duration = 365 * DAY

/** True for an entry that has not ended; false for failures that do not list their address yet. */
export const isListed = ({ reason, until }: Pick<Suppression, 'reason' | 'until'>, now: QueueTime): boolean =>
  reason !== null && (until === null || until > now)

const COLUMNS = {
  scope: 'text',
  address: 'text',
  reason: 'text',
  reply: 'text',
  destination: 'text',
  since: 'number',
  until: 'number',
  hits: 'number',
  firstHitAt: 'number',
  lastHitAt: 'number',
  addedBy: 'text',
  listings: 'number',
  strikes: 'json',
  seq: 'number',
} as const satisfies Record<keyof Suppression, string>
const TABLE = new RecordTable<Suppression, 'scope' | 'address'>('suppression', COLUMNS, { key: ['scope', 'address'] })
const CHANGES = new RecordTable<{ readonly id: number; readonly seq: number }, 'id'>(
  'suppression_change',
  { id: 'number', seq: 'number' },
  { key: ['id'] },
)
/** A sender domain for which no addresses are listed, and since when. */
export interface SuppressionStop {
  readonly scope: string
  readonly at: QueueTime
}

const STOPS = new RecordTable<SuppressionStop, 'scope'>('suppression_stop', { scope: 'text', at: 'number' }, { key: ['scope'] })

// --- statements

/** Columns that a caller gives, in the order of the rows of an import. */
const GIVEN = Object.keys(COLUMNS).filter((name) => name !== 'seq') as (keyof NewSuppression)[]
const CHANGEABLE = GIVEN.filter((name) => name !== 'scope' && name !== 'address')
const INTO = Object.keys(COLUMNS).map(column).join(', ')
const SELECTED = Object.keys(COLUMNS)
  .map((name) => `${column(name)} as "${name}"`)
  .join(', ')
const SEQ = '(select seq from suppression_change where id = 0)'

/** The transactions that change entries are made one at a time from here on. */
const TURN: Statement = {
  text: 'insert into suppression_change (id, seq) values (0, 1) on conflict (id) do update set seq = suppression_change.seq + 1',
  values: {},
}
const OWN = 'scope = :scope and address = :address'
const ADD = `
  insert into suppression (${INTO}) values (${GIVEN.map((name) => `:${name}`).join(', ')}, ${SEQ}) on conflict do nothing returning seq`
const CHANGE = `
  update suppression set ${CHANGEABLE.map((name) => `${column(name)} = :${name}`).join(', ')}, seq = ${SEQ}
  where ${OWN} and seq = :was returning seq`
const PUT_ALL = `
  insert into suppression (${INTO})
  select ${GIVEN.map((name, n) => `cast(c.value ->> ${n} as ${COLUMNS[name] === 'number' ? 'bigint' : 'text'})`).join(', ')}, ${SEQ}
  from json_each(:rows) as c where true
  on conflict (scope, address) do update set
    ${[...CHANGEABLE, 'seq'].map((name) => `${column(name)} = excluded.${column(name)}`).join(', ')}`
const MATCHING = `select ${SELECTED} from suppression where scope in (:scope, '${ALL_SENDERS}') and address in (:address, :domain)`
const CHANGED_SINCE = `
  select scope, address, seq from suppression where (seq, scope, address) > (cast(:seq as bigint), cast(:scope as text), cast(:address as text))
  order by seq, scope, address limit :limit`
const PAGE = `
  select ${SELECTED} from suppression
  where (scope, address) > (cast(:afterScope as text), cast(:afterAddress as text))
    and reason is not null and (until is null or until > :now)
    and (cast(:scope as text) is null or scope = :scope) and (cast(:address as text) is null or address = :address)
    and (cast(:reason as text) is null or reason = :reason) and (cast(:destination as text) is null or destination = :destination)
    and (cast(:since as bigint) is null or since >= :since)
  order by scope, address limit :limit`
const OF_ADDRESS = `select ${SELECTED} from suppression where address = :address order by scope`
const REMOVE_ALL = `
  delete from suppression where (scope, address) in (select cast(c.value ->> 0 as text), cast(c.value ->> 1 as text) from json_each(:keys) as c)`
const LISTED_SINCE = `select count(*) as count from suppression where scope = :scope and since > :since and reason = 'bounce'`
const REMOVE_UNCHANGED = `delete from suppression where ${OWN} and seq = :seq returning seq`
const VOIDED = `destination = :destination and last_hit_at > :since and (reason is null or (reason = 'bounce' and since > :since))`
const ENDED = `until < :now and (reason is null or until + ${REMEMBERED} < :now)`

// --- rows in memory

function nextSeq(all: HeldRows): number {
  const changes = CHANGES.heldIn(all)
  const seq = (changes.get('0')?.seq ?? 0) + 1
  changes.set('0', { id: 0, seq })
  return seq
}

const byKey = (a: SuppressionKey, b: SuppressionKey): number => compare(a.scope, b.scope) || compare(a.address, b.address)
const byChange = (a: SuppressionChange, b: SuppressionChange): number => a.seq - b.seq || byKey(a, b)

const isWanted = (one: Suppression, { scope, address, reason, destination, since, now, after: last }: SuppressionPage): boolean =>
  byKey(one, last) > 0 &&
  isListed(one, now) &&
  (scope === null || one.scope === scope) &&
  (address === null || one.address === address) &&
  (reason === null || one.reason === reason) &&
  (destination === null || one.destination === destination) &&
  (since === null || (one.since ?? 0) >= since)

export interface Fault {
  readonly destination: DestinationName
  readonly since: QueueTime
}

const isVoid = (one: Suppression, { destination, since }: Fault): boolean =>
  one.destination === destination &&
  (one.lastHitAt ?? 0) > since &&
  (one.reason === null || (one.reason === 'bounce' && (one.since ?? 0) > since))

const isForgotten = ({ until, reason }: Suppression, { now }: { readonly now: QueueTime }): boolean =>
  until !== null && until < now && (reason === null || until + REMEMBERED < now)

/** A change that a node may not have seen. */
export type SuppressionChange = Pick<Suppression, 'scope' | 'address' | 'seq'>

const rowOf = (entry: NewSuppression): readonly unknown[] =>
  GIVEN.map((name) => (COLUMNS[name] === 'json' ? JSON.stringify(entry[name]) : entry[name]))

const listed = (rows: readonly object[]): readonly Suppression[] => rows.map((row) => TABLE.decode(row))

// --- calls

export const SUPPRESSIONS = {
  /** Saves an entry when the one with its key still has the given `seq`, or there is none for 0. Answers false when it is not so. */
  put: TABLE.once<[entry: NewSuppression, was: number]>({
    statements: (entry, was) => {
      const values = TABLE.values(Object.fromEntries(GIVEN.map((name) => [name, entry[name]])))
      return [TURN, was === 0 ? { text: ADD, values } : { text: CHANGE, values: { ...values, was } }]
    },
    held: (all, entry, was) => {
      const rows = TABLE.heldIn(all)
      const id = TABLE.idOf(entry)
      const seq = nextSeq(all)
      if ((rows.get(id)?.seq ?? 0) !== was) return false
      rows.set(id, { ...entry, seq })
      return true
    },
  }),
  /** Saves entries with different keys in place of those with the same keys. */
  putAll: TABLE.write<[entries: readonly NewSuppression[]]>({
    statements: (entries) => [TURN, { text: PUT_ALL, values: { rows: JSON.stringify(entries.map(rowOf)) } }],
    held: (all, entries) => {
      const seq = nextSeq(all)
      for (const entry of entries) TABLE.heldIn(all).set(TABLE.idOf(entry), { ...entry, seq })
    },
  }),
  removeAll: TABLE.write<[keys: readonly SuppressionKey[]]>({
    statements: (keys) => [{ text: REMOVE_ALL, values: { keys: JSON.stringify(keys.map(({ scope, address }) => [scope, address])) } }],
    held: (all, keys) => {
      for (const key of keys) TABLE.heldIn(all).delete(TABLE.idOf(key))
    },
  }),
  /** Removes an entry when it still has its `seq`. Answers false when it has not. */
  removeUnchanged: TABLE.once<[entry: SuppressionChange]>({
    statements: ({ scope, address, seq }) => [{ text: REMOVE_UNCHANGED, values: { scope, address, seq } }],
    held: (all, entry) => {
      const rows = TABLE.heldIn(all)
      const id = TABLE.idOf(entry)
      return rows.get(id)?.seq === entry.seq && rows.delete(id)
    },
  }),
  /** Removes the failures and the automatic listings of a destination since a time. */
  voidSince: TABLE.prune<Fault>({ sql: VOIDED, held: isVoid }),
  /** Deletes the failures that do not count any more, and listings that ended long ago. */
  prune: TABLE.prune<{ readonly now: QueueTime }>({ sql: ENDED, held: isForgotten }),
  /** The entry with a key, also one that has ended. */
  of: TABLE.find<[scope: string, address: string]>('scope', 'address'),
  /** The entries of an address in all scopes, also ended ones, ordered by scope. */
  ofAddress: TABLE.read<[address: string], readonly Suppression[]>({
    statements: (address) => [{ text: OF_ADDRESS, values: { address } }],
    answer: listed,
    held: (all, address) => [...TABLE.heldIn(all).values()].filter((one) => one.address === address).toSorted(byKey),
  }),
  /** The entries that may concern mail of a scope to an address, or to its `@domain`. */
  matching: TABLE.read<[key: SuppressionKey, domain: string], readonly Suppression[]>({
    statements: ({ scope, address }, domain) => [{ text: MATCHING, values: { scope, address, domain } }],
    answer: listed,
    held: (all, { scope, address }, domain) =>
      [...TABLE.heldIn(all).values()].filter(
        (one) => (one.scope === scope || one.scope === ALL_SENDERS) && (one.address === address || one.address === domain),
      ),
  }),
  /** The entries that have not ended, ordered by scope and address. */
  page: TABLE.read<[page: SuppressionPage], readonly Suppression[]>({
    statements: ({ after: { scope: afterScope, address: afterAddress }, ...page }) => [
      { text: PAGE, values: { ...page, afterScope, afterAddress } },
    ],
    answer: listed,
    held: (all, page) =>
      [...TABLE.heldIn(all).values()]
        .filter((one) => isWanted(one, page))
        .toSorted(byKey)
        .slice(0, page.limit),
  }),
  /** Changes after one, in their order. */
  changes: TABLE.read<[last: SuppressionChange, limit: number], readonly SuppressionChange[]>({
    statements: ({ seq, scope, address }, limit) => [{ text: CHANGED_SINCE, values: { seq, scope, address, limit } }],
    answer: (rows) => rows as readonly SuppressionChange[],
    held: (all, last, limit) =>
      [...TABLE.heldIn(all).values()]
        .map(({ scope, address, seq }) => ({ scope, address, seq }))
        .filter((one) => byChange(one, last) > 0)
        .toSorted(byChange)
        .slice(0, limit),
  }),
  /** Number of automatic listings of a scope after a time. */
  listedSince: TABLE.read<[scope: string, since: QueueTime], number>({
    statements: (scope, since) => [{ text: LISTED_SINCE, values: { scope, since } }],
    answer: ([row]) => (row as { readonly count: number }).count,
    held: (all, scope, since) =>
      [...TABLE.heldIn(all).values()].filter((one) => one.scope === scope && one.reason === 'bounce' && (one.since ?? 0) > since).length,
  }),
}

export const SUPPRESSION_STOPS = {
  /** Stops automatic listings of a scope. Answers false when they are stopped. */
  stop: STOPS.add(),
  /** Returns false when the listings of the scope are not stopped. */
  resume: STOPS.remove(),
  all: STOPS.all(),
}

/** Adds an entry of another queue, unless there is one with its key. */
export const takeSuppression = silent(
  TABLE.once<[entry: NewSuppression]>({
    statements: (entry) => SUPPRESSIONS.put.statements(entry, 0),
    held: (all, entry) => SUPPRESSIONS.put.held(all, entry, 0),
  }),
)
