/** Results for reports from the end of a TLS stage (RFC 8460 §4.3). Pure. */
import { tlsaText } from '../delivery/dane/tlsa.ts'
import { rulesOfStored } from '../mail/tls-levels.ts'
import { unmetReason } from '../delivery/tls/policy-failure.ts'
import type { TlsStage } from '../delivery/tls/tls-stage.ts'
import type { StsPolicy } from '../store/records/sts-policy.ts'
import type { TlsResult } from '../store/records/tls-report.ts'

/** Types of failures (RFC 8460 §4.3, IANA “STARTTLS Validation Result Types”). */
export const FAILURE_TYPES = [
  'starttls-not-supported',
  'certificate-host-mismatch',
  'certificate-expired',
  'certificate-not-trusted',
  'validation-failure',
  'tlsa-invalid',
  'dnssec-invalid',
  'dane-required',
  'sts-policy-fetch-error',
  'sts-policy-invalid',
  'sts-webpki-invalid',
] as const
type FailureType = (typeof FAILURE_TYPES)[number]

/** `policy` of a report (RFC 8460 §4.4). */
interface ReportPolicy {
  readonly 'policy-type': 'sts' | 'tlsa' | 'no-policy-found'
  readonly 'policy-string'?: readonly string[]
  readonly 'policy-domain': string
  readonly 'mx-host'?: readonly string[]
}

/** A result before it is counted. */
export type StageResult = Pick<TlsResult, 'domain' | 'policy' | 'type' | 'mx' | 'receivingIp' | 'sendingIp' | 'reason'>

interface Failure {
  readonly type: FailureType
  readonly reason: string
}

/** Longest policy text, in characters; further lines are left out. */
const LONGEST_POLICY = 4_096
/** Maximum number of hosts and of TLSA records in a policy; further ones are left out. */
const MOST_LISTED = 100
/** Longest reason, in characters. */
const LONGEST_REASON = 200

/** Results of a stage: one for each domain that gets a report about it. None for a connection that failed before its TLS stage. */
export function stageResults(stage: TlsStage, { noPolicy }: { readonly noPolicy: boolean }): readonly StageResult[] {
  const { domain, sts, dane, unfetched } = stage
  if (dane !== null) {
    const failure = daneFailure(stage, dane)
    if (failure === undefined) return []
    const policy = { 'policy-type': 'tlsa', 'policy-string': recordsOf(dane), 'policy-domain': dane.base } as const
    // The domain of the host has published the records, so it gets a report too.
    return [...new Set([domain, dane.base])].map((reported) => resultOf(stage, { reported, policy, failure }))
  }
  if (sts !== null) {
    const failure = stsFailure(stage)
    return failure === undefined ? [] : [resultOf(stage, { reported: domain, policy: policyOf(sts), failure })]
  }
  if (unfetched !== null) {
    if (sessionFailure(stage) === undefined) return []
    const policy = { 'policy-type': 'sts', 'policy-domain': domain } as const
    return [resultOf(stage, { reported: domain, policy, failure: unfetched })]
  }
  const failure = noPolicy ? plainFailure(stage) : undefined
  return failure === undefined
    ? []
    : [resultOf(stage, { reported: domain, policy: { 'policy-type': 'no-policy-found', 'policy-domain': domain }, failure })]
}

/** Sorted, so that records which DNS returns in any order are one policy. */
const recordsOf = (dane: NonNullable<TlsStage['dane']>): readonly string[] =>
  'records' in dane ? dane.records.map(tlsaText).toSorted().slice(0, MOST_LISTED) : []

function policyOf({ domain, mx, text }: StsPolicy): ReportPolicy {
  const lines = text
    .slice(0, LONGEST_POLICY)
    .split(/\r?\n/)
    .filter((line) => line.trim() !== '')
  return { 'policy-type': 'sts', 'policy-string': lines, 'policy-domain': domain, 'mx-host': mx.slice(0, MOST_LISTED) }
}

interface Reported {
  readonly reported: string
  readonly policy: ReportPolicy
  /** Null for a success. */
  readonly failure: Failure | null
}

function resultOf({ host, localAddress }: TlsStage, { reported, policy, failure }: Reported): StageResult {
  const base = { domain: reported, policy: JSON.stringify(policy) }
  if (failure === null) return { ...base, type: 'success', mx: '', receivingIp: '', sendingIp: '', reason: '' }
  const { type, reason } = failure
  return { ...base, type, mx: host.name, receivingIp: host.address, sendingIp: localAddress ?? '', reason: reason.slice(0, LONGEST_REASON) }
}

/** Null for a success, undefined for a session that has no result about TLS. */
type Finding = Failure | null | undefined

const REFUSALS = { lookup: 'dnssec-invalid', required: 'dane-required', unusable: 'tlsa-invalid' } as const

function daneFailure(stage: TlsStage, dane: NonNullable<TlsStage['dane']>): Finding {
  if ('refused' in dane) return { type: REFUSALS[dane.refused], reason: stage.tls.reason ?? '' }
  const failed = sessionFailure(stage)
  if (failed !== null) return failed
  return dane.usable ? null : { type: 'tlsa-invalid', reason: 'none of the TLSA records is usable' }
}

/** Reason of Postfix's resolver and of others for a host that the policy does not name. */
const MISMATCH = 'mtasts-policy-mx-mismatch'

function stsFailure(stage: TlsStage): Finding {
  const failed = sessionFailure(stage)
  if (failed === undefined) return undefined
  if (!stage.named) return { type: 'validation-failure', reason: MISMATCH }
  const problem = stage.connection?.problem
  return problem === undefined ? failed : { type: certificateFailure(problem), reason: problem }
}

/** A host without a policy fails when it starts no TLS, or when its handshake fails. */
function plainFailure(stage: TlsStage): Finding {
  return stage.connection === undefined ? sessionFailure(stage) : null
}

/** Undefined for a connection that failed before its TLS stage, and where the configuration turns TLS off. */
function sessionFailure({ tls, failure, connection }: TlsStage): Finding {
  if (connection !== undefined) return null
  if (rulesOfStored(tls.level)?.starttls === 'unused') return undefined
  if (failure?.kind === 'certificate' || failure?.kind === 'anchor') {
    const reason = 'why' in failure ? failure.why : 'its issuer is not trusted'
    return { type: certificateFailure(reason), reason }
  }
  if (failure?.kind === 'tls') return { type: 'validation-failure', reason: failure.why }
  const reason = unmetReason(tls)
  if (reason === undefined) return undefined
  return { type: tls.state === 'clear' || tls.state === 'not-offered' ? 'starttls-not-supported' : 'validation-failure', reason }
}

/** Type of failure of a certificate, by the texts and codes of OpenSSL and Node and those of our own checks. */
export function certificateFailure(text: string): FailureType {
  if (/does not name|ALTNAME|hostname mismatch/i.test(text)) return 'certificate-host-mismatch'
  if (/expired/i.test(text)) return 'certificate-expired'
  const isUntrusted = /self[- _]?signed|unable[ _]to[ _](?:get|verify)|DEPTH_ZERO|not trusted|untrusted|issuer/i.test(text)
  return isUntrusted ? 'certificate-not-trusted' : 'validation-failure'
}
