/**
 * The small records of a queue, by name, as one port: `store.records.tokens.add(token)`. Each call is one transaction, and rejects like
 * those of QueueStore. The suite test/conformance checks them for all engines.
 */
import { ACCESS_ENTRIES } from './access-entry.ts'
import { ACCESS_TOKENS } from './access-token.ts'
import { AUDIT, REQUESTS } from './audit-records.ts'
import { BACKLOGS } from './backlog.ts'
import { CLASS_BANDS } from './class-band.ts'
import { DOMAIN_CHECKS } from './domain-check.ts'
import { ERASURE_KEYS, ERASURES } from './erasure.ts'
import { KEPT_CONTENTS } from './kept-content.ts'
import { GRANTS } from './kept-grant.ts'
import { PROVIDER_MEMBERS, PROVIDERS } from './provider-state.ts'
import { QUEUE_MARKS } from './queue-mark.ts'
import { QUOTA_COUNTS } from './quota-count.ts'
import type { MethodsOf, ReadsOf, RecordCall } from './record-table.ts'
import { SCHEDULE_RUNS } from './schedule-run.ts'
import { SERIES } from './series.ts'
import { SESSIONS } from './stored-session.ts'
import { STS_POLICIES } from './sts-policy.ts'
import { SUPPRESSION_STOPS, SUPPRESSIONS } from './suppression-entry.ts'
import { TLS_REPORTS, TLS_RESULTS } from './tls-report.ts'

const RECORDS = {
  tokens: ACCESS_TOKENS,
  access: ACCESS_ENTRIES,
  audit: AUDIT,
  requests: REQUESTS,
  stsPolicies: STS_POLICIES,
  suppressions: SUPPRESSIONS,
  suppressionStops: SUPPRESSION_STOPS,
  quotaCounts: QUOTA_COUNTS,
  tlsResults: TLS_RESULTS,
  tlsReports: TLS_REPORTS,
  grants: GRANTS,
  erasures: ERASURES,
  erasureKeys: ERASURE_KEYS,
  keptContents: KEPT_CONTENTS,
  providers: PROVIDERS,
  providerMembers: PROVIDER_MEMBERS,
  scheduleRuns: SCHEDULE_RUNS,
  domainChecks: DOMAIN_CHECKS,
  classBands: CLASS_BANDS,
  sessions: SESSIONS,
  series: SERIES,
  backlogs: BACKLOGS,
  marks: QUEUE_MARKS,
}

type Name = keyof typeof RECORDS

export type Records = { readonly [N in Name]: MethodsOf<(typeof RECORDS)[N]> }

export type RecordReader = { readonly [N in Name]: ReadsOf<(typeof RECORDS)[N]> }

/** A call in the form that is sent to another thread. */
export type SentRecordCall = readonly [record: string, method: string, args: readonly unknown[]]

/** The call of a name. */
export function recordCall([record, method]: SentRecordCall): RecordCall {
  const calls: Readonly<Record<string, RecordCall>> = RECORDS[record as Name]
  const call = calls[method]
  if (call === undefined) throw new Error(`no record has the call ${record}.${method}`)
  return call
}

/** Makes a sent call of a port. */
export function performed({ records }: { readonly records: Records }, [record, method, args]: SentRecordCall): Promise<unknown> {
  const methods: Readonly<Record<string, (...args: never) => Promise<unknown>>> = records[record as Name]
  const perform = methods[method] as ((...given: readonly unknown[]) => Promise<unknown>) | undefined
  if (perform === undefined) throw new Error(`no record has the call ${record}.${method}`)
  return perform(...args)
}

/** Creates all calls, each of which is submitted. */
export function recordsOver(submit: (...call: SentRecordCall) => Promise<unknown>): Records {
  const methodsOf = (record: string, calls: object): object =>
    Object.fromEntries(Object.keys(calls).map((method) => [method, (...args: unknown[]) => submit(record, method, args)]))
  return Object.fromEntries(Object.entries(RECORDS).map(([record, calls]) => [record, methodsOf(record, calls)])) as Records
}
