/** Writes rotating refresh tokens, and reads them. */
import type { KeptGrant, SharedGrant } from '../../../oauth/shared-grant.ts'
import { storableText } from '../session/arrays.ts'
import type { Statements } from '../session/database-connection.ts'
import { sent, sentOnce, type Send } from './write-transaction.ts'

const GRANT = `refresh_token as "refreshToken", access_token as "accessToken", expires_at as "expiresAt", generation, origin`
const grantOf = `select ${GRANT} from oauth_token where name = $1 and "user" = $2 and generation > 0`
const allGrants = `select name, "user", ${GRANT} from oauth_token where generation > 0 order by name, "user"`
const claim = `
  insert into oauth_token as kept (name, "user", claimed_until) values ($1, $2, $3)
  on conflict (name, "user") do update set claimed_until = excluded.claimed_until where kept.claimed_until <= $4
  returning name`
const UPSERT = `
  on conflict (name, "user") do update set refresh_token = excluded.refresh_token, access_token = excluded.access_token,
    expires_at = excluded.expires_at, generation = excluded.generation, origin = excluded.origin, claimed_until = 0`
const INTO = 'insert into oauth_token as kept (name, "user", refresh_token, access_token, expires_at, generation, origin)'
/** Stores the next generation. Only the first one makes a row. */
const replace = `
  ${INTO} select $1, $2, $3, $4, $5::bigint, $6::bigint, $7
  where $6::bigint = 1 or exists (select 1 from oauth_token where name = $1 and "user" = $2)
  ${UPSERT} where kept.generation = excluded.generation - 1
  returning name`
/** Takes the grant of another queue, see isContinuedBy. */
const take = `
  ${INTO} values ($1, $2, $3, $4, $5, $6, $7)
  ${UPSERT} where kept.generation = 0 or (kept.origin = excluded.origin and kept.generation < excluded.generation)`
const release = 'update oauth_token set claimed_until = 0 where name = $1 and "user" = $2'

const keyOf = (name: string, user: string): readonly [string, string] => [storableText(name), storableText(user)]

const parametersOf = ({ name, user, refreshToken, accessToken, expiresAt, generation, origin }: KeptGrant) => [
  ...keyOf(name, user),
  storableText(refreshToken),
  accessToken === null ? null : storableText(accessToken),
  expiresAt,
  generation,
  origin,
]

export const claimGrant: Send<'claimGrant'> = (tx, calls) =>
  sentOnce(
    tx,
    Promise.all(calls.map(async ([name, user, { now, until }]) => (await tx.query(claim, [...keyOf(name, user), until, now])).length > 0)),
  )

export const replaceGrant: Send<'replaceGrant'> = (tx, calls) =>
  sentOnce(
    tx,
    Promise.all(calls.map(async ([name, user, grant]) => (await tx.query(replace, parametersOf({ ...grant, name, user }))).length > 0)),
  )

export const releaseGrant: Send<'releaseGrant'> = (tx, calls) =>
  sent(Promise.all(calls.map(async ([name, user]) => void (await tx.query(release, keyOf(name, user))))))

export const takeGrants = (tx: Statements, grants: readonly KeptGrant[]): Promise<unknown> =>
  Promise.all(grants.map((grant) => tx.query(take, parametersOf(grant))))

export const sharedGrant = async (reading: Statements, name: string, user: string): Promise<SharedGrant | null> =>
  (await reading.query<SharedGrant>(grantOf, keyOf(name, user)))[0] ?? null

export const sharedGrants = (reading: Statements): Promise<readonly KeptGrant[]> => reading.query<KeptGrant>(allGrants)
