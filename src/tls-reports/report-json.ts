/** The report of a day and a domain as JSON (RFC 8460 §4.4), compressed. Pure. */
import { gzipSync } from 'node:zlib'
import { isoInstant } from '../mail/mail-date.ts'
import type { TlsResult } from '../store/records/tls-report.ts'
import { DAY, SECOND, type WallTime } from '../system/clock.ts'

export interface ReportFacts {
  /** Domain that gets the report. */
  readonly domain: string
  /** Midnight at the beginning of the day, on the wall clock. */
  readonly from: WallTime
  readonly results: readonly TlsResult[]
  readonly organization: string
  /** Address for questions. */
  readonly contact: string
  readonly id: string
}

const seconds = (at: WallTime): string => isoInstant(at).replace('.000Z', 'Z')

function reportJson({ from, results, organization, contact, id }: ReportFacts) {
  const byPolicy = Map.groupBy(results, ({ policy }) => policy)
  return {
    'organization-name': organization,
    'date-range': { 'start-datetime': seconds(from), 'end-datetime': seconds(from + DAY - SECOND) },
    'contact-info': contact,
    'report-id': id,
    policies: [...byPolicy].map(([policy, all]) => {
      const failures = all.filter(({ type }) => type !== 'success')
      return {
        policy: JSON.parse(policy) as object,
        summary: {
          'total-successful-session-count': sumOf(all) - sumOf(failures),
          'total-failure-session-count': sumOf(failures),
        },
        ...(failures.length === 0 ? {} : { 'failure-details': failures.map(detail) }),
      }
    }),
  }
}

const sumOf = (results: readonly TlsResult[]): number => results.reduce((sum, { sessions }) => sum + sessions, 0)

function detail({ type, mx, receivingIp, sendingIp, reason, sessions }: TlsResult) {
  return {
    'result-type': type,
    ...(sendingIp === '' ? {} : { 'sending-mta-ip': sendingIp }),
    'receiving-mx-hostname': mx,
    'receiving-ip': receivingIp,
    'failed-session-count': sessions,
    ...(reason === '' ? {} : { 'failure-reason-code': reason }),
  }
}

export const compressed = (facts: ReportFacts): Buffer => gzipSync(JSON.stringify(reportJson(facts)))

/** Name of the file of a report (RFC 8460 §5.1): `us!them!begin!end!id.json.gz`. */
export function reportFile({ domain, from, organization, id }: ReportFacts): string {
  const unique = id.replaceAll(/[^A-Za-z0-9.-]/g, '_')
  return `${organization}!${domain}!${from / SECOND}!${(from + DAY) / SECOND - 1}!${unique}.json.gz`
}
