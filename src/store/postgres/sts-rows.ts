/** Writes MTA-STS policies, and the statements that read them. */
import type { StsPolicy } from '../tls/sts-policy.ts'
import { storableText } from './session/arrays.ts'
import { sent, type Send } from './writing/write-transaction.ts'

/** Inserts a policy. One that was fetched later stays, because another node may have fetched it meanwhile. */
const keepPolicy = `
  insert into sts_policy as kept (domain, id, mode, mx, text, fetched_at, expires_at, used_at, failed_at, failure)
  values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
  on conflict (domain) do update set id = excluded.id, mode = excluded.mode, mx = excluded.mx, text = excluded.text,
    fetched_at = excluded.fetched_at, expires_at = excluded.expires_at, used_at = greatest(kept.used_at, excluded.used_at),
    failed_at = excluded.failed_at, failure = excluded.failure
  where kept.fetched_at <= excluded.fetched_at`
const noteUse = 'update sts_policy set used_at = greatest(used_at, $1) where domain = $2'
const noteFailure = 'update sts_policy set failed_at = $1, failure = $2 where domain = $3'
const deletePolicy = 'delete from sts_policy where domain = $1 returning domain'
const POLICY = `domain, id, mode, mx, text, fetched_at as "fetchedAt", expires_at as "expiresAt", used_at as "usedAt",
  failed_at as "failedAt", failure`
export const stsPolicyOf = `select ${POLICY} from sts_policy where domain = $1`
export const allStsPolicies = `select ${POLICY} from sts_policy order by domain`

export type StsRow = Omit<StsPolicy, 'mx'> & { readonly mx: string }

export const toStsPolicy = (row: StsRow): StsPolicy => ({ ...row, mx: JSON.parse(row.mx) as string[] })

export const keepStsPolicy: Send<'keepStsPolicy'> = (tx, calls) =>
  sent(
    Promise.all(
      calls.map(async ([{ domain, id, mode, mx, text, fetchedAt, expiresAt, usedAt, failedAt, failure }]) => {
        const why = failure === null ? null : storableText(failure)
        const stored = storableText(text)
        await tx.query(keepPolicy, [domain, id, mode, JSON.stringify(mx), stored, fetchedAt, expiresAt, usedAt, failedAt, why])
      }),
    ),
  )

export const noteStsPolicy: Send<'noteStsPolicy'> = (tx, calls) =>
  sent(
    Promise.all(
      calls.map(async ([note]) => {
        if ('usedAt' in note) await tx.query(noteUse, [note.usedAt, note.domain])
        else await tx.query(noteFailure, [note.failedAt, storableText(note.failure), note.domain])
      }),
    ),
  )

export const forgetStsPolicy: Send<'forgetStsPolicy'> = (tx, calls) =>
  sent(Promise.all(calls.map(async ([domain]) => (await tx.query(deletePolicy, [domain])).length > 0)))
