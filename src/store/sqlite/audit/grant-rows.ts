/** Rows of rotating refresh tokens. */
import type { Database } from 'better-sqlite3'
import type { KeptGrant, SharedGrant } from '../../../oauth/shared-grant.ts'
import type { QueueTime } from '../../../system/clock.ts'

const GRANT = `refresh_token as refreshToken, access_token as accessToken, expires_at as expiresAt, generation, origin`
const grantOf = `select ${GRANT} from oauth_token where name = ? and user = ? and generation > 0`
const allGrants = `select name, user, ${GRANT} from oauth_token where generation > 0 order by name, user`
const claim = `
  insert into oauth_token (name, user, claimed_until) values (:name, :user, :until)
  on conflict (name, user) do update set claimed_until = excluded.claimed_until where claimed_until <= :now`
const UPSERT = `
  on conflict (name, user) do update set refresh_token = excluded.refresh_token, access_token = excluded.access_token,
    expires_at = excluded.expires_at, generation = excluded.generation, origin = excluded.origin, claimed_until = 0`
const COLUMNS = '(name, user, refresh_token, access_token, expires_at, generation, origin)'
const VALUES = ':name, :user, :refreshToken, :accessToken, :expiresAt, :generation, :origin'
/** Stores the next generation. Only the first one makes a row. */
const replace = `
  insert into oauth_token ${COLUMNS} select ${VALUES}
  where :generation = 1 or exists (select 1 from oauth_token where name = :name and user = :user)
  ${UPSERT} where generation = excluded.generation - 1`
/** Takes the grant of another queue, see isContinuedBy. */
const take = `
  insert into oauth_token ${COLUMNS} values (${VALUES})
  ${UPSERT} where generation = 0 or (origin = excluded.origin and generation < excluded.generation)`
const release = 'update oauth_token set claimed_until = 0 where name = ? and user = ?'
const releaseAll = 'update oauth_token set claimed_until = 0 where claimed_until > 0'

export class GrantRows {
  readonly #read
  readonly #claim
  readonly #replace
  readonly #take
  readonly #release

  constructor(db: Database) {
    this.#read = db.prepare<[string, string], SharedGrant>(grantOf)
    this.#claim = db.prepare<{ name: string; user: string; now: QueueTime; until: QueueTime }>(claim)
    this.#replace = db.prepare<KeptGrant>(replace)
    this.#take = db.prepare<KeptGrant>(take)
    this.#release = db.prepare<[string, string]>(release)
  }

  sharedGrant(name: string, user: string): SharedGrant | null {
    return this.#read.get(name, user) ?? null
  }

  claimGrant(name: string, user: string, { now, until }: { readonly now: QueueTime; readonly until: QueueTime }): boolean {
    return this.#claim.run({ name, user, now, until }).changes > 0
  }

  replaceGrant(name: string, user: string, grant: SharedGrant): boolean {
    return this.#replace.run({ ...grant, name, user }).changes > 0
  }

  releaseGrant(name: string, user: string): void {
    this.#release.run(name, user)
  }

  takeGrant(grant: KeptGrant): void {
    this.#take.run(grant)
  }
}

/** Ends the claims of an owner that has ended. */
export const endClaims = (db: Database): void => void db.prepare<[]>(releaseAll).run()

export const sharedGrants = (db: Database): KeptGrant[] => db.prepare<[], KeptGrant>(allGrants).all()
