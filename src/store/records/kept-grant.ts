/** Rows of rotating refresh tokens. */
import { isContinuedBy, type KeptGrant, type SharedGrant } from '../../oauth/shared-grant.ts'
import type { QueueTime } from '../../system/clock.ts'
import { answered, given, RecordTable, reserved, silent } from './record-table.ts'

/** A row without an answer of the authority has generation 0. */
interface Row {
  readonly name: string
  readonly user: string
  readonly refreshToken: string | null
  readonly accessToken: string | null
  readonly expiresAt: QueueTime
  readonly generation: number
  readonly origin: string
  readonly claimedUntil: QueueTime
}

const NO_GRANT = { refreshToken: null, accessToken: null, expiresAt: 0, generation: 0, origin: '' }

const table = new RecordTable<Row, 'name' | 'user'>(
  'oauth_token',
  {
    name: 'text',
    user: 'text',
    refreshToken: 'text',
    accessToken: 'text',
    expiresAt: 'number',
    generation: 'number',
    origin: 'text',
    claimedUntil: 'number',
  },
  { key: ['name', 'user'] },
)

const claim = table.put<{ readonly now: QueueTime }>({
  only: ['claimedUntil'],
  when: { sql: 'kept.claimed_until <= :now', held: ({ claimedUntil }, { now }) => claimedUntil <= now },
})
const first = table.put({ when: { sql: 'kept.generation = 0', held: ({ generation }) => generation === 0 } })
const next = table.change<{ readonly generation: number }>({
  when: { sql: 'kept.generation = :generation - 1', held: (kept, { generation }) => kept.generation === generation - 1 },
})
const rowOf = (name: string, user: string, grant: SharedGrant): Row => ({ ...grant, name, user, claimedUntil: 0 })
/** Only the first generation makes a row. */
const storing = (grant: SharedGrant) => (grant.generation === 1 ? first : next)

const isGrant = (row: Row): row is Row & KeptGrant => row.refreshToken !== null
const keptGrant = ({ claimedUntil: _claim, ...grant }: Row & KeptGrant): KeptGrant => grant

/** The calls have the contract of SharedGrants. Deliveries make room, and a refresh token that is not stored is lost. */
export const GRANTS = {
  read: answered(table.find<[name: string, user: string]>('name', 'user'), (row): SharedGrant | null => {
    if (row === undefined || !isGrant(row)) return null
    const { name: _, user: __, ...grant } = keptGrant(row)
    return grant
  }),
  claim: reserved(
    given(
      (name: string, user: string, { now, until }: { readonly now: QueueTime; readonly until: QueueTime }) => ({
        ...NO_GRANT,
        name,
        user,
        claimedUntil: until,
        now,
      }),
      claim,
    ),
  ),
  replace: reserved(
    table.once<[name: string, user: string, grant: SharedGrant]>({
      statements: (name, user, grant) => storing(grant).statements(rowOf(name, user, grant)),
      held: (rows, name, user, grant) => storing(grant).held(rows, rowOf(name, user, grant)),
    }),
  ),
  release: reserved(given((name: string, user: string) => ({ name, user, claimedUntil: 0 }), silent(table.change()))),
  /** All grants, ordered by name and user. They have secrets: for moves of the queue, and for `deferd oauth`, which prints none. */
  all: answered(table.all(), (rows): readonly KeptGrant[] => rows.filter(isGrant).map(keptGrant)),
}

const taking = table.put({
  when: {
    sql: 'kept.generation = 0 or (kept.origin = excluded.origin and kept.generation < excluded.generation)',
    held: (kept, other) => isGrant(other) && isContinuedBy(isGrant(kept) ? kept : null, other),
  },
})
/** Takes the grant of another queue, see isContinuedBy. */
export const takeGrant = given((grant: KeptGrant) => ({ ...grant, claimedUntil: 0 }), taking)

/** Ends the claims of an owner that has ended, on a queue with one owner. */
export const endClaims = table.write<[]>({
  statements: () => [{ text: 'update oauth_token set claimed_until = 0 where claimed_until > 0', values: {} }],
  held: (rows) => {
    for (const [id, row] of table.heldIn(rows)) table.heldIn(rows).set(id, { ...row, claimedUntil: 0 })
  },
})
