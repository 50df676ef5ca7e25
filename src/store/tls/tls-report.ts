/** Results of TLS sessions for reports to domains (RFC 8460), as the queue keeps them for all its nodes. */
import type { QueueTime } from '../../system/clock.ts'

/** A UTC day, `2026-11-23`. */
export type Day = string

/** Sessions of one day and domain with the same policy and result. */
export interface TlsResult {
  readonly day: Day
  /** Domain whose TLSRPT record asks for the report. */
  readonly domain: string
  /** Policy that applied, as the JSON object of a report. */
  readonly policy: string
  /** `success`, or the type of failure (RFC 8460 §4.3). */
  readonly type: string
  /** Host name and address of the mail exchanger, and our own address; empty for successes, and where they are not known. */
  readonly mx: string
  readonly receivingIp: string
  readonly sendingIp: string
  /** Reason of a failure; empty for successes. */
  readonly reason: string
  readonly sessions: number
}

/** The counts of one process. `key` is a digest of all members except the number of sessions. */
export interface CountedResult extends TlsResult {
  readonly key: string
}

/** States of a report that is not tried again: delivered, or not asked for by the domain. */
export type ReportEnd = 'sent' | 'unwanted'

export interface ReportClaim {
  readonly day: Day
  readonly domain: string
  readonly at: QueueTime
  /** Time from which another claim is granted. */
  readonly until: QueueTime
}

/** Methods of QueueStore for reports about TLS. Each has the same effect twice as once. */
export interface TlsReportStore {
  /** Keeps the counts of a process, which only grow, in place of its former ones. `source` is unique for each process. */
  keepTlsResults(source: string, results: readonly CountedResult[]): Promise<void>
  /** Domains with results of a day whose report has not ended, in order. */
  tlsReportsDue(day: Day): Promise<readonly string[]>
  /** Grants the report of a day and a domain to one caller. False while a claim holds, and after the end of the report. */
  claimTlsReport(claim: ReportClaim): Promise<boolean>
  /** The results of a day and a domain, summed over all processes, in the order of their keys. */
  tlsResults(day: Day, domain: string): Promise<readonly TlsResult[]>
  /** Ends a report. A later end does not replace the first one. */
  endTlsReport(report: Pick<ReportClaim, 'day' | 'domain'> & { readonly end: ReportEnd }): Promise<void>
  /** Deletes results and reports of days before this one. */
  pruneTlsReports(before: Day): Promise<void>
}
