/** Rows of results of TLS sessions, and of the reports about them. */
import type { Database } from 'better-sqlite3'
import type { CountedResult, Day, ReportClaim, TlsReportStore, TlsResult } from '../../tls/tls-report.ts'

/** Counts only grow, so that a repeated call changes nothing. */
const keepResult = `
  insert into tls_result (day, domain, source, key, policy, type, mx, receiving_ip, sending_ip, reason, sessions)
  values (:day, :domain, :source, :key, :policy, :type, :mx, :receivingIp, :sendingIp, :reason, :sessions)
  on conflict (day, domain, source, key) do update set sessions = max(sessions, excluded.sessions)`
const reportsDue = `
  select distinct domain from tls_result as result
  where day = :day and not exists (select 1 from tls_report where day = result.day and domain = result.domain and ended is not null)
  order by domain`
const claimReport = `
  insert into tls_report (day, domain, claimed_until) values (:day, :domain, :until)
  on conflict (day, domain) do update set claimed_until = excluded.claimed_until where ended is null and claimed_until <= :at`
const resultsOf = `
  select day, domain, policy, type, mx, receiving_ip as receivingIp, sending_ip as sendingIp, reason, sum(sessions) as sessions
  from tls_result where day = :day and domain = :domain group by key order by key`
const endReport = `
  insert into tls_report (day, domain, claimed_until, ended) values (:day, :domain, 0, :end)
  on conflict (day, domain) do update set ended = excluded.ended where ended is null`
const deleteResults = 'delete from tls_result where day < ?'
const deleteReports = 'delete from tls_report where day < ?'

export class TlsReportRows {
  readonly #keep
  readonly #due
  readonly #claim
  readonly #results
  readonly #end
  readonly #deletes

  constructor(db: Database) {
    this.#keep = db.prepare<CountedResult & { readonly source: string }>(keepResult)
    this.#due = db.prepare<{ readonly day: Day }, string>(reportsDue).pluck()
    this.#claim = db.prepare<ReportClaim>(claimReport)
    this.#results = db.prepare<{ readonly day: Day; readonly domain: string }, TlsResult>(resultsOf)
    this.#end = db.prepare<Parameters<TlsReportStore['endTlsReport']>>(endReport)
    this.#deletes = [deleteResults, deleteReports].map((text) => db.prepare<[Day]>(text))
  }

  keepTlsResults(source: string, results: readonly CountedResult[]): void {
    for (const result of results) this.#keep.run({ ...result, source })
  }

  tlsReportsDue(day: Day): readonly string[] {
    return this.#due.all({ day })
  }

  claimTlsReport(claim: ReportClaim): boolean {
    return this.#claim.run(claim).changes > 0
  }

  tlsResults(day: Day, domain: string): readonly TlsResult[] {
    return this.#results.all({ day, domain })
  }

  endTlsReport(report: Parameters<TlsReportStore['endTlsReport']>[0]): void {
    this.#end.run(report)
  }

  pruneTlsReports(before: Day): void {
    for (const statement of this.#deletes) statement.run(before)
  }
}
