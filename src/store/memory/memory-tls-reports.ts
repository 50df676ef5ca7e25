/** Results of TLS sessions and states of their reports in plain maps. */
import type { QueueTime } from '../../system/clock.ts'
import type { CountedResult, Day, ReportClaim, ReportEnd, TlsReportStore, TlsResult } from '../tls/tls-report.ts'

interface HeldReport {
  readonly day: Day
  claimedUntil: QueueTime
  end: ReportEnd | null
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

/** Synchronous form of TlsReportStore. */
type Held = { readonly [M in keyof TlsReportStore]: (...args: Parameters<TlsReportStore[M]>) => Awaited<ReturnType<TlsReportStore[M]>> }

export class MemoryTlsReports implements Held {
  /** By day, domain, source and key. */
  readonly #results = new Map<string, CountedResult>()
  /** By day and domain. */
  readonly #reports = new Map<string, HeldReport>()

  keepTlsResults(source: string, results: readonly CountedResult[]): void {
    for (const result of results) {
      const id = JSON.stringify([result.day, result.domain, source, result.key])
      const known = this.#results.get(id)
      if (known === undefined || known.sessions < result.sessions) this.#results.set(id, result)
    }
  }

  tlsReportsDue(day: Day): readonly string[] {
    const domains = new Set([...this.#results.values()].filter((one) => one.day === day).map(({ domain }) => domain))
    return [...domains].filter((domain) => (this.#reports.get(`${day} ${domain}`)?.end ?? null) === null).toSorted(compare)
  }

  claimTlsReport({ day, domain, at, until }: ReportClaim): boolean {
    const known = this.#reports.get(`${day} ${domain}`)
    if (known !== undefined && (known.end !== null || known.claimedUntil > at)) return false
    this.#reports.set(`${day} ${domain}`, { day, claimedUntil: until, end: null })
    return true
  }

  tlsResults(day: Day, domain: string): readonly TlsResult[] {
    const sums = new Map<string, CountedResult>()
    for (const one of this.#results.values()) {
      if (one.day !== day || one.domain !== domain) continue
      sums.set(one.key, { ...one, sessions: one.sessions + (sums.get(one.key)?.sessions ?? 0) })
    }
    return [...sums.values()]
      .toSorted((a, b) => compare(a.key, b.key))
      .map((counted) => {
        const { key: _, ...result } = counted
        return result
      })
  }

  endTlsReport({ day, domain, end }: Parameters<TlsReportStore['endTlsReport']>[0]): void {
    const known = this.#reports.get(`${day} ${domain}`)
    this.#reports.set(`${day} ${domain}`, { day, claimedUntil: known?.claimedUntil ?? 0, end: known?.end ?? end })
  }

  pruneTlsReports(before: Day): void {
    for (const [id, { day }] of this.#results) if (day < before) this.#results.delete(id)
    for (const [id, { day }] of this.#reports) if (day < before) this.#reports.delete(id)
  }
}
