/** Results of TLS sessions for reports to domains (RFC 8460), as the queue keeps them for all its nodes. */
import type { QueueTime } from '../../system/clock.ts'
import { after, compare, each, given, RecordTable, reserved, silent } from './record-table.ts'

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

/** The counts of one process as they are stored. */
interface SourcedResult extends CountedResult {
  readonly source: string
}

interface Report {
  readonly day: Day
  readonly domain: string
  readonly claimedUntil: QueueTime
  readonly ended: ReportEnd | null
}

const results = new RecordTable<SourcedResult, 'day' | 'domain' | 'source' | 'key'>(
  'tls_result',
  {
    day: 'text',
    domain: 'text',
    source: 'text',
    key: 'text',
    policy: 'text',
    type: 'text',
    mx: 'text',
    receivingIp: 'text',
    sendingIp: 'text',
    reason: 'text',
    sessions: 'number',
  },
  { key: ['day', 'domain', 'source', 'key'] },
)

const reports = new RecordTable<Report, 'day' | 'domain'>(
  'tls_report',
  { day: 'text', domain: 'text', claimedUntil: 'number', ended: 'text' },
  { key: ['day', 'domain'] },
)

const earlier = { sql: 'day < :before', held: ({ day }: { readonly day: Day }, { before }: { readonly before: Day }) => day < before }

const resultsOf = `
  select min(day) as day, min(domain) as domain, min(policy) as policy, min(type) as type, min(mx) as mx, min(receiving_ip) as "receivingIp",
    min(sending_ip) as "sendingIp", min(reason) as reason, cast(sum(sessions) as bigint) as sessions
  from tls_result where day = :day and domain = :domain group by key order by key`
const reportsDue = `
  select distinct domain from tls_result as result
  where day = :day and not exists (select 1 from tls_report where day = result.day and domain = result.domain and ended is not null)
  order by domain`

export const TLS_RESULTS = {
  /** Keeps the counts of a process, which only grow, in place of its former ones. `source` is unique for each process. */
  keep: given(
    (source: string, counted: readonly CountedResult[]) => counted.map((one) => ({ ...one, source })),
    each(results.put({ greatest: ['sessions'] })),
  ),
  /** The results of a day and a domain, summed over all processes, in the order of their keys. */
  of: results.read<[day: Day, domain: string], readonly TlsResult[]>({
    statements: (day, domain) => [{ text: resultsOf, values: { day, domain } }],
    answer: (rows) => rows as readonly TlsResult[],
    held: (rows, day, domain) => {
      const sums = new Map<string, SourcedResult>()
      for (const one of results.heldIn(rows).values())
        if (one.day === day && one.domain === domain)
          sums.set(one.key, { ...one, sessions: one.sessions + (sums.get(one.key)?.sessions ?? 0) })
      const inOrder = [...sums.values()].toSorted((a, b) => compare(a.key, b.key))
      return inOrder.map(({ key: _key, source: _source, ...result }) => result)
    },
  }),
}

const claimReport = reports.put<{ readonly at: QueueTime }>({
  only: ['claimedUntil'],
  when: {
    sql: 'kept.ended is null and kept.claimed_until <= :at',
    held: ({ ended, claimedUntil }, { at }) => ended === null && claimedUntil <= at,
  },
})
const endReport = reports.put({ only: ['ended'], when: { sql: 'kept.ended is null', held: ({ ended }) => ended === null } })

export const TLS_REPORTS = {
  /** Domains with results of a day whose report has not ended, in order. */
  due: reports.read<[day: Day], readonly string[]>({
    statements: (day) => [{ text: reportsDue, values: { day } }],
    answer: (rows) => (rows as readonly Report[]).map(({ domain }) => domain),
    held: (rows, day) => {
      const hasEnded = (domain: string) => (reports.heldIn(rows).get(reports.idOf({ day, domain }))?.ended ?? null) !== null
      const domains = [...results.heldIn(rows).values()].filter((one) => one.day === day).map(({ domain }) => domain)
      return [...new Set(domains)].filter((domain) => !hasEnded(domain)).toSorted(compare)
    },
  }),
  /** Grants the report of a day and a domain to one caller. False while a claim holds, and after the end of the report. */
  claim: given(({ day, domain, at, until }: ReportClaim) => ({ day, domain, claimedUntil: until, ended: null, at }), claimReport),
  /** Ends a report. A later end does not replace the first one. */
  end: given(
    ({ day, domain, end }: Pick<ReportClaim, 'day' | 'domain'> & { readonly end: ReportEnd }) => ({
      day,
      domain,
      claimedUntil: 0,
      ended: end,
    }),
    silent(endReport),
  ),
  /** Deletes results and reports of days before one. */
  prune: reserved(given((before: Day) => ({ before }), after(results.prune(earlier), reports.prune(earlier)))),
}
