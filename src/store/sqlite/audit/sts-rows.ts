/** Rows of MTA-STS policies. */
import type { Database } from 'better-sqlite3'
import type { StsNote, StsPolicy } from '../../tls/sts-policy.ts'

export type StsRow = Omit<StsPolicy, 'mx'> & { readonly mx: string }

export const toStsPolicy = (row: StsRow): StsPolicy => ({ ...row, mx: JSON.parse(row.mx) as string[] })

/** Inserts a policy. One that was fetched later stays, because another process may have fetched it meanwhile. */
const keepPolicy = `
  insert into sts_policy (domain, id, mode, mx, text, fetched_at, expires_at, used_at, failed_at, failure)
  values (:domain, :id, :mode, :mx, :text, :fetchedAt, :expiresAt, :usedAt, :failedAt, :failure)
  on conflict (domain) do update set id = excluded.id, mode = excluded.mode, mx = excluded.mx, text = excluded.text,
    fetched_at = excluded.fetched_at, expires_at = excluded.expires_at, used_at = max(used_at, excluded.used_at),
    failed_at = excluded.failed_at, failure = excluded.failure
  where fetched_at <= excluded.fetched_at`
const noteUse = 'update sts_policy set used_at = max(used_at, ?) where domain = ?'
const noteFailure = 'update sts_policy set failed_at = ?, failure = ? where domain = ?'
const deletePolicy = 'delete from sts_policy where domain = ?'
const POLICY = `domain, id, mode, mx, text, fetched_at as fetchedAt, expires_at as expiresAt, used_at as usedAt, failed_at as failedAt,
  failure`
const policyOf = `select ${POLICY} from sts_policy where domain = ?`
const allPolicies = `select ${POLICY} from sts_policy order by domain`

export class StsRows {
  readonly #keep
  readonly #use
  readonly #failure
  readonly #delete

  constructor(db: Database) {
    this.#keep = db.prepare<StsRow>(keepPolicy)
    this.#use = db.prepare<[number, string]>(noteUse)
    this.#failure = db.prepare<[number, string, string]>(noteFailure)
    this.#delete = db.prepare<[string]>(deletePolicy)
  }

  keepStsPolicy(policy: StsPolicy): void {
    this.#keep.run({ ...policy, mx: JSON.stringify(policy.mx) })
  }

  noteStsPolicy(note: StsNote): void {
    if ('usedAt' in note) this.#use.run(note.usedAt, note.domain)
    else this.#failure.run(note.failedAt, note.failure, note.domain)
  }

  forgetStsPolicy(domain: string): boolean {
    return this.#delete.run(domain).changes > 0
  }
}

export function stsPolicy(db: Database, domain: string): StsPolicy | undefined {
  const row = db.prepare<[string], StsRow>(policyOf).get(domain)
  return row === undefined ? undefined : toStsPolicy(row)
}

export const stsPolicies = (db: Database): StsPolicy[] => db.prepare<[], StsRow>(allPolicies).all().map(toStsPolicy)
