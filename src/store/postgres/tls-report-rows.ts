/** Writes results of TLS sessions and states of the reports about them, and reads them. */
import type { Day, TlsResult } from '../tls/tls-report.ts'
import { storableText } from './session/arrays.ts'
import type { Statements } from './session/database-connection.ts'
import { sent, type Send } from './writing/write-transaction.ts'

/** Counts only grow, so that a repeated call changes nothing. Rows are locked in the order of their keys. */
const keepResult = `
  insert into tls_result as kept (day, domain, source, key, policy, type, mx, receiving_ip, sending_ip, reason, sessions)
  values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
  on conflict (day, domain, source, key) do update set sessions = greatest(kept.sessions, excluded.sessions)`
const reportsDue = `
  select distinct domain from tls_result as result
  where day = $1 and not exists (select 1 from tls_report where day = result.day and domain = result.domain and ended is not null)
  order by domain`
const claimReport = `
  insert into tls_report as known (day, domain, claimed_until) values ($1, $2, $3)
  on conflict (day, domain) do update set claimed_until = excluded.claimed_until where known.ended is null and known.claimed_until <= $4
  returning domain`
const resultsOf = `
  select day, domain, min(policy) as policy, min(type) as type, min(mx) as mx, min(receiving_ip) as "receivingIp",
    min(sending_ip) as "sendingIp", min(reason) as reason, sum(sessions)::bigint as sessions
  from tls_result where day = $1 and domain = $2 group by day, domain, key order by key`
const endReport = `
  insert into tls_report as known (day, domain, claimed_until, ended) values ($1, $2, 0, $3)
  on conflict (day, domain) do update set ended = excluded.ended where known.ended is null`
const deleteResults = 'delete from tls_result where day < $1'
const deleteReports = 'delete from tls_report where day < $1'

export const keepTlsResults: Send<'keepTlsResults'> = (tx, calls) =>
  sent(
    Promise.all(
      calls.map(async ([source, results]) => {
        const rows = results.toSorted((a, b) => (a.key < b.key ? -1 : 1))
        await Promise.all(
          rows.map(({ day, domain, key, policy, type, mx, receivingIp, sendingIp, reason, sessions }) => {
            const about = [storableText(policy), type, storableText(mx), receivingIp, sendingIp, storableText(reason)]
            return tx.query(keepResult, [day, domain, source, key, ...about, sessions])
          }),
        )
      }),
    ),
  )

export const claimTlsReport: Send<'claimTlsReport'> = (tx, calls) =>
  sent(Promise.all(calls.map(async ([{ day, domain, at, until }]) => (await tx.query(claimReport, [day, domain, until, at])).length > 0)))

export const endTlsReport: Send<'endTlsReport'> = (tx, calls) =>
  sent(Promise.all(calls.map(async ([{ day, domain, end }]) => void (await tx.query(endReport, [day, domain, end])))))

export const pruneTlsReports: Send<'pruneTlsReports'> = (tx, calls) =>
  sent(
    Promise.all(
      calls.map(async ([before]) => void (await Promise.all([deleteResults, deleteReports].map((text) => tx.query(text, [before]))))),
    ),
  )

export const tlsReportsDue = async (reading: Statements, day: Day): Promise<readonly string[]> =>
  (await reading.query<{ domain: string }>(reportsDue, [day])).map(({ domain }) => domain)

export const tlsResults = (reading: Statements, day: Day, domain: string): Promise<readonly TlsResult[]> =>
  reading.query<TlsResult>(resultsOf, [day, domain])
