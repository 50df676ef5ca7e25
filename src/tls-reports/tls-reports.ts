/** Counts the results of sessions for the reports about TLS (RFC 8460), and logs failures. */
import type { TlsStage } from '../delivery/tls/tls-stage.ts'
import type { ReportSettings } from './report-sender.ts'
import { ResultCounts, type ResultCountsDeps } from './result-counts.ts'
import { stageResults, type StageResult } from './stage-results.ts'

export interface TlsReportSettings extends ReportSettings {
  /** smtp_tlsrpt_skip_reused_handshakes */
  readonly skipsResumed: boolean
  /** tlsrpt_no_policy */
  readonly noPolicy: boolean
}

interface TlsReportsDeps extends ResultCountsDeps {
  readonly settings: () => Pick<TlsReportSettings, 'skipsResumed' | 'noPolicy'>
}

export class TlsReports {
  readonly #deps: TlsReportsDeps
  readonly #counts: ResultCounts

  constructor(deps: TlsReportsDeps) {
    this.#deps = deps
    this.#counts = new ResultCounts(deps)
  }

  close(): Promise<void> {
    return this.#counts.close()
  }

  readonly count = (stage: TlsStage): void => {
    const { settings, note } = this.#deps
    const { skipsResumed, noPolicy } = settings()
    if (skipsResumed && stage.connection?.reused === true) return
    const results = stageResults(stage, { noPolicy })
    for (const result of results) this.#counts.add(result)
    const [first] = results
    if (first !== undefined && first.type !== 'success') note(failureLine(first), 'info')
  }
}

/** Text of a failure as Postfix logs it (TLSRPT_README). */
const failureLine = ({ domain, mx, type, reason }: StageResult): string =>
  `TLSRPT: status=failure, domain=${domain}, receiving_mx=${mx}, failure_type=${type.replaceAll('-', '_')}, failure_reason=${reason}`
